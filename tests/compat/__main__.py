"""Runs small programs over packages that are made for PyTorch, with rushlight in its place.

    ./dev compat                          installs what the programs need and runs them all
    ./dev compat --only 'timm|kornia'     those whose name fits
    ./dev compat --suites 'timm|kornia'   the packages' own tests instead (suites.py)
    ./dev compat --page                   writes docs/compatibility.md as well: its part about programs, or suites

A program under `programs/` says in comments which packages or repositories it needs and, where it
is several in one, its cases; what it prints is compared number by number with what it prints
beside PyTorch. Packages come by pip into an environment of their own, repositories by git (or lie
below --repositories). What is not to be had is skipped.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.compat import page, suites

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAMS = HERE / "programs"
PAGE = ROOT / "docs" / "compatibility.md"

# The projects of modules that are called otherwise.
PROJECTS = {
    "PIL": "pillow",
    "backpack": "backpack-for-pytorch",
    "ignite": "pytorch-ignite",
    "pyro": "pyro-ppl",
    "sklearn": "scikit-learn",
    "whisper": "openai-whisper",
}
# Not installed, with the versions that pip is told of: PyTorch's are in its own search path.
ABSENT = {"torch": "2.13.0", "torchvision": "0.28.0"}
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\binf\b|\bnan\b)", re.IGNORECASE)


class Case(NamedTuple):
    """One run of a program."""

    program: Path
    argument: str

    @property
    def name(self) -> str:
        return f"{self.program.stem}[{self.argument}]" if self.argument else self.program.stem

    @property
    def packages(self) -> list[str]:
        return _comment(self.program, "packages")

    @property
    def repositories(self) -> list[str]:
        """Of GitHub: owner/name."""
        return _comment(self.program, "repositories")


class Run(NamedTuple):
    """What came of one."""

    status: int
    output: str
    error: str
    seconds: float


class Result(NamedTuple):
    """A run with rushlight beside one with PyTorch."""

    name: str
    verdict: str  # same, ran (there is nothing to compare with), different, failed, skipped
    reason: str
    seconds: float
    ratio: float | None


def _comment(program: Path, key: str) -> list[str]:
    found = re.search(rf"^# {key}: (.*)$", program.read_text(), re.MULTILINE)
    return found.group(1).split() if found else []


def cases() -> list[Case]:
    """All programs, each with its cases."""
    return [
        Case(program, argument)
        for program in sorted(PROGRAMS.glob("*.py"))
        if _comment(program, "packages") or _comment(program, "repositories")
        for argument in _comment(program, "cases") or [""]
    ]


# ---- the environment ----


def _placeholder(folder: Path, name: str, version: str) -> Path:
    """A wheel of nothing under a name, for pip: what depends on it counts as satisfied."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info/"
    with zipfile.ZipFile(path, "w") as wheel:
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        wheel.writestr(info + "METADATA", metadata)
        tags = "Wheel-Version: 1.0\nGenerator: none\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(info + "WHEEL", tags)
        wheel.writestr(info + "RECORD", "".join(f"{info}{n},,\n" for n in ("METADATA", "WHEEL")))
    return path


def install(folder: Path, modules: list[str], needs: Iterable[str] = ()) -> None:
    """Makes an environment with the projects of some modules and others; what fails stays away."""
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    nothing = [str(_placeholder(folder, *named)) for named in ABSENT.items()]
    subprocess.run([*pip, "--no-deps", *nothing], check=True, env=environment)
    # What wants others than these does not get them.
    fixed = folder / "constraints.txt"
    fixed.write_text("".join(f"{name}=={version}\n" for name, version in ABSENT.items()))
    pip += ["--constraint", str(fixed)]
    lacking = [m for m in modules if m not in ABSENT and not _has(folder, m)]
    for project in [*(PROJECTS.get(module, module) for module in lacking), *needs]:
        done = subprocess.run([*pip, project], env=environment, capture_output=True, text=True)
        if done.returncode:
            print(f"not installed: {project}: {done.stderr.strip().splitlines()[-1:]}")


