"""Graph mode of quantisation: what `quantize_fx` is made of. `custom_config` is public."""
