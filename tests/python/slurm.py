"""A Slurm of one machine for a test: its two daemons, with a configuration in a folder of their own."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""


@contextlib.contextmanager
def started(folder):
    """The environment in which its commands work, while it runs."""
    path = os.environ["PATH"] + ":/usr/sbin"
    daemons = [shutil.which(name, path=path) for name in ("slurmctld", "slurmd")]
    if None in (*daemons, shutil.which("sbatch")) or os.getuid():
        pytest.skip("no Slurm (needs root, slurmctld, slurmd and slurm-client)")
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in (one, other)]
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    host = socket.gethostname().partition(".")[0]
    conf = folder / "slurm.conf"
    conf.write_text(CONFIGURATION.format(host=host, ports=ports, folder=folder))
    environment = {"SLURM_CONF": str(conf)}
    running = []
    try:
        for daemon in daemons:
            command = [daemon, "-D"]  # in the foreground
            running.append(subprocess.Popen(command, env={**os.environ, **environment}))
        limit = time.monotonic() + 60
        while "idle" not in _said("sinfo", environment):
            assert time.monotonic() < limit, (folder / "slurmd.log").read_text()
            time.sleep(0.2)
        yield environment
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _said(command, environment):
    run = subprocess.run(
        [command], env={**os.environ, **environment}, capture_output=True, text=True
    )
    return run.stdout
