"""The op table: one module per family, each entry plain data. See docs/adding-an-op.md."""
