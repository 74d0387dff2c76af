"""Benchmarks: `./dev bench` runs `python -m bench`."""
