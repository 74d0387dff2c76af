"""Networks of common kinds over torch's API, for `python -m bench.models`.

Each function takes the module under test as `torch` and returns a network of it.
"""
