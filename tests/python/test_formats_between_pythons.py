"""Files of every format, written and read again; what is written does not depend on the release."""

import enum
import operator
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from . import files_between_pythons as files

pytestmark = pytest.mark.filterwarnings("ignore")


def test_what_is_written_is_read(tmp_path):
    files.write(tmp_path / "own")
    files.read(tmp_path / "own")


def another_release():
    """An interpreter of this machine that loads the same extension, of another release; None for none."""
    name = "python{}.{}".format(*sys.version_info)
    ask = "import sys, sysconfig; print(sys.version.split()[0], sysconfig.get_config_var('SOABI'))"
    own = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout.split()
    for folder in ("/usr/bin", "/usr/local/bin", *os.environ.get("PATH", "").split(os.pathsep)):
        path = shutil.which(name, path=folder)
        found = path and subprocess.run([path, "-c", ask], capture_output=True, text=True)
        release, abi = (found.stdout.split() if found else None) or own
        if release != own[0] and abi == own[1]:
            return path
    return None


@pytest.mark.timeout(300)
def test_another_release_reads_what_this_one_writes_and_the_other_way_round(tmp_path):
    other = another_release()
    if other is None:
        pytest.skip("no other release of this Python")
    root = Path(__file__).resolve().parents[2]
    # What makes this process find the package, and no packages of others.
    package = Path(files.torch.__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(package), str(root)))}
    for python, deed, who in (
        (other, "write", "other"),
        (sys.executable, "write", "own"),
        (other, "read", "own"),
        (sys.executable, "read", "other"),
    ):
        command = [python, "-W", "ignore", "-m", "tests.python.files_between_pythons", deed]
        done = subprocess.run(
            [*command, str(tmp_path / who)],
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-4000:]


def members_by_name(monkeypatch):
    """Pickles of Enums as Python 3.11.2 makes them."""

    def of_enum(self, protocol):
        return getattr, (type(self), self.name)

    def of_flag(self, protocol):
        first, *rest = type(self)
        parts = [member for member in (first, *rest) if member.value & self.value]
        if len(parts) == 1:
            return getattr, (type(self), parts[0].name)
        return operator.or_, (parts[1], parts[0])

    monkeypatch.setattr(enum.Enum, "__reduce_ex__", of_enum)
    monkeypatch.setattr(enum.Flag, "__reduce_ex__", of_flag)


def test_what_a_python_writes_that_pickles_members_by_name(tmp_path, monkeypatch):
    """Both ways: the same bytes leave it, and what others wrote there is read."""
    files.write(tmp_path / "new")
    with monkeypatch.context() as patched:
        members_by_name(patched)
        # The methods that `_files.pickled` knows are the ones of this release.
        patched.setattr(
            files.torch._files.pickled, "_ENUMS", (enum.Enum.__reduce_ex__, enum.Flag.__reduce_ex__)
        )
        files.write(tmp_path / "by name")
    files.read(tmp_path / "by name")
    for path in sorted((tmp_path / "new").glob("*.pt")):
        there = tmp_path / "by name" / path.name
        if zipfile.is_zipfile(path):
            ours, theirs = zipfile.ZipFile(path), zipfile.ZipFile(there)
            names = [name for name in ours.namelist() if name.endswith("data.pkl")]
            assert [ours.read(n) for n in names] == [theirs.read(n) for n in names], path.name
        else:
            assert path.read_bytes() == there.read_bytes(), path.name
    metadata = (tmp_path / "by name/distributed/.metadata").read_bytes()
    assert b"getattr" not in metadata
    plain = (tmp_path / "by name/plain2.pickle").read_bytes()
    assert b"getattr" in plain and b"or_" in plain  # that is Python's own, and was read above
