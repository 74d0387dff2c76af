"""The recipes of docs/distributed.md, "Clusters": two processes train to the numbers of one, and after one is
killed the job goes on from its checkpoint.

Ray, accelerate and Lightning are those of the Python that RUSHLIGHT_ENGINES names, of this one by default.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import distributed as dist

from . import slurm
from .signals import with_own_signals

pytestmark = [
    pytest.mark.skipif(not dist.is_gloo_available(), reason="built without Gloo"),
    pytest.mark.timeout(400),
]

PACKAGE = Path(torch.__file__).parent.parent
PAGE = PACKAGE.parent / "docs" / "distributed.md"
ENGINES = os.environ.get("RUSHLIGHT_ENGINES", sys.executable)
SECONDS = 300
NET = "10.77.43"

SRUN = """
#!{python}
# srun as far as a program sees it: ranks in the environment; one that fails ends the others.
import os, subprocess, sys, time
count = int(os.environ["SLURM_NTASKS"])
command = sys.argv[2:]
assert sys.argv[1] == "--kill-on-bad-exit=1"
places = [{{"SLURM_PROCID": str(i), "SLURM_LOCALID": str(i)}} for i in range(count)]
tasks = [subprocess.Popen(command, env={{**os.environ, **place}}) for place in places]
while any(task.poll() is None for task in tasks):
    if any(task.poll() for task in tasks):
        for task in tasks:
            task.kill()
    time.sleep(0.02)
sys.exit(max(abs(task.returncode) for task in tasks))
"""


# ---- what the page says ----


def recipe(name, language="sh"):
    """The code of the part of the page that begins with **name."""
    _, _, part = PAGE.read_text().partition("## Clusters\n")[2].partition(f"\n**{name}")
    return re.search(rf"^```{language}\n(.*?)^```", part, re.MULTILINE | re.DOTALL)[1]


def programs(folder):
    """A folder with the programs of the page."""
    folder.mkdir(exist_ok=True)
    text = PAGE.read_text().partition("## Clusters\n")[2]
    for code, name in re.findall(r"^```py\n(# (\w+\.py).*?)^```", text, re.MULTILINE | re.DOTALL):
        (folder / name).write_text(code)
    return folder


def environment(folder, python=sys.executable, **values):
    """With the commands of the recipes in PATH."""
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    scripts = {
        "rushrun": f'#!/bin/sh\nexec {python} -m rushlight.distributed.run "$@"\n',
        "python": f'#!/bin/sh\nexec {python} "$@"\n',
        "srun": textwrap.dedent(SRUN).lstrip().format(python=python),
        "scontrol": "#!/bin/sh\necho 127.0.0.1\n",
    }
    for name, text in scripts.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    path = os.pathsep.join([str(tools), str(Path(python).parent), os.environ["PATH"]])
    own = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    more = {"PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return {**own, **more, "PATH": path, **values}


def start(command, folder, inside=(), **values):
    with open(folder / "output", "ab") as output:
        return subprocess.Popen(
            [*inside, "sh", "-c", command],
            cwd=folder,
            env=environment(folder, **values),
            stdout=output,
            stderr=output,
            preexec_fn=with_own_signals,
            start_new_session=True,  # `end` ends all of it
        )


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


# ---- processes ----


def processes():
    """(Number, command, folder and environment) of those that this user has."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            texts = (path / "cmdline").read_bytes(), (path / "environ").read_bytes()
            command, places = (text.decode(errors="replace").split("\0") for text in texts)
            variables = dict(place.partition("=")[::2] for place in places)
            yield int(path.name), command, Path(os.readlink(path / "cwd")), variables


def workers(folder, program="train.py"):
    """The numbers of processes that train in a folder, by rank."""
    found = {}
    for number, command, place, variables in processes():
        if place == folder and program in command:
            for name in ("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"):
                if name in variables:
                    found.setdefault(int(variables[name]), number)
    return found


def end(jobs, seconds=60):
    """Let jobs end that a test has left, with all that they have started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        limit = time.monotonic() + seconds
        for job in jobs:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, number)
        while any(_has_members(job) for job in jobs) and time.monotonic() < limit:
            time.sleep(0.02)


def _has_members(job):
    job.poll()
    try:
        os.killpg(job.pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(what, jobs=(), seconds=SECONDS):
    """What `what` returns, once that is something; nothing if the jobs are over before."""
    limit = time.monotonic() + seconds
    while not (found := what()):
        if jobs and all(job.poll() is not None for job in jobs):
            return None
        assert time.monotonic() < limit, f"nothing came in {seconds} s"
        time.sleep(0.002)
    return found


def losses(folder):
    return torch.load(folder / "last.pt")["losses"]


def output(folder):
    path = folder / "output"
    return path.read_text(errors="replace") if path.exists() else ""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The losses of one process that has all samples."""
    folder = programs(tmp_path_factory.mktemp("alone"))
    place = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    job = start("python train.py 300", folder, **place)
    assert job.wait(SECONDS) == 0, output(folder)
    return losses(folder)