def clone(folder: Path, repositories: list[str]) -> None:
    """Fetches what is not there yet; what fails stays away."""
    for repository in repositories:
        target = folder / repository.partition("/")[2]
        if not target.exists():
            url = f"https://github.com/{repository}"
            done = subprocess.run(
                ["git", "clone", "--quiet", "--depth", "1", url, str(target)],
                capture_output=True,
                text=True,
            )
            if done.returncode:
                print(f"not cloned: {repository}: {done.stderr.strip().splitlines()[-1:]}")


def _site(folder: Path) -> Path:
    return next((folder / "venv" / "lib").glob("python*/site-packages"))


def _has(folder: Path, module: str) -> bool:
    found = importlib.util.find_spec(module) if module in sys.stdlib_module_names else None
    site = _site(folder)
    return bool(found) or any((site / (module + end)).exists() for end in ("", ".py"))


def versions(folder: Path) -> dict[str, str]:
    """The versions of all projects of the environment, by their names in lower case."""
    listing = subprocess.run(
        [str(folder / "venv" / "bin" / "python"), "-m", "pip", "list", "--format", "json"],
        capture_output=True,
        text=True,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    return {
        row["name"].lower().replace("_", "-"): row["version"] for row in json.loads(listing.stdout)
    }


# ---- running and comparing ----


def run(case: Case, folder: Path, torch: str | None, options: argparse.Namespace) -> Run:
    """Runs one, with rushlight, or with the PyTorch of a search path."""
    timeout = options.timeout
    command = [str(folder / "venv" / "bin" / "python")]
    if torch is None:
        command += ["-m", "rushlight", "run"]
    environment = dict(os.environ)
    environment["PYTHONPATH"] = torch or options.package
    environment["COMPAT_REPOSITORIES"] = str(options.repositories.resolve())
    environment.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", MPLBACKEND="agg")
    environment["PYTHONWARNINGS"] = "ignore"
    start = time.monotonic()
    try:
        done = subprocess.run(
            [*command, str(case.program), *([case.argument] if case.argument else [])],
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment,
            cwd=folder,
        )
    except subprocess.TimeoutExpired:
        return Run(1, "", f"did not end within {timeout:.0f} s", timeout)
    return Run(done.returncode, done.stdout, done.stderr, time.monotonic() - start)


def difference(ours: str, theirs: str) -> str:
    """The first line in which two outputs differ by more than rounding, or nothing."""
    mine, other = (ADDRESS.sub("", text).splitlines() for text in (ours, theirs))
    for a, b in zip(mine, other, strict=False):
        numbers = [
            [float(n) for n in NUMBER.findall(line)] for line in (a, b)
        ]  # of equal lines nothing is asked
        if a == b:
            continue
        if NUMBER.sub("#", a).split() != NUMBER.sub("#", b).split():
            return f"{a!r}, not {b!r}"
        scale = max((abs(n) for n in numbers[1]), default=0.0)
        for x, y in zip(*numbers, strict=True):
            if not (x == y or abs(x - y) <= 2e-3 * abs(y) + 1e-4 * min(scale, 1.0) + 1e-6):
                return f"{a!r}, not {b!r}"
    if len(mine) != len(other):
        return f"{len(mine)} lines, not {len(other)}"
    return ""


def _last(error: str) -> str:
    lines = [line for line in error.strip().splitlines() if line and not line.startswith(" ")]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Warning|Exit)\b", line)]
    return (raised or lines or ["nothing was said"])[-1][:200]


