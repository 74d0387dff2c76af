"""Helpers for exported programs."""
