"""Write the wheel rushlight-cuda: librushlight_cuda.so, which joins the installed rushlight.

    python cmake/cuda_wheel.py VERSION FOLDER DIST

FOLDER holds lib/librushlight_cuda.so as installed. The wheel fits every Python; it requires the
rushlight of its own version and cuBLAS.
"""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

TAG = "py3-none-linux_x86_64"
REQUIRES = ["nvidia-cublas>=13,<14"]


def record_row(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def main(version: str, folder: str, dist: str) -> None:
    info = f"rushlight_cuda-{version}.dist-info"
    metadata = [
        "Metadata-Version: 2.1",
        "Name: rushlight-cuda",
        f"Version: {version}",
        "Summary: CUDA kernels for rushlight",
        "License: Apache-2.0",
        "Requires-Python: >=3.10",
        f"Requires-Dist: rushlight=={version}",
        *(f"Requires-Dist: {r}" for r in REQUIRES),
        "",
        "The CUDA column of rushlight's kernel table, loaded when a program asks for the device.",
    ]
    wheel = ["Wheel-Version: 1.0", "Generator: rushlight", "Root-Is-Purelib: false", f"Tag: {TAG}"]
    library = "lib/librushlight_cuda.so"
    files = {
        f"rushlight/{library}": (Path(folder) / library).read_bytes(),
        f"{info}/METADATA": "\n".join(metadata).encode() + b"\n",
        f"{info}/WHEEL": "\n".join(wheel).encode() + b"\n",
    }
    rows = [record_row(name, data) for name, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]).encode() + b"\n"
    target = Path(dist) / f"rushlight_cuda-{version}-{TAG}.whl"
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    print(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
