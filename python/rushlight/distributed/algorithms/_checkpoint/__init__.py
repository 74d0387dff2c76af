"""Wrappers that recompute in backward."""
