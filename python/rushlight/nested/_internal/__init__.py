"""The class of nested tensors and what it is made of."""
