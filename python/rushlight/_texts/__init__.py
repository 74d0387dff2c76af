"""What is said and shown of things: docstrings of families, pieces of HTML for notebooks."""
