"""Say how large a wheel is, and refuse one that is larger than it may be or lacks something.

    python cmake/check_wheel.py WHEEL

The limits are those of the project: 33 MB to download and 110 MB installed for one Python, and what
an extension is for each other one.
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LARGEST_WHEEL = 33e6  # Gloo and what Debian's needs are 0.6 of it
LARGEST_INSTALLED = 110e6
LARGEST_EXTENSION = 1.6e6, 5.5e6  # to download and installed
LINKER_SCRIPTS = {"libtorch.so", "libtorch_cpu.so", "libc10.so"}
NEEDED = [
    "rushlight/_C.pyi",
    "rushlight/_functions.pyi",
    "rushlight/include/rushlight/ops.h",
    "rushlight/include/torch/torch.h",
    "rushlight/lib/librushlight.so",
    "rushlight/lib/librushlight_distributed_gloo.so",
    "rushlight/lib/librushlight_distributed_mpi.so",
    "rushlight/lib/librushlight_distributed_nccl.so",
    "rushlight/licenses/libjpeg_turbo.txt",
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
# What the system has where the wheel is installed: those of C, and of the compiler.
SYSTEM = re.compile(r"lib(c|m|mvec|dl|rt|pthread|gcc_s|gomp|stdc\+\+)\.so\.\d+|ld-linux.*")


def needed_by(library: Path) -> list[str]:
    """The libraries that one names."""
    out = subprocess.run(["objdump", "-p", library], check=True, capture_output=True, text=True)
    return re.findall(r"NEEDED +(\S+)", out.stdout)


def unmet(archive: zipfile.ZipFile, folder: Path) -> list[str]:
    """What the wheel's libraries need that neither it nor every system has."""
    names = [
        name
        for name in archive.namelist()
        if ".so" in Path(name).name and Path(name).name not in LINKER_SCRIPTS
    ]
    known = {Path(name).name for name in names}
    return [
        f"{name} needs {library}"
        for name in names
        for library in needed_by(Path(archive.extract(name, folder)))
        if library not in known and not SYSTEM.fullmatch(library)
    ]


def problems(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        sizes = {item.filename: item.file_size for item in archive.infolist()}
        with tempfile.TemporaryDirectory() as folder:
            found = unmet(archive, Path(folder))
    size, installed = path.stat().st_size, sum(sizes.values())
    print(f"{path}: {size / 1e6:.1f} MB, {installed / 1e6:.1f} MB installed, {len(sizes)} files")
    found += [f"{name} is missing" for name in NEEDED if name not in sizes]
    if not any(name.endswith(".dist-info/sboms/rushlight.cdx.json") for name in sizes):
        found.append("the bill of materials is missing (cmake/finish_wheel.py writes it)")
    licensed = dict(LICENSED)
    for name in sizes:  # of the system, where the wheel was built
        library = Path(name).name
        own = library.startswith("librushlight") or library in LINKER_SCRIPTS
        if name.startswith("rushlight/lib/lib") and not own:
            licensed.setdefault(library, re.sub(r"\.so.*", ".txt", library))
    for library, licence in licensed.items():
        if f"rushlight/lib/{library}" in sizes and f"rushlight/licenses/{licence}" not in sizes:
            found.append(f"{library} is there without {licence}")
    others = sum(name.startswith("rushlight/_C.cpython-") for name in sizes) - 1
    most = LARGEST_WHEEL + others * LARGEST_EXTENSION[0]
    most_installed = LARGEST_INSTALLED + others * LARGEST_EXTENSION[1]
    if size > most:
        found.append(f"larger than {most / 1e6:.1f} MB")
    if installed > most_installed:
        found.append(f"larger than {most_installed / 1e6:.1f} MB when installed")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    for line in wrong:
        print(f"{sys.argv[1]}: {line}", file=sys.stderr)
    sys.exit(bool(wrong))
