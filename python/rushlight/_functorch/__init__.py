"""Where PyTorch keeps what `func` is made of: names below the public ones."""
