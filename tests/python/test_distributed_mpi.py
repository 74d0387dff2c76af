"""The engine mpi, with the MPI that is installed: processes that mpirun starts."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rushlight import distributed as dist

mpirun = shutil.which("mpirun", path=f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}")

pytestmark = [
    pytest.mark.skipif(
        mpirun is None or not dist.is_mpi_available(), reason="no MPI (pip install mpich)"
    ),
    pytest.mark.timeout(120),
]


def start(case, ranks):
    options = []
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout
    if "Open MPI" in version or "PRRTE" in version.upper():
        options = ["--oversubscribe", "--allow-run-as-root"]
    return subprocess.run(
        [mpirun, *options, "-n", str(ranks), sys.executable, "-m"]
        + ["tests.python.distributed_mpi_program", case],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.mark.parametrize(
    "case, ranks", [("collectives", 2), ("collectives", 3), ("groups", 3), ("training", 2)]
)
def test_processes(case, ranks):
    ended = start(case, ranks)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("is done") == ranks


def test_faults():
    ended = start("faults", 2)
    assert ended.stdout.count("has ended") == 2, ended.stdout + ended.stderr


def test_a_process_alone():
    program = (
        "from rushlight import distributed as dist; import rushlight as torch\n"
        "dist.init_process_group('mpi'); t = torch.ones(3); dist.all_reduce(t)\n"
        "assert dist.get_world_size() == 1 and t.sum() == 3\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_other_launchers_do_not_bring_mpi(monkeypatch):
    assert dist.is_mpi_available()
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert not dist.is_mpi_available() and not dist.is_backend_available("mpi")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    assert dist.is_mpi_available()


def test_without_a_library(monkeypatch):
    program = (
        "from rushlight import distributed as dist\n"
        "assert not dist.is_mpi_available()\n"
        "try: dist.init_process_group('mpi')\n"
        "except RuntimeError as e: assert 'no MPI library was found' in str(e), e\n"
        "else: raise SystemExit('started')\n"
    )
    environment = {**os.environ, "RUSHLIGHT_MPI_LIBRARY": "/nowhere/libmpi.so"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)
