"""Tests of the Python package by itself, with expected values."""
