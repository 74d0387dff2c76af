"""Settings of the package and of its generators, and what it says of its build."""

import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch


def test_settings_can_be_read_again():
    before = torch.get_printoptions()["precision"]
    torch.set_printoptions(precision=2)
    assert torch.get_printoptions()["precision"] == 2
    torch.set_printoptions(precision=before)
    assert torch.get_default_device() == torch.device("cpu")
    torch.set_default_device("meta")
    try:
        assert torch.get_default_device() == torch.device("meta")
    finally:
        torch.set_default_device(None)
    torch.set_deterministic_debug_mode("warn")
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_deterministic_debug_mode(0)
    assert torch.get_float32_matmul_precision() == "highest"
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled()
    assert not torch.is_inference_mode_enabled()
    seed = torch.seed()
    assert torch.initial_seed() == seed
    torch.manual_seed(0)


def test_flags_of_libraries():
    backends = torch.backends
    with backends.cudnn.flags(enabled=False, benchmark=True):
        assert not backends.cudnn.enabled and backends.cudnn.benchmark
    assert backends.cudnn.enabled
    with backends.opt_einsum.flags(strategy="greedy"):
        assert backends.opt_einsum.strategy == "greedy"
    for name in ("flash", "mem_efficient", "math", "cudnn"):
        enable = getattr(backends.cuda, f"enable_{name}_sdp")
        enabled = getattr(backends.cuda, f"{name}_sdp_enabled")
        enable(False)
        assert not enabled()
        enable(True)
        assert enabled()
    backends.mha.set_fastpath_enabled(False)
    assert not backends.mha.get_fastpath_enabled()
    backends.mha.set_fastpath_enabled(True)
    assert not any(
        module.is_available()
        for module in (backends.mkl, backends.nnpack, backends.cusparselt, backends.opt_einsum)
    )
    assert backends.openmp.is_available() and not backends.flags_frozen()
    assert not backends.mps.is_built() and not backends.mps.is_macos_or_newer(14, 0)
    assert backends.opt_einsum.get_opt_einsum() is None


def test_settings_are_kept():
    assert not torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    assert torch.get_deterministic_debug_mode() == 2
    torch.use_deterministic_algorithms(False)
    with torch.backends.mkldnn.flags(enabled=False):
        assert not torch.backends.mkldnn.enabled
    assert torch.backends.mkldnn.enabled


def test_import_starts_no_thread_and_loads_no_lapack():
    program = """
import os
import rushlight as torch
def loaded():
    return "openblas" in open("/proc/self/maps").read()
assert len(os.listdir("/proc/self/task")) == 1 and not loaded()
processors = os.sched_getaffinity(0)
torch.linalg.eigvalsh(torch.eye(30))
assert loaded() == (torch._C._libraries()["OpenBLAS"] is not None)
assert len(os.listdir("/proc/self/task")) == 1
assert os.sched_getaffinity(0) == processors
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_is_said_of_the_build_and_the_machine_is_so():
    folder = Path(torch.__file__).parent / "lib"
    assert torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    libraries = torch._C._libraries()  # asks OpenBLAS, and so loads it
    loaded = Path("/proc/self/maps").read_text()
    assert torch.backends.mkldnn.is_available() == ("libdnnl" in loaded)
    assert (libraries["OpenBLAS"] is not None) == ("openblas" in loaded)
    assert (torch.version.cuda is not None) == (folder / "librushlight_cuda.so").exists()
    shown = torch.__config__.show()
    assert "CPU capability" in shown and f"oneDNN: {libraries['oneDNN'] or 'none'}\n" in shown
    assert f"CUDA: {torch.version.cuda or 'none'}\n" in shown
    assert f"get_num_threads() : {torch.get_num_threads()}\n" in torch.__config__.parallel_info()
    assert shown in torch.utils.collect_env.get_pretty_env_info()
    assert not torch.backends.cudnn.is_available() and torch.backends.cudnn.version() is None
    assert not torch.backends.cudnn.is_acceptable(torch.ones(1))
    assert not torch.backends.mps.is_available() and not torch.xpu.is_available()
    assert torch.compiler.list_backends() == torch._dynamo.list_backends() == []


def test_fork_rng():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    with torch.random.fork_rng():
        torch.manual_seed(5)
        torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(ZeroDivisionError), torch.random.fork_rng(device_type="cpu"):
        torch.rand(3)
        1 / 0  # noqa: B018
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng(enabled=False):
        torch.rand(3)
    assert not torch.equal(torch.get_rng_state(), before)
    with pytest.raises(RuntimeError, match="no generators"):
        torch.random.fork_rng(devices=[0], device_type="meta").__enter__()


def test_fork_rng_keeps_the_generators_of_the_devices_that_are_named(monkeypatch):
    numbers = {f"cuda:{i}": torch.Generator().manual_seed(i) for i in range(3)}
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch._C, "_device_generator", numbers.get)

    def drawn(**options):
        before = [g.get_state() for g in numbers.values()]
        with torch.random.fork_rng(**options):
            for generator in numbers.values():
                torch.rand(2, generator=generator)
        after = [g.get_state() for g in numbers.values()]
        return [not torch.equal(a, b) for a, b in zip(before, after, strict=True)]

    assert drawn(devices=[0, "cuda:2"]) == [False, True, False]
    assert drawn(devices=[torch.device("cuda", 1)], device_type="cuda") == [True, False, True]
    assert drawn(devices=[]) == [True] * 3
    with pytest.warns(UserWarning, match="all 3 GPUs"):
        assert drawn() == [False] * 3


def test_the_interface_hash_is_that_of_the_headers(tmp_path):
    """Libraries of devices are compared by it: another kernel or another layout is another hash."""
    root = Path(__file__).parent.parent.parent
    script = root / "cmake" / "interface_hash.py"
    header, out = tmp_path / "kernels.h", tmp_path / "out" / "hash.h"

    def hash_of(text):
        header.write_text(text)
        subprocess.run([sys.executable, script, out, header], check=True)
        return out.read_text().split('"')[1]

    first = hash_of("struct Table { void (*add)(TensorIterator& it); };")
    assert hash_of("struct Table { void (*add)(const Tensor& out); };") != first
    assert hash_of("struct Table { void (*add)(TensorIterator& it); };") == first


def test_running_transforms_are_told():
    seen = []

    def f(x):
        seen.append(torch._C._are_functorch_transforms_active())
        return x.sum()

    x = torch.ones(2)
    f(x)
    torch.func.grad(f)(x)
    torch.func.jvp(f, (x,), (x,))
    torch.vmap(f)(x[None])
    torch.func.vjp(f, x)[1](torch.tensor(1.0))
    with pytest.raises(ZeroDivisionError):
        torch.func.grad(lambda x: 1 / 0)(x)
    f(x)
    assert seen == [False, True, True, True, True, False]
