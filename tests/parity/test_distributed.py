"""Processes of each library: distributed tensors, tensor parallelism, `fully_shard`, hooks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rushlight import distributed as dist

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(
        not (dist.is_gloo_available() and torch.distributed.is_available()),
        reason="built without Gloo",
    ),
    pytest.mark.timeout(300),
]

PROGRAMS = Path(__file__).parent / "programs"


def started(library, program, ranks, folder):
    folder.mkdir()
    path = PROGRAMS / f"{program}.py"
    alias = [] if library == "torch" else ["-m", "rushlight", "run"]
    return [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", *alias, str(path), str(rank), str(ranks), folder],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]


def results(library, program, ranks, folder):
    """What each process has found."""
    processes = started(library, program, ranks, folder)
    try:
        for process in processes:
            _, errors = process.communicate(timeout=250)
            assert process.returncode == 0, errors
    finally:
        for process in processes:
            process.kill()
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]


def differences(got, want, tolerance, path=()):
    """Where two results differ."""
    if isinstance(want, dict):
        assert list(got) == list(want), path
        for key in want:
            loose = 0.02 if key == "mixed" else tolerance
            yield from differences(got[key], want[key], loose, (*path, key))
    elif isinstance(want, list) and isinstance(got, list) and len(got) == len(want):
        for i, value in enumerate(want):
            yield from differences(got[i], value, tolerance, (*path, i))
    elif isinstance(want, (int, float)) and isinstance(got, (int, float)):
        if not abs(got - want) <= tolerance * max(1, abs(want)):
            yield path, got, want
    elif got != want:
        yield path, got, want


@pytest.mark.parametrize(
    "program, ranks, tolerance", [("distributed", 4, 2e-5), ("ddp_hooks", 2, 1e-7)]
)
def test_equals_pytorch(program, ranks, tolerance, tmp_path):
    want = results("torch", program, ranks, tmp_path / "torch")
    got = results("rushlight", program, ranks, tmp_path / "rushlight")
    for rank in range(ranks):
        found = list(differences(got[rank], want[rank], tolerance))
        assert not found, (rank, found[:10])


def launched(library, folder, options, program, *arguments):
    """What a launcher and its processes wrote: (status, lines of stdout, files of logs)."""
    folder.mkdir()
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-m", f"{library}.distributed.run", "--nproc-per-node=2", *options]
    paths = map(os.path.abspath, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    more = {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [*command, "program.py", *arguments],
        cwd=folder,
        env={**os.environ, **more, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=250,
    )
    files = {}
    for path in sorted(folder.glob("logs/*/**/*.log")):
        if text := path.read_text():
            files["/".join(path.relative_to(folder / "logs").parts[1:])] = text
    return run.returncode, sorted(run.stdout.splitlines()), files, run.stderr


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--log-dir=logs", "--redirects=3"),
        ("--log-dir=logs", "--redirects=0:1,1:2"),
        ("--log-dir=logs", "--tee=3"),
        ("--log-dir=logs", "--tee=1", "--redirects=2"),
        ("--log-dir=logs", "--tee=3", "--local-ranks-filter=1"),
        ("--local-ranks-filter=0",),
        ("--log-dir=logs", "--tee=1", "--role=trainer", "--rdzv-id=job"),
    ],
    ids=" ".join,
)
def test_launchers_show_and_keep_the_same(options, tmp_path):
    program = (
        "import os, sys\n"
        "os.write(1, b'out %s %s\\n' % tuple(os.environ[n].encode() for n in ('RANK', 'ROLE_NAME')))\n"
        "os.write(2, b'err %s\\n' % os.environ['RANK'].encode())  # in one piece, as two write\n"
    )
    want = launched("torch", tmp_path / "torch", ("--standalone", *options), program)
    got = launched("rushlight", tmp_path / "rushlight", ("--standalone", *options), program)
    assert got[:3] == want[:3], (got, want)
    for rank in range(2):
        assert (f"err {rank}" in got[3]) == (f"err {rank}" in want[3])


def test_the_program_for_clusters(tmp_path):
    """Two processes of either library's launcher have the same losses."""
    page = (Path(__file__).parents[2] / "docs" / "distributed.md").read_text()
    program = page.partition("```py\n# train.py")[2].partition("```")[0]
    program = "# train.py" + program + "    print(*torch.load(KEPT)['losses'])\n"
    found = {}
    for library in ("torch", "rushlight"):
        text = program.replace("rushlight", library)
        folder = tmp_path / library
        run = launched(library, folder, ("--standalone", "--tee=1", "--log-dir=logs"), text, "30")
        status, lines, _, errors = run
        assert status == 0 and len(lines) == 2, errors
        # Of rank 0, which has written the file: the other may see the one before.
        found[library] = [float(loss) for loss in lines[0].removeprefix("[default0]:").split()]
    assert len(found["rushlight"]) == 30
    assert found["rushlight"] == pytest.approx(found["torch"], rel=1e-4)
