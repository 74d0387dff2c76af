"""Transforms of functions: `grad`, `jvp` and `vmap`, and what is made of them (`func`)."""
