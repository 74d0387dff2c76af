"""Packages' own tests, run with rushlight in PyTorch's place and beside PyTorch.

    ./dev compat --suites '' --torch PATH        all of them
    ./dev compat --suites 'einops|timm' ...      those whose name fits

The package is what pip installed; of its repository (by git, or below --repositories) come the
tests alone. What fails is run beside PyTorch in the same environment, and counts where it passes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent


class Suite(NamedTuple):
    """The tests of a package."""

    project: str  # pip's
    module: str
    repository: str  # GitHub's: owner/name
    copied: str  # what is needed of it, as paths that lie in a folder of their own then
    arguments: str  # for pytest, there
    part: int = 1  # every n-th test
    needs: str = ""  # what pip installs besides
    pinned: str = ""  # other versions than the environment's, in a folder of their own
    variables: str = ""  # of the environment: NAME=VALUE


SUITES = [
    Suite(
        "einops",
        "einops",
        "arogozhnikov/einops",
        "einops/tests",
        "tests",
        variables="EINOPS_TEST_BACKENDS=numpy,torch",
    ),
    Suite(
        "safetensors",
        "safetensors",
        "huggingface/safetensors",
        "bindings/python/tests bindings/python/py_src",
        "tests/test_pt_comparison.py tests/test_pt_model.py tests/test_simple.py"
        " tests/test_multithreaded.py tests/test_threadable.py tests/test_handle.py",
    ),
    Suite(
        "timm",
        "timm",
        "huggingface/pytorch-image-models",
        "tests",
        "tests",
        part=24,
        variables="GITHUB_ACTIONS=1",  # without the largest models
    ),
    Suite(
        "torchmetrics",
        "torchmetrics",
        "Lightning-AI/torchmetrics",
        "tests",
        "tests/unittests",
        part=100,
        needs="pytest-doctestplus pytest-rerunfailures fire cachier cloudpickle scikit-learn",
    ),
    Suite(
        "transformers",
        "transformers",
        "huggingface/transformers",
        "src tests utils conftest.py pyproject.toml",
        " ".join(
            f"tests/models/{name}" for name in ("bert", "gpt2", "llama", "t5", "vit", "whisper")
        ),
        part=4,
        needs="parameterized pytest-xdist httpx datasets",
        pinned="huggingface_hub<2",
    ),
    Suite("gpytorch", "gpytorch", "cornellius-gp/gpytorch", "test", "test", part=2),
    Suite("pyro-ppl", "pyro", "pyro-ppl/pyro", "tests setup.cfg", "tests", part=40),
    Suite(
        "torchdiffeq",
        "torchdiffeq",
        "rtqichen/torchdiffeq",
        "tests",
        "tests/api_tests.py tests/event_tests.py tests/gradient_tests.py tests/norm_tests.py tests/odeint_tests.py",
    ),
    Suite(
        "kornia", "kornia", "kornia/kornia", "tests testing conftest.py pyproject.toml", "tests", 60
    ),
    Suite("captum", "captum", "pytorch/captum", "tests", "tests", needs="parameterized", part=6),
    Suite(
        "pytorch-lightning",
        "pytorch_lightning",
        "Lightning-AI/pytorch-lightning",
        "tests requirements",
        "tests/tests_pytorch",
        part=20,
        needs="cloudpickle scikit-learn pandas psutil pytest-timeout pytest-rerunfailures",
    ),
    Suite(
        "pytorch-ignite",
        "ignite",
        "pytorch/ignite",
        "tests pyproject.toml",
        "tests/ignite",
        part=20,
        needs="scikit-learn scikit-image tqdm dill filelock",
    ),
    Suite(
        "skorch",
        "skorch",
        "skorch-dev/skorch",
        "skorch/tests",
        "tests",
        needs="flaky pandas",
        part=4,
    ),
    Suite(
        "torch-geometric",
        "torch_geometric",
        "pyg-team/pytorch_geometric",
        "test pyproject.toml",
        "test/nn test/utils",
        part=12,
    ),
]


class Told(NamedTuple):
    """What came of a suite."""

    project: str
    tests: str  # the state of the repository
    part: int
    passed: int  # with rushlight
    failing: list[tuple[str, str]]  # those that pass beside PyTorch alone, with what they say
    open: int  # that fail here, and were not reached beside PyTorch within the time

    @property
    def counted(self) -> int:
        return self.passed + len(self.failing)


def install_pinned(suite: Suite, folder: Path) -> None:
    """Puts a suite's own versions of other projects aside."""
    place = folder / "pinned" / suite.project
    if suite.pinned and not place.exists():
        pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--no-deps", "--target", str(place), *suite.pinned.split()])


