"""Compile the CUDA kernels for the processor: a package in which the device "cuda" is the host.

    python tests/cuda_on_host/build.py build/release    # after ./dev build; prints the folder for PYTHONPATH

The sources of src/cuda and the generated formulas are rewritten where they are no C++ (launches, three instructions in
assembly, assertions) and compiled with `shims/` in front of CUDA's headers; host.cpp plays the GPU and cublas.cpp
cuBLASLt. What runs is each kernel's own code, thread by thread: wrong indices, formulas, shapes and waits show, races
between threads, speed and the compiler for the GPU do not.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FLAGS = "-DRL_CUDA_ARCH='\"host\"' -std=c++20 -O1 -w -fPIC -fvisibility=hidden -ffp-contract=off -mfma -include host.h"
REPLACED = {"prelude.h", "cublas.cpp"}
ASSEMBLY = {
    r"float f;\s*asm\(.*?\);\s*return f;": "return static_cast<float>(h);",
    r"Half h;\s*asm\(.*?\);\s*return h;": "return Half(x);",
    r"BFloat16 b;\s*asm\(.*?\);\s*return b;": "return BFloat16(x);",
}


def closing(text: str, start: int) -> int:
    """Where the parenthesis at `start` closes."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError("a parenthesis does not close")


def arguments(text: str) -> list[str]:
    """The parts of a list between commas that stand in no parenthesis."""
    parts, depth = [""], 0
    for c in text:
        depth += {"(": 1, "[": 1, "<": 1, ")": -1, "]": -1, ">": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts]


def without_launches(text: str) -> str:
    """`kernel<<<grid, block, …>>>(arguments)` as a call of on_host::launch."""
    while (at := text.find("<<<")) >= 0:
        begin = max(text.rfind(c, 0, at) for c in ";{}") + 1
        begin += len(text[begin:at]) - len(text[begin:at].lstrip())
        middle = text.index(">>>", at)
        grid, block = arguments(text[at + 3 : middle])[:2]
        end = closing(text, middle + 3) + 1
        call = text[begin:at].strip() + text[middle + 3 : end]
        text = f"{text[:begin]}::on_host::launch({grid}, {block}, [&] {{ {call}; }}){text[end:]}"
    return text


def rewritten(text: str) -> str:
    text = without_launches(text)
    for pattern, instead in ASSEMBLY.items():
        text = re.sub(pattern, instead, text)
    text = re.sub(r"__shared__ (alignas\(\d+\))", r"\1 __shared__", text)
    return re.sub(r"\bassert\(", "RL_DEVICE_ASSERT(", text)


def write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def find_header(name: str) -> Path:
    """The folder of a header of CUDA's: of its wheels in this environment, or of the toolkit."""
    home = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    for folder in [
        *Path(sys.prefix).glob("lib/python*/site-packages/nvidia/*/include"),
        home / "include",
    ]:
        if (folder / name).exists():
            return folder
    raise SystemExit(f"{name} not found; CUDA_HOME says where the toolkit is")


def sources(generated: Path, into: Path) -> list[Path]:
    """Writes what is compiled; returns the files."""
    files = [HERE / "host.cpp", HERE / "cublas.cpp"]
    for path in [*(ROOT / "src/cuda").iterdir(), *generated.glob("cuda/*.cu")]:
        if path.name in REPLACED:
            continue
        target = into / "cuda" / path.name
        if path.suffix == ".cu":
            target = target.with_suffix(".cu.cpp")
        write_if_changed(target, rewritten(path.read_text()))
        if target.suffix == ".cpp":
            files.append(target)
    return files


def write_ninja(files: list[Path], build: Path, out: Path) -> None:
    folders = [
        out,
        build / "generated/include",
        build / "include",
    ]
    include = [
        f"-I{HERE / 'shims'}",
        *(f"-I{f}" for f in [*folders, ROOT / "include", ROOT / "src"]),
    ]
    include += [f"-isystem {find_header(h)}" for h in ("cublasLt.h", "cuda_runtime_api.h")]
    compiler = " ".join(filter(None, [shutil.which("ccache"), os.environ.get("CXX", "g++")]))
    objects = [f"objects/{path.name}.o" for path in files]
    lines = [
        f"rule compile\n  command = {compiler} {FLAGS} {' '.join(include)} -MD -MF $out.d -c $in -o $out",
        "  depfile = $out.d\n  deps = gcc",
        f"rule link\n  command = g++ -shared -o $out $in -L{build}/lib -lrushlight -Wl,-rpath,'$$ORIGIN' -Wl,-z,defs",
        *(f"build {o}: compile {path}" for o, path in zip(objects, files, strict=True)),
        f"build librushlight_cuda.so: link {' '.join(objects)}",
        "",
    ]
    write_if_changed(out / "build.ninja", "\n".join(lines))


def package(out: Path) -> Path:
    """The built package by links, with the library of the device in it."""
    folder = out / "package"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "rushlight/lib").mkdir(parents=True)
    built = ROOT / "python/rushlight"
    for path in [*built.iterdir(), *(built / "lib").iterdir()]:
        if path.name not in ("lib", "librushlight_cuda.so"):
            (folder / "rushlight" / path.relative_to(built)).symlink_to(path)
    (folder / "rushlight/lib/librushlight_cuda.so").symlink_to(out / "librushlight_cuda.so")
    return folder


def main(build: Path) -> None:
    out = build / "cuda_on_host"
    write_ninja(sources(build / "generated", out), build, out)
    jobs = os.environ.get("RUSHLIGHT_JOBS", str(os.cpu_count()))
    subprocess.run(["ninja", "-C", str(out), "-j", jobs], check=True, stdout=sys.stderr)
    print(package(out))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
