"""The engine nccl: on a device of host memory (tests/fake_gpu), and what can be known without one."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight
from rushlight import distributed as dist
from rushlight.distributed import _kinds
from tests.cuda_on_host.build import package

ROOT = Path(__file__).parents[2]
FAKE = ROOT / "build/release/fake_gpu"
CUDA_HEADERS = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"]

pytestmark = pytest.mark.timeout(120)
on_the_fake_device = pytest.mark.skipif(
    not (FAKE / "librushlight_cuda.so").exists()
    or (ROOT / "python/rushlight/lib").resolve() != Path(rushlight.__file__).parent / "lib",
    reason="the device of tests/fake_gpu is built with the repository's own build",
)


# What takes both engines.
beside_gloo = pytest.mark.skipif(not dist.is_gloo_available(), reason="built without Gloo")


@pytest.fixture(scope="module")
def environment():
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (package(FAKE), ROOT))),
        "RUSHLIGHT_NCCL_LIBRARY": str(FAKE / "librushlight_cuda.so"),
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "2",
    }


def start(environment, case, ranks, *args):
    program = [sys.executable, "-m", "tests.python.distributed_nccl_program"]
    return subprocess.run(
        [*program, case, str(ranks), *map(repr, args)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )


@on_the_fake_device
@pytest.mark.parametrize(
    "case, ranks",
    [
        ("reductions", 3),
        ("movements", 3),
        ("messages", 3),
        ("streams", 2),
        ("training", 2),
        ("late", 2),
        ("mismatch", 2),
    ],
)
def test_processes(environment, case, ranks):
    ended = start(environment, case, ranks)
    assert ended.returncode == 0 and "all is done" in ended.stdout, ended.stdout + ended.stderr


# What the tests of gloo do with models and distributed tensors.
@on_the_fake_device
@pytest.mark.parametrize(
    "case, ranks, args",
    [
        ("ddp_traffic_workers.hooks", 2, ()),
        ("ddp_workers.normalised", 2, ()),
        ("ddp_workers.uneven", 3, ()),
        pytest.param("ddp_workers.grid", 4, (), marks=beside_gloo),
        ("fsdp_workers.mixed", 2, ()),
        ("fsdp_workers.hybrid", 4, ()),
        ("fully_shard_workers.in_turn", 2, ("overlapped gradients mixed optimizers",)),
        ("tensor_workers.ops", 2, (1,)),
        ("tensor_workers.moves", 4, (2,)),
        ("tensor_workers.parallel", 2, (True,)),
        ("checkpoint_workers.safe", 2, ("FOLDER",)),
        ("checkpoint_workers.together", 2, ("FOLDER",)),
    ],
)
def test_models(environment, case, ranks, args, tmp_path):
    args = [str(tmp_path / "kept") if arg == "FOLDER" else arg for arg in args]
    ended = start(environment, f"distributed_{case}", ranks, *args)
    assert ended.returncode == 0 and "all is done" in ended.stdout, ended.stdout + ended.stderr


@on_the_fake_device
def test_a_process_ends_before_it_goes_on_with_what_was_not_received(environment):
    with_teardown = {**environment, "TORCH_NCCL_ASYNC_ERROR_HANDLING": "3"}
    ended = start(with_teardown, "ends", 2)
    assert "process 0 terminated with exit code 1" in ended.stderr, ended.stderr
    assert "Watchdog caught collective operation timeout: all_reduce" in ended.stderr
    assert "rank 1 has not come to it (call 2 of the group" in ended.stderr
    assert "it went on" not in ended.stdout


def test_without_a_library():
    program = (
        "from rushlight import distributed as dist\n"
        "assert not dist.is_nccl_available() and not dist.is_backend_available('nccl')\n"
        "try: dist.ProcessGroupNCCL(dist.HashStore(), 0, 1)\n"
        "except RuntimeError as e: assert 'libnccl.so.2 was not found' in str(e), e\n"
        "else: raise SystemExit('started')\n"
    )
    environment = {**os.environ, "RUSHLIGHT_NCCL_LIBRARY": "/nowhere/libnccl.so.2"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)


needs_nccl = pytest.mark.skipif(
    not dist.is_nccl_available(), reason="no NCCL (pip install nvidia-nccl-cu13)"
)


def real_library():
    types = rushlight._C._load_distributed()
    return types._engine_library("nccl", _kinds._nccl_folders())


@needs_nccl
def test_the_real_library_loads():
    """All functions that are called are there, and what needs no GPU works."""
    library = ctypes.CDLL(real_library())
    header = (ROOT / "src/distributed/nccl/nccl.h").read_text()
    names = re.findall(r"^  _\((\w+), \(", header, re.MULTILINE)
    assert len(names) > 15
    for name in [*names, "GetErrorString", "GetLastError"]:
        getattr(library, f"nccl{name}")
    made = (ctypes.c_char * 128)()
    assert library.ncclGetUniqueId(made) == 0 and any(bytes(made))


AGREES = """
#include <nccl.h>
#include <type_traits>
#include "distributed/nccl/nccl.h"
// Whether two functions take as many arguments, each of the same kind and size.
template <class A, class B>
constexpr bool alike = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
                       std::is_class_v<A> == std::is_class_v<B>;
template <class R, class... A, class S, class... B>
constexpr bool same(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) == sizeof...(B)) return (alike<R, S> && ... && alike<A, B>);
  return false;
}
namespace nccl = rushlight::distributed::nccl;
#define CHECK(name, parameters) static_assert(same(&nccl##name, decltype(nccl::Api::name){}), #name);
RL_NCCL_FUNCTIONS(CHECK)
static_assert(nccl::sum == ncclSum && nccl::product == ncclProd && nccl::max == ncclMax &&
              nccl::min == ncclMin && nccl::average == ncclAvg && nccl::bytes_type == ncclInt8);
static_assert(nccl::success == ncclSuccess && nccl::in_progress == ncclInProgress);
static_assert(offsetof(nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
"""


@needs_nccl
def test_the_real_header_agrees(tmp_path):
    """What is declared of NCCL's interface has the sizes and the numbers of its header."""
    include = Path(real_library()).parents[1] / "include"
    if not (include / "nccl.h").exists() or shutil.which("g++") is None:
        pytest.skip("no header of NCCL's, or no compiler")
    cuda = next((p for p in CUDA_HEADERS if (p / "cuda_runtime.h").exists()), None)
    if cuda is None:
        pytest.skip("no headers of CUDA")
    (tmp_path / "agrees.cpp").write_text(AGREES)
    folders = [include, cuda, ROOT / "include", ROOT / "src", ROOT / "build/release/include"]
    subprocess.run(
        ["g++", "-std=c++20", "-fsyntax-only", *(f"-I{f}" for f in folders), "agrees.cpp"],
        cwd=tmp_path,
        check=True,
    )