def judge(case: Case, folder: Path, options: argparse.Namespace) -> Result:
    """Runs one beside PyTorch, whose output is kept until the program changes."""
    torch = options.torch
    lacking = [p for p in case.packages if p not in ABSENT and not _has(folder, p)]
    lacking += [r for r in case.repositories if not (options.repositories / Path(r).name).exists()]
    if lacking:
        return Result(case.name, "skipped", f"not installed: {', '.join(lacking)}", 0.0, None)
    reference: Run | None = None
    if torch is not None:
        text = case.program.read_bytes() + (PROGRAMS / "shown.py").read_bytes() + torch.encode()
        key = hashlib.sha256(text).hexdigest()[:16]
        kept = folder / "reference" / f"{case.name}.{key}.json"
        if kept.exists():
            reference = Run(*json.loads(kept.read_text()))
        else:
            reference = run(case, folder, torch, options)
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(json.dumps(reference))
    ours = run(case, folder, None, options)
    ratio = ours.seconds / reference.seconds if reference and not reference.status else None
    if reference and reference.status:
        if ours.status:
            why = f"with PyTorch as well: {_last(reference.error)}"
            return Result(case.name, "skipped", why, ours.seconds, None)
        return Result(case.name, "ran", _last(reference.error), ours.seconds, None)
    if ours.status:
        return Result(case.name, "failed", _last(ours.error), ours.seconds, ratio)
    if reference is None:
        return Result(case.name, "ran", "", ours.seconds, None)
    wrong = difference(ours.output, reference.output)
    if wrong:  # a comment of the program may say why that is right
        known = re.escape(f"# differs[{case.argument}]: ")
        said = re.search(rf"^{known}(.*)$", case.program.read_text(), re.MULTILINE)
        wrong = said.group(1) if said else wrong
    return Result(case.name, "different" if wrong else "same", wrong, ours.seconds, ratio)


# ---- the command ----


def main(arguments: list[str]) -> int:
    """Installs, runs, prints; 0 where nothing failed or differed."""
    parser = argparse.ArgumentParser(prog="./dev compat", description=__doc__)
    parser.add_argument("--only", default="", help="a pattern for the names of cases")
    parser.add_argument("--suites", help="a pattern for packages whose own tests run instead")
    parser.add_argument("--suite-seconds", type=float, default=1800.0, help="for one, twice")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "compat")
    parser.add_argument("--repositories", type=Path, default=ROOT / "build" / "compat" / "git")
    parser.add_argument("--torch", help="a search path with PyTorch, to compare with")
    parser.add_argument("--package", default=str(ROOT / "python"), help="one with rushlight")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--no-install", action="store_true")
    parser.add_argument("--json", type=Path, help="where the results go as well")
    parser.add_argument("--page", action="store_true", help="writes docs/compatibility.md")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    run_all = _suites if options.suites is not None else _programs
    return int(not run_all(folder, options))


def _suites(folder: Path, options: argparse.Namespace) -> bool:
    """Packages' own tests: whether nine of ten pass of each."""
    wanted = [suite for suite in suites.SUITES if re.search(options.suites, suite.project)]
    if not options.no_install:
        needs = {"pytest", *(need for suite in wanted for need in suite.needs.split())}
        install(folder, [suite.module for suite in wanted], sorted(needs))
        for suite in wanted:
            suites.install_pinned(suite, folder)
        clone(options.repositories, [suite.repository for suite in wanted])
    told = [suites.run(suite, folder, options) for suite in wanted]
    if options.page:
        page.write_suites(PAGE, suites.kept(folder), versions(folder))
    return all(t is None or t.passed >= 0.9 * t.counted for t in told)


def _programs(folder: Path, options: argparse.Namespace) -> bool:
    """The programs: whether nothing failed or differed."""
    wanted = [case for case in cases() if re.search(options.only, case.name)]
    if not options.no_install:
        install(folder, sorted({package for case in wanted for package in case.packages}))
        clone(options.repositories, sorted({r for case in wanted for r in case.repositories}))
    results: list[Result] = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda case: judge(case, folder, options), wanted):
            results.append(result)
            ratio = f"{result.ratio:5.2f}" if result.ratio is not None else "     "
            print(f"{result.verdict:9} {ratio} {result.name:45} {result.reason}", flush=True)
    count: dict[str, int] = {}
    for result in results:
        count[result.verdict] = count.get(result.verdict, 0) + 1
    print(", ".join(f"{n} {verdict}" for verdict, n in sorted(count.items())))
    if options.json:
        options.json.write_text(json.dumps([r._asdict() for r in results], indent=1))
    if options.page:
        by_name = {result.name: result for result in results}
        page.write_programs(PAGE, wanted, by_name, versions(folder), PROJECTS)
    return not (count.get("failed", 0) or count.get("different", 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
