"""Say how large a wheel is, and refuse one that is larger than it may be or lacks something.

    python cmake/check_wheel.py WHEEL

The limits are those of the project: 30 MB to download, 110 MB installed.
"""

import sys
import zipfile
from pathlib import Path

LARGEST_WHEEL = 32e6
LARGEST_INSTALLED = 110e6
NEEDED = [
    "rushlight/_C.pyi",
    "rushlight/_functions.pyi",
    "rushlight/include/rushlight/ops.h",
    "rushlight/include/torch/torch.h",
    "rushlight/lib/librushlight.so",
    "rushlight/licenses/nanobind.txt",
    "rushlight/_sobol.bin",
    "rushlight/licenses/robin_map.txt",
    "rushlight/licenses/sobol.txt",
    "rushlight/nn/modules/_stateless/activation.py",
    "rushlight/py.typed",
    "rushlight/share/cmake/rushlight/rushlightConfig.cmake",
]
# The licences that libraries bring with them.
LICENSED = {"libdnnl.so.3": "oneDNN.txt", "libscipy_openblas.so": "OpenBLAS.txt"}


def problems(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        sizes = {item.filename: item.file_size for item in archive.infolist()}
    size, installed = path.stat().st_size, sum(sizes.values())
    print(f"{path}: {size / 1e6:.1f} MB, {installed / 1e6:.1f} MB installed, {len(sizes)} files")
    found = [f"{name} is missing" for name in NEEDED if name not in sizes]
    for library, licence in LICENSED.items():
        if f"rushlight/lib/{library}" in sizes and f"rushlight/licenses/{licence}" not in sizes:
            found.append(f"{library} is there without {licence}")
    if size > LARGEST_WHEEL:
        found.append(f"larger than {LARGEST_WHEEL / 1e6:.0f} MB")
    if installed > LARGEST_INSTALLED:
        found.append(f"larger than {LARGEST_INSTALLED / 1e6:.0f} MB when installed")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    for line in wrong:
        print(f"{sys.argv[1]}: {line}", file=sys.stderr)
    sys.exit(bool(wrong))