def assert_same(found, alone):
    assert len(found) == len(alone) == 300
    torch.testing.assert_close(torch.tensor(found), torch.tensor(alone), rtol=1e-3, atol=0)
    assert found[-1] < 0.01 * found[0]


def killed_after_a_checkpoint(begin, folder):
    """The status of a job, process 1 of which was killed once there was a checkpoint."""
    for _ in range(5):
        (folder / "last.pt").unlink(missing_ok=True)
        job = begin()
        try:
            wait_for((folder / "last.pt").exists, [job])
            number = workers(folder).get(1)
            if number is not None:
                os.kill(number, signal.SIGKILL)
                before = len(losses(folder))
                status = job.wait(SECONDS)
                if before < 300:
                    return status
            job.wait(SECONDS)  # it was over before
        finally:
            end([job])
    raise AssertionError("no process could be killed before the training was over")


# ---- one machine ----


MPI = shutil.which("mpirun", path=f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}")


def of_accelerate():
    return needs("accelerate")


def of_mpi():
    if MPI is None:
        pytest.skip("no MPI (pip install mpich)")
    text = subprocess.run([MPI, "--version"], capture_output=True, text=True).stdout
    if "Open MPI" not in text:
        return {}
    values = {"ALLOW_RUN_AS_ROOT": "1", "ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {f"OMPI_{k}": v for k, v in values.items()} | {
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"
    }


def needs(package):
    """The settings of a recipe that needs a package."""
    code = f"import importlib.util as u; raise SystemExit(u.find_spec({package!r}) is None)"
    if subprocess.run([ENGINES, "-c", code]).returncode:
        pytest.skip(f"no {package} (RUSHLIGHT_ENGINES names a Python that has it)")
    return {"python": ENGINES}


def of_slurm():
    return {"SLURM_JOB_ID": free_port(), "SLURM_NTASKS": "2", "SLURM_JOB_NODELIST": "node[1-2]"}


