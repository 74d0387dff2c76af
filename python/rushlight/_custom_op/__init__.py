"""The older way to make ops of one's own, by names: `rushlight._custom_ops`."""
