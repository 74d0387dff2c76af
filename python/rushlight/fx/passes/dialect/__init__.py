"""Passes for graphs of one set of ops."""
