"""Names of numbers that are not known yet, for programs that ask for them."""
