"""`python -m rushlight.utils.collect_env`: prints versions and the machine, for bug reports."""

from __future__ import annotations

import os
import platform
import sys

import rushlight

__all__ = ["get_pretty_env_info", "main"]


def get_pretty_env_info():
    """The versions and the machine as text.

    Example:
        >>> "Python version" in torch.utils.collect_env.get_pretty_env_info()
        True
    """
    lines = [
        f"rushlight version: {rushlight.version.rushlight} (interface of PyTorch "
        f"{rushlight.__version__.partition('+')[0]})",
        f"CUDA used to build: {rushlight.version.cuda}",
        f"Is CUDA available: {rushlight.cuda.is_available()}",
        f"Python version: {sys.version.splitlines()[0]}",
        f"OS: {platform.platform()}",
        f"Processors: {os.cpu_count()}",
        "",
        rushlight.__config__.show(),
    ]
    return "\n".join(lines)


def main():
    """Print the versions and the machine.

    For an example see `utils.collect_env.get_pretty_env_info`.
    """
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