def _run(
    suite: Suite,
    folder: Path,
    place: Path,
    outcomes: Path,
    torch: str | None,
    options: argparse.Namespace,
    only: list[str] | None = None,
) -> None:
    """Runs pytest until it ends by itself: on all of a suite, or on some tests and files."""
    command = [str(folder / "venv" / "bin" / "python"), "-m", "pytest", "-p", "outcomes"]
    command += [] if torch else ["-p", "rushlight.as_torch"]
    command += ["-q", "--no-header", "--continue-on-collection-errors", "-p", "no:cacheprovider"]
    paths = [str(folder / "pinned" / suite.project)] if suite.pinned else []
    paths += [torch or options.package, str(HERE / "plugin")]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(paths), PYTHONDONTWRITEBYTECODE="1")
    environment.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", MPLBACKEND="agg")
    # Threads that wait for each other are slow on a busy machine.
    environment.update(OMP_NUM_THREADS="1")
    environment.update(COMPAT_OUTCOMES=str(outcomes), COMPAT_PART=str(suite.part))
    environment.update(COMPAT_SECONDS="300", COMPAT_ONLY=json.dumps(only))
    arguments = suite.arguments.split()
    if only is not None:
        arguments = sorted({test.partition("::")[0] for test in only})
    for variable in suite.variables.split():
        name, _, environment[name] = variable.partition("=")
    deadline = time.monotonic() + options.suite_seconds
    with outcomes.with_suffix(".log").open("w") as log:
        while (left := deadline - time.monotonic()) > 0:
            before = outcomes.stat().st_size if outcomes.exists() else 0
            try:
                done = subprocess.run(
                    [*command, *arguments],
                    cwd=place,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    timeout=left,
                )
            except subprocess.TimeoutExpired:
                _forget_the_unfinished(outcomes)
                return
            ended = 0 <= done.returncode <= 5
            if ended or not outcomes.exists() or outcomes.stat().st_size == before:
                return


def _forget_the_unfinished(outcomes: Path) -> None:
    """The last test did not die, its time was up."""
    lines = outcomes.read_text().splitlines(keepends=True) if outcomes.exists() else []
    if lines and json.loads(lines[-1])["outcome"] == "died":
        outcomes.write_text("".join(lines[:-1]))


def _read(outcomes: Path) -> dict[str, dict]:
    lines = outcomes.read_text().splitlines() if outcomes.exists() else []
    return {line["test"]: line for line in map(json.loads, lines)}


def _reason(text: str) -> str:
    """The line that names the exception."""
    raised = re.findall(r"^E   +(\S.*)$", text, re.MULTILINE) or text.strip().splitlines()
    named = [line for line in raised if re.match(r"[\w.]*(Error|Exception|Warning|Failed)\b", line)]
    return (named or raised or ["nothing was said"])[-1][:200]


def run(suite: Suite, folder: Path, options: argparse.Namespace) -> Told | None:
    """Runs one, prints and keeps what came of it; None where there is nothing of it."""
    repository = options.repositories / suite.repository.partition("/")[2]
    if not repository.exists():
        print(f"{suite.project}: no repository")
        return None
    place = folder / "suites" / suite.project
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name in suite.copied.split():
        source = repository / name
        if source.is_dir():
            shutil.copytree(source, place / source.name)
        else:
            shutil.copy(source, place)
    ours, theirs = (folder / "suites" / f"{suite.project}.{who}" for who in ("rushlight", "torch"))
    ours.unlink(missing_ok=True)
    _run(suite, folder, place, ours, None, options)
    return compare(suite, folder, place, options, ours, theirs)


def compare(suite: Suite, folder: Path, place: Path, options, ours: Path, theirs: Path) -> Told:
    """Runs beside PyTorch what failed; the others need no second opinion."""
    mine = _read(ours)
    passed = sum(line["outcome"] == "passed" for line in mine.values())
    failed = {test: line for test, line in mine.items() if line["outcome"] in ("failed", "died")}
    theirs.unlink(missing_ok=True)
    if failed:
        _run(suite, folder, place, theirs, options.torch, options, list(failed))
    with_torch = _read(theirs)
    failing, not_reached = [], 0
    for test, line in failed.items():
        # Of a file that does not import here all tests that it has.
        there = {t: w for t, w in with_torch.items() if t == test or t.startswith(test + "::")}
        said = _reason(line["why"])
        not_reached += not there
        failing += [(t, said) for t, w in there.items() if w["outcome"] == "passed"]
    git = ["git", "-C", str(options.repositories / suite.repository.partition("/")[2])]
    state = subprocess.run([*git, "describe", "--tags", "--always"], capture_output=True, text=True)
    told = Told(suite.project, state.stdout.strip(), suite.part, passed, failing, not_reached)
    (folder / "suites" / f"{suite.project}.json").write_text(json.dumps(told))
    print(f"{told.project:20} {told.tests:28} {passed} of {told.counted}", flush=True)
    for reason, n in Counter(reason for _, reason in failing).most_common(12):
        print(f"    {n:4} {reason}", flush=True)
    return told


def kept(folder: Path) -> list[Told]:
    """What came of all that were run."""
    files = sorted((folder / "suites").glob("*.json"))
    return [Told(*json.loads(file.read_text())) for file in files]
