"""Fuzzers: of every op of the table (`python -m tests.fuzz`, or `./dev fuzz`) and of the file readers (*.cpp)."""
