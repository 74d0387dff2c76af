"""Files of tensors: what `serialization` writes and reads, format by format."""
