"""The modules of `rushlight.utils.benchmark`."""
