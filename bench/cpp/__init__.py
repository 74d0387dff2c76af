"""C++ programs beside libtorch: python -m bench.cpp."""
