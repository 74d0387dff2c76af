"""The parts of `rushlight.utils.benchmark`."""
