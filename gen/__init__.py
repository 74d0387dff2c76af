"""The generator: reads the op table in ops/ and writes C++, bindings, stubs and docs. Standard library only."""
