"""The generator: reads the op table in ops/ and writes C++, bindings, stubs and docs. Standard library only.

It reads from the bottom up. What is said: `schema` (types, signatures, expressions), `table` (entries), `derivatives`,
`rules`. How it is written down: `text` (templates are f-strings). What is written: `declarations`, `kernels`,
`wrappers`, `registry` and `tangents` for C++, `python`, `modules` for stateless modules of both, `headers`. No file
knows an op by its name.
"""
