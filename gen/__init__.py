"""The generator: reads the op table in ops/ and writes C++, bindings, stubs and docs. Standard library only.

It reads from the bottom up. What is said: `schema` (types, arguments, signatures), `table` (entries), `expressions`,
`derivatives`, `rules`, `overloads`, `tags`. How it is written down: `text` (templates are f-strings). What is written:
`declarations`, `kernels`, `wrappers`, `registry` and `tangents` for C++, `signatures`, `python` and `stubs` for Python,
`modules` and `modules_cpp` for stateless modules, `headers`. No file knows an op by its name.
"""
