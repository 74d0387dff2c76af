"""Parts of the loader that programs import by PyTorch's names."""
