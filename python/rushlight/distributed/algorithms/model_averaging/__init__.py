"""Periodic averaging of parameters over processes."""
