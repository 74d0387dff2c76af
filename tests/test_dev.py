"""What `./dev` installs by itself, with stand-ins for the system's programs."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def shell(tmp_path):
    """Runs shell code behind the functions of `dev`, whose headers lie in a folder of the test."""
    functions = (ROOT / "dev").read_text().partition("\ncommand=")[0]
    for header in ("gloo/context.h", "jpeglib.h"):
        assert f"/usr/include/{header}" in functions
        functions = functions.replace(f"/usr/include/{header}", str(tmp_path / Path(header).name))
    (tmp_path / "bin").mkdir()
    (tmp_path / "venv").mkdir()

    def run(code, user=0, installs=True):
        programs = {
            "id": f"echo {user}",
            "apt-get": f'echo "apt-get $1" >>{tmp_path}/calls; {"true" if installs else "false"}',
        }
        for name, content in programs.items():
            (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{content}\n")
            (tmp_path / "bin" / name).chmod(0o755)
        start = f"{functions}\nvenv={tmp_path}/venv\nPATH={tmp_path}/bin:$PATH\n"
        command = ["sh", "-eu", "-c", start + code]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        calls = tmp_path / "calls"
        called = calls.read_text().split("\n")[:-1] if calls.exists() else []
        calls.unlink(missing_ok=True)
        return ended.stdout + ended.stderr, called

    return run


def test_what_is_missing_is_said_once(shell, tmp_path):
    said, called = shell("optional_setup; optional_setup", user=1000)
    assert called == [] and said.splitlines() == [
        "dev: for training by several processes: sudo apt install libgloo-dev",
        "dev: for faster reading of JPEG files: sudo apt install libjpeg-dev",
    ]
    assert shell("optional_setup", user=1000) == ("", [])
    (tmp_path / "venv/rushlight-optional.stamp").unlink()  # as `./dev setup` does
    (tmp_path / "context.h").touch()
    assert "libgloo-dev" not in shell("optional_setup", user=1000)[0]


@pytest.mark.parametrize("installs", [True, False])
def test_root_installs_what_is_missing(shell, installs):
    said, called = shell("optional_setup", installs=installs)
    assert called == ["apt-get update", "apt-get install", "apt-get install"]
    assert "dev: installing libgloo-dev" in said and "dev: installing libjpeg-dev" in said
    assert ("libgloo-dev could not be installed" in said) is not installs
    assert shell("optional_setup", installs=installs) == ("", [])  # tried once


def test_what_was_installed_later_is_built(shell, tmp_path):
    cache = tmp_path / "CMakeCache.txt"
    cache.write_text("RL_GLOO_INCLUDE:PATH=RL_GLOO_INCLUDE-NOTFOUND\nRL_JPEG_INCLUDE:PATH=/x\n")
    asks = "if optional_is_new .; then echo new; else echo old; fi"
    assert shell(asks)[0] == "old\n"
    (tmp_path / "jpeglib.h").touch()
    assert shell(asks)[0] == "old\n"
    (tmp_path / "context.h").touch()
    assert shell(asks)[0] == "new\n"


def test_demo_and_test_set_up_what_they_can():
    """Both go through `environment`, and so does the build that each begins with."""
    text = (ROOT / "dev").read_text()
    environment = text.partition("\nenvironment() {")[2].partition("\n}\n")[0]
    assert "  optional_setup\n" in environment
    for name in ("demo", "run_tests", "configure", "setup"):
        body = text.partition(f"\n{name}() {{")[2].partition("\n}\n")[0]
        assert "  environment build" in body, name
    first = (ROOT / ".ci/run").read_text().partition("\nstatus=0\n")[2].lstrip()
    assert first.startswith("./dev demo\n") and "\n./dev test 2>&1" in first


@pytest.mark.parametrize(("user", "said"), [(0, "dev: installing chromium"), (1000, "")])
def test_a_browser_is_installed_or_missed(shell, user, said):
    """Without one the check of the site goes on, and says what it leaves out."""
    gone = "command() { [ $2 != chromium ]; }\n"  # wherever the machine has one
    printed, called = shell(f"{gone}browser_setup || echo left", user=user)
    assert called == (["apt-get update", "apt-get install"] if user == 0 else [])
    assert said in printed and "dev: no chromium: pages and search are not tried" in printed
    assert "left" not in printed
    assert shell("command() { true; }\nbrowser_setup", user=user) == ("", [])