RECIPES = {
    "rushrun**, on one": dict,
    "mpirun": of_mpi,
    "Slurm": of_slurm,
    "accelerate": of_accelerate,
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_process_is_killed(name, tmp_path, alone):
    """Without a fault, and with one, the job gives the losses of one process."""
    values = RECIPES[name]()
    command = recipe(name).replace("MASTER_PORT=29500", f"MASTER_PORT={free_port()}")
    folder = programs(tmp_path)
    job = start(command, folder, **values)
    assert job.wait(SECONDS) == 0, output(folder)
    assert_same(losses(folder), alone)
    status = killed_after_a_checkpoint(lambda: start(command, folder, **values), folder)
    assert status == 0, output(folder)
    assert_same(losses(folder), alone)


def test_slurm(tmp_path, alone):
    """Slurm itself, where it is installed."""
    folder = programs(tmp_path / "job")
    (folder / "job.sh").write_text("#!/bin/sh\n" + recipe("Slurm"))
    with slurm.started(tmp_path / "slurm") as variables:

        def begin():
            values = environment(folder, **variables)
            for name in ("srun", "scontrol"):
                (folder / "bin" / name).unlink()
            command = ["sbatch", "--wait", "--nodes", "1", "--ntasks", "2", "job.sh"]
            return subprocess.Popen(command, cwd=folder, env=values, start_new_session=True)

        status = killed_after_a_checkpoint(begin, folder)
        said = "".join(path.read_text() for path in folder.glob("slurm-*.out"))
        assert status == 0, said
    assert_same(losses(folder), alone)


def test_lightning(tmp_path, alone):
    values = needs("lightning")
    folder = programs(tmp_path)
    kept = folder / "kept" / "last.ckpt"
    job = start(recipe("Lightning"), folder, **values)
    try:
        assert wait_for(kept.exists, [job]), output(folder)
        os.kill(workers(folder, "light.py")[1], signal.SIGKILL)
        assert job.wait(SECONDS) == 0, output(folder)
    finally:
        end([job])
    assert "Restored all states" in output(folder) or "Restoring states" in output(folder)
    assert float(torch.load(folder / "loss.pt")) == pytest.approx(alone[-1], rel=1e-3)


@pytest.mark.timeout(900)
def test_ray(tmp_path, alone):
    values = {**needs("ray"), "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "200"}
    folder = programs(tmp_path)
    job = start("python -m rushlight run ray_train.py 40", folder, **values)
    try:
        checkpoints = lambda: sorted((folder / "kept" / "job").glob("checkpoint_*/last.pt"))
        assert wait_for(checkpoints, [job], 600), output(folder)
        trains = [n for n, command, *_ in processes() if "RayTrainWorker" in command[0]]
        before = len(torch.load(checkpoints()[-1])["losses"])
        os.kill(trains[-1], signal.SIGKILL)
        assert job.wait(600) == 0 and 0 < before < 40, output(folder)
        found = torch.load(checkpoints()[-1])["losses"]
    finally:
        end([job])
    assert len(found) == 40
    assert found == pytest.approx(alone[:40], rel=1e-3)


# ---- two machines ----


@contextlib.contextmanager
def namespaces():
    """Two network namespaces with a link between them: (what a command begins with, its address)."""

    def ip(words, **options):
        return subprocess.run(["ip", *words.split()], capture_output=True, text=True, **options)

    names = [f"rushlight{os.getpid()}_{i}" for i in range(2)]
    try:
        for name in names:
            ip(f"netns add {name}", check=True)
        ends = [f"netns {names[0]} type veth peer name eth0", f"netns {names[1]}"]
        ip(f"link add eth0 {' '.join(ends)}", check=True)
        for i, name in enumerate(names):
            ip(f"-n {name} addr add {NET}.{i + 1}/24 dev eth0", check=True)
            for device in ("lo", "eth0"):
                ip(f"-n {name} link set {device} up", check=True)
        yield [(("ip", "netns", "exec", name), f"{NET}.{i + 1}") for i, name in enumerate(names)]
    finally:
        for name in names:
            ip(f"netns del {name}")


@pytest.fixture(params=["namespaces", "addresses"])
def hosts(request):
    """Two machines: what a command begins with, and an address, for each."""
    if request.param == "addresses":
        yield [((), "127.0.0.1"), ((), "127.0.0.2")]
        return
    stack = contextlib.ExitStack()
    with stack:
        try:
            found = stack.enter_context(namespaces())
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no network namespaces: {type(error).__name__}")
        yield found


def on_both(hosts, tmp_path, command):
    """One job on each machine, which see one folder as their own, and the folders."""
    port = free_port()
    command = command.replace("node1:29400", f"{hosts[0][1]}:{port}")
    folders = []
    for i in range(2):
        folder = tmp_path / f"node{i}"
        folder.mkdir(exist_ok=True)
        program = programs(folder) / "train.py"
        program.write_text(program.read_text().replace('"last.pt"', f'"{tmp_path}/last.pt"'))
        folders.append(folder)

    def begin(i):
        return start(command, folders[i], hosts[i][0])

    begin.port = int(port)
    return begin, folders


def listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_two_machines_take_part(hosts, tmp_path, alone):
    command = recipe("rushrun, on several").replace("--nnodes 1:2", "--nnodes 2")
    begin, folders = on_both(hosts, tmp_path, command)
    jobs = [begin(0), begin(1)]
    try:
        assert [job.wait(SECONDS) for job in jobs] == [0, 0], [*map(output, folders)]
    finally:
        end(jobs)
    assert_same(losses(tmp_path), alone)


def worker_of(folder):
    return next(iter(workers(folder).values()), None)


@pytest.mark.parametrize("what", ["a worker", "a machine", "a machine asked to end"])
def test_a_machine_dies_and_comes_back(what, hosts, tmp_path, alone):
    """The other goes on alone from the checkpoint, and with it again once it is back."""
    command = recipe("rushrun, on several").replace("last_call_timeout=5", "last_call_timeout=1")
    command = command.replace("300\n", "3000\n")
    begin, folders = on_both(hosts, tmp_path, command)
    jobs = [begin(0)]
    if not hosts[0][0]:  # on one machine whoever comes first keeps the store
        wait_for(lambda: listens(begin.port), jobs)
    jobs.append(begin(1))
    kept = tmp_path / "last.pt"
    try:
        wait_for(lambda: worker_of(folders[0]) and worker_of(folders[1]) and kept.exists(), jobs)
        first = worker_of(folders[0])
        if what == "a worker":
            os.kill(worker_of(folders[1]), signal.SIGKILL)
        elif what == "a machine":
            os.kill(launcher(folders[1]), signal.SIGKILL)
        else:
            os.kill(launcher(folders[1]), signal.SIGTERM)
        again = wait_for(
            lambda: worker_of(folders[0]) not in (None, first) and worker_of(folders[0]), jobs
        )
        if what != "a worker":
            jobs[1].wait(SECONDS)
            before = len(losses(tmp_path))
            wait_for(lambda: len(losses(tmp_path)) > before, jobs[:1])  # alone
            jobs[1] = begin(1)
            wait_for(lambda: worker_of(folders[1]), jobs)
            assert wait_for(lambda: worker_of(folders[0]) not in (None, again), jobs)
        before = len(losses(tmp_path))
        assert wait_for(lambda: len(losses(tmp_path)) > before, jobs), [*map(output, folders)]
        found = losses(tmp_path)[: len(alone)]
        assert found == pytest.approx(alone[: len(found)], rel=1e-3)
    finally:
        end(jobs)
    assert not any(map(workers, folders))  # no process outlives its launcher


def launcher(folder):
    """The number of the launcher in a folder."""
    for number, command, place, variables in processes():
        if place == folder and "rushlight.distributed.run" in command and "RANK" not in variables:
            return number
    raise AssertionError(f"no launcher in {folder}")
