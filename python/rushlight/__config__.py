"""What the package was built with."""

from rushlight import _C

__all__ = ["parallel_info", "show"]


def show():
    """The version, the instruction set and the libraries, as text."""
    from rushlight import version
    from rushlight.backends import cpu

    libraries = {**_C._libraries(), "CUDA": version.cuda}
    lines = [
        "rushlight built with:",
        f"  - version {_C._version}",
        f"  - CPU capability usage: {cpu.get_cpu_capability()}",
        *(f"  - {name}: {about or 'none'}" for name, about in libraries.items()),
    ]
    return "\n".join(lines) + "\n"


def parallel_info():
    """How many threads ops use, and how many processors there are, as text."""
    import os

    import rushlight

    return (
        f"at::get_num_threads() : {rushlight.get_num_threads()}\n"
        f"OMP_NUM_THREADS : {os.environ.get('OMP_NUM_THREADS', '[not set]')}\n"
        f"processors : {os.cpu_count()}\n"
    )
