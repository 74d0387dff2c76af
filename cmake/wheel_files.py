"""Print where files of installed Python distributions lie, one path a line, for CMake.

    python wheel_files.py DISTRIBUTION SUFFIX [SUFFIX ...]

Each SUFFIX is the end of a path as the distribution records it (``/libdnnl.so.3``). Prints nothing
and exits with 1 where the distribution or one of the files is missing.
"""

import importlib.metadata
import sys
from pathlib import Path


def main(distribution: str, *suffixes: str) -> int:
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return 1
    for suffix in suffixes:
        found = [file for file in files if f"/{file}".endswith(suffix)]
        if not found:
            return 1
        print(Path(str(found[0].locate())).resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
