"""What the package was built with."""

from rushlight import _C

__all__ = ["parallel_info", "show"]


def show():
    """The version, the instruction set and the libraries, as text."""
    from rushlight.backends import cpu

    lines = [
        "rushlight built with:",
        f"  - version {_C._version}",
        f"  - CPU capability usage: {cpu.get_cpu_capability()}",
        "  - oneDNN, OpenBLAS, OpenMP",
    ]
    return "\n".join(lines) + "\n"


def parallel_info():
    """How many threads ops use, as text."""
    import rushlight

    return f"at::get_num_threads() : {rushlight.get_num_threads()}\n"
