"""Run clang-tidy over C++ sources with the flags of a build, each source once.

    python cmake/tidy.py BUILD [--base COMMIT] [--jobs N]

With --base only what differs from that commit, committed or not: sources, and for a changed header
the source of its name, or else the first that includes it. Kernels for instruction sets and for
CUDA are left out, which clang does not know as g++ and nvcc do, and so is what git does not keep:
generated files, the virtual environment. The checks stand in .clang-tidy.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def lines_of(*command: str) -> set[str]:
    return set(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
    )


def git(*command: str) -> set[str]:
    return lines_of("git", "-C", str(ROOT), *command)


def commands(build: Path) -> dict[str, dict]:
    """The compile command of every source of the project, by its path from the root."""
    ours = git("ls-files", "--cached", "--others", "--exclude-standard")
    found: dict[str, dict] = {}
    for command in json.loads((build / "compile_commands.json").read_text()):
        name = os.path.relpath(command["file"], ROOT)
        if name in ours and name.endswith(".cpp") and not name.startswith("src/cpu/isa/"):
            found.setdefault(name, command)
    return found


def changed(base: str) -> set[str]:
    """Files that differ from the commit where this branch left `base`, new ones among them."""
    return git("diff", "--name-only", "--merge-base", base) | git(
        "ls-files", "-o", "--exclude-standard"
    )


def affected(names: set[str], sources: dict[str, dict]) -> list[str]:
    """The sources to read so that every changed source and header is seen."""
    chosen = names & sources.keys()
    for header in sorted(name for name in names if name.endswith(".h") and (ROOT / name).exists()):
        own = header.removesuffix(".h") + ".cpp"
        include = header.removeprefix("src/").removeprefix("include/")
        users = [s for s in sources if include in (ROOT / s).read_text()]
        chosen |= {own} if own in sources else set(users[:1])
    return sorted(chosen)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--base")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    known = commands(options.build.resolve())
    files = sorted(known) if options.base is None else affected(changed(options.base), known)
    # clang-tidy brings clang's headers, not omp.h: the compiler's come after them.
    (headers,) = lines_of(os.environ.get("CXX", "g++"), "-print-file-name=include") - {""}
    with tempfile.TemporaryDirectory() as folder:
        # clang-tidy reads a source as often as the database has it.
        (Path(folder) / "compile_commands.json").write_text(json.dumps([known[f] for f in files]))

        def check(name: str) -> bool:
            after = [f"--extra-arg={flag}" for flag in ("-idirafter", headers)]
            command = ["clang-tidy", "-p", folder, "--quiet", *after, str(ROOT / name)]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode != 0:
                print(result.stdout or result.stderr, end="", flush=True)
            return result.returncode == 0

        with ThreadPoolExecutor(options.jobs) as pool:
            good = list(pool.map(check, files))
    print(f"clang-tidy: {sum(good)} of {len(files)} files are clean")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
