"""Trains small networks in C++ with rushlight and with libtorch, by turns: python -m bench.cpp.

    python -m bench.cpp --libtorch FOLDER [--seconds 6] [--threads 1]

FOLDER holds libtorch's `include` and `lib`: pip's package `torch` is one. One program is compiled
against each library (anew when its source or a library is newer than it; the results lie in
build/bench_cpp) and both run, a few steps of one after a few of the other, so that what else the
machine does meets both. The ratio is that of the medians.
"""

import argparse
import subprocess
import time
from pathlib import Path
from statistics import median

import rushlight

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("train.cpp")
STEPS = {"mlp_digits": 40, "lenet": 10}
# Between turns: threads of OpenMP that wait for work spin for some milliseconds.
PAUSE = 0.02


def compiled(name: str, includes: list[Path], lib: Path, libraries: list[str]) -> Path:
    """The program for one library."""
    program = ROOT / "build" / "bench_cpp" / name
    newest = max(path.stat().st_mtime for path in [SOURCE, *lib.glob("*.so")])
    if program.exists() and program.stat().st_mtime > newest:
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    command = ["g++", "-O2", "-std=c++20", SOURCE, "-o", program]
    command += [f"-I{path}" for path in includes]
    command += [f"-L{lib}", f"-Wl,-rpath,{lib}", "-Wl,--no-as-needed", *libraries]
    subprocess.run(command, check=True)
    return program


def main() -> None:
    """Prints a line for each network."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--libtorch", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=6, help="for each network")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    ours = Path(rushlight.__file__).parent
    theirs = options.libtorch
    api = theirs / "include" / "torch" / "csrc" / "api" / "include"
    programs = {
        "rushlight": compiled("rushlight", [ours / "include"], ours / "lib", ["-lrushlight"]),
        "libtorch": compiled(
            "libtorch",
            [theirs / "include", api],
            theirs / "lib",
            ["-ltorch", "-ltorch_cpu", "-lc10"],
        ),
    }
    running = {
        name: subprocess.Popen(
            [program, str(options.threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        for name, program in programs.items()
    }

    def ask(name: str, network: str, steps: int) -> tuple[float, float]:
        process = running[name]
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(f"{network} {steps}\n")
        took, loss = process.stdout.readline().split()
        return float(took), float(loss)

    for network, steps in STEPS.items():
        losses = {name: ask(name, network, 3)[1] for name in programs}
        assert abs(losses["rushlight"] - losses["libtorch"]) < 1e-4, losses
        times: dict[str, list[float]] = {name: [] for name in programs}
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            for name, kept in times.items():
                kept.append(ask(name, network, steps)[0])
                time.sleep(PAUSE)
        fast, slow = (median(times[name]) / 1000 for name in ("rushlight", "libtorch"))
        print(f"{network:12} {fast:9.1f} us  libtorch {slow:9.1f} us  ratio {fast / slow:.3f}")
    for process in running.values():
        process.communicate()


if __name__ == "__main__":
    main()
