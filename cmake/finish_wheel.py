"""Finish a wheel that scikit-build-core wrote: its tags, its bill of materials, its bits.

    python cmake/finish_wheel.py WHEEL

- Tags: every Python whose extension `_C` the wheel holds, and the oldest glibc that its libraries
  run with (`cp310.cp311-cp310.cp311-manylinux_2_35_x86_64`).
- Materials: what THIRD_PARTY.md says of what the wheel contains, as CycloneDX JSON in
  `*.dist-info/sboms`, where PEP 770 wants it.
- Bits: files stand in order and are as old as SOURCE_DATE_EPOCH (1980 where there is none), so
  that one commit gives one wheel.

The finished wheel takes the place of the other; its path is printed.
"""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTENSION = re.compile(r"rushlight/_C\.cpython-(\d+t?)-([a-z0-9_]+)-linux-gnu\.so")
OLDEST_ZIP_DATE = 315532800  # 1980-01-01, the first that an archive can hold
LICENCES = {  # as THIRD_PARTY.md writes them → SPDX
    "GPL-3.0 with the GCC Runtime Library Exception": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "IJG, BSD-3-Clause, zlib": "IJG AND BSD-3-Clause AND Zlib",
    "BSD-MIT (or GPL-2.0)": "MIT OR GPL-2.0-only",
    "LGPL-2.1": "LGPL-2.1-only",
}


def is_library(data: bytes) -> bool:
    return data[:4] == b"\x7fELF"


# ---- tags ----


def glibc_of(data: bytes) -> int:
    """The minor version of the oldest glibc 2 that a library runs with."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        command = ["objdump", "-p", file.name]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return max((int(minor) for minor in re.findall(r"\bGLIBC_2\.(\d+)", text)), default=0)


def tags_of(files: dict[str, bytes]) -> tuple[list[str], str]:
    """The Pythons (`cp310`, …) and the platform that a wheel with these files is for."""
    found = [match for name in files if (match := EXTENSION.fullmatch(name))]
    if not found:
        raise SystemExit("the wheel has no rushlight/_C.cpython-*.so")
    pythons = sorted((f"cp{m[1]}" for m in found), key=lambda tag: (len(tag), tag))
    glibc = max(glibc_of(data) for data in files.values() if is_library(data))
    return pythons, f"manylinux_2_{glibc}_{found[0][2]}"


def pairs_of(pythons: list[str]) -> list[tuple[str, str]]:
    """Pythons and ABIs: that of a Python without the GIL has a t, its Python has none."""
    return [(tag.rstrip("t"), tag) for tag in pythons]


# ---- materials ----


def third_party() -> list[dict[str, str]]:
    """The rows of the first table of THIRD_PARTY.md."""
    text = (ROOT / "THIRD_PARTY.md").read_text()
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    keys = ("what", "where", "licence", "text")
    table = [[cell.strip() for cell in row] for row in rows if len(row) == len(keys)]
    end = next((i for i, row in enumerate(table) if row[3] == "licence there"), len(table))
    return [dict(zip(keys, row, strict=True)) for row in table[2:end]]


def component(row: dict[str, str], files: dict[str, bytes]) -> dict:
    """A row as CycloneDX has it, with the hashes of the files that it names."""
    said = re.fullmatch(r"(.+?)(?: (\d[\d.]*))?(?:,.*)?", row["what"])
    made = {"type": "library", "name": said[1]}
    if said[2]:
        made["version"] = said[2]
    made["licenses"] = [{"expression": LICENCES.get(row["licence"], row["licence"])}]
    paths = [f"rushlight/{path}" for path in re.findall(r"`([^`]+)`", row["where"])]
    contents = [(path, files[path]) for path in paths if path in files]
    made["evidence"] = {"occurrences": [{"location": path} for path, _ in contents]}
    if len(contents) == 1:
        digest = hashlib.sha256(contents[0][1]).hexdigest()
        made["hashes"] = [{"alg": "SHA-256", "content": digest}]
    if not contents:
        del made["evidence"]
    return made


def materials(name: str, version: str, files: dict[str, bytes], epoch: int) -> bytes:
    """The bill of materials of the wheel."""
    texts = {path.rpartition("/")[2] for path in files if path.startswith("rushlight/licenses/")}
    rows = [row for row in third_party() if texts.issuperset(re.findall(r"`([^`]+)`", row["text"]))]
    subject = f"pkg:pypi/{name}@{version}"
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, subject)}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)),
            "component": {
                "type": "library",
                "bom-ref": subject,
                "name": name,
                "version": version,
                "purl": subject,
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": [component(row, files) for row in rows],
    }
    return json.dumps(made, indent=1).encode() + b"\n"


# ---- bits ----


def record_of(files: dict[str, bytes], record: str) -> bytes:
    def row(name: str, data: bytes) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        return f"{name},sha256={digest},{len(data)}\n"

    rows = "".join(row(name, data) for name, data in sorted(files.items()))
    return f"{rows}{record},,\n".encode()


def write(path: Path, files: dict[str, bytes], epoch: int) -> None:
    date = time.gmtime(max(epoch, OLDEST_ZIP_DATE))[:6]
    # As archives should be, what installers read first lies last.
    order = sorted(files, key=lambda name: (".dist-info/" in name, name))
    with zipfile.ZipFile(path, "w") as archive:
        for name in order:
            entry = zipfile.ZipInfo(name, date)
            mode = 0o100755 if is_library(files[name]) else 0o100644
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name], compresslevel=9)


def finish(path: Path, epoch: int) -> Path:
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name[-1] != "/"}
    info = next(name.partition("/")[0] for name in files if name.endswith(".dist-info/WHEEL"))
    del files[f"{info}/RECORD"]
    about = Parser().parsestr(files[f"{info}/METADATA"].decode())
    pythons, platform = tags_of(files)

    lines = files[f"{info}/WHEEL"].decode().splitlines()
    kept = [line for line in lines if line.strip() and not line.startswith("Tag:")]
    tags = [f"Tag: {python}-{abi}-{platform}" for python, abi in pairs_of(pythons)]
    files[f"{info}/WHEEL"] = "\n".join([*kept, *tags]).encode() + b"\n"
    sbom = f"{info}/sboms/rushlight.cdx.json"
    files[sbom] = materials(about["Name"], about["Version"], files, epoch)
    files[f"{info}/RECORD"] = record_of(files, f"{info}/RECORD")

    python_tags = ".".join(dict.fromkeys(python for python, _ in pairs_of(pythons)))
    stem = info.removesuffix(".dist-info")
    target = path.with_name(f"{stem}-{python_tags}-{'.'.join(pythons)}-{platform}.whl")
    path.unlink()
    write(target, files, epoch)
    return target


if __name__ == "__main__":
    print(finish(Path(sys.argv[1]), int(os.environ.get("SOURCE_DATE_EPOCH", OLDEST_ZIP_DATE))))
