"""The CUDA column as far as it shows without a GPU: loading it, its table, and what is said where there is none.

The library is there after `./dev build --cuda`; without it the tests of the column are skipped. What runs on a GPU is
tested by RUSHLIGHT_TEST_DEVICE=cuda (tests/ops).
"""

import os
import subprocess
import sys

import pytest

import rushlight as torch
from gen import table
from rushlight import nn
from rushlight.cuda import _library

built = pytest.mark.skipif(not _library.is_built(), reason="built without CUDA")
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")

USES = {
    "cuda()": lambda: torch.ones(1).cuda(),
    "to(cuda)": lambda: torch.ones(1).to("cuda"),
    "to(cuda:0)": lambda: torch.ones(1).to(torch.device("cuda:0")),
    "ones": lambda: torch.ones(1, device="cuda"),
    "empty": lambda: torch.empty(0, device="cuda"),
    "tensor": lambda: torch.tensor([1.0], device="cuda:0"),
    "randn": lambda: torch.randn(3, device="cuda"),
    "module": lambda: nn.Linear(1, 1).cuda(),
    "generator": lambda: torch.Generator(device="cuda"),
    "init": torch.cuda.init,
    "current_device": torch.cuda.current_device,
    "name": lambda: torch.cuda.get_device_name(0),
    "properties": lambda: torch.cuda.get_device_properties(0),
    "stream": torch.cuda.Stream,
    "current_stream": torch.cuda.current_stream,
    "event": lambda: torch.cuda.Event().record(),
    "synchronize": torch.cuda.synchronize,
    "mem_get_info": torch.cuda.mem_get_info,
}


@without_gpu
@pytest.mark.parametrize("name", USES)
def test_using_it_raises(name):
    if _library.is_built():
        kind, message = (
            RuntimeError,
            "Found no NVIDIA driver on your system|No CUDA GPUs are available",
        )
    else:
        kind, message = AssertionError, "Torch not compiled with CUDA enabled"
    with pytest.raises(kind, match=message):
        USES[name]()


@without_gpu
def test_asking_for_it_does_not():
    assert torch.cuda.is_available() is False and torch.cuda.device_count() == 0
    assert torch.cuda.empty_cache() is None
    assert torch.cuda.memory_stats() == {} and torch.cuda.memory_allocated() == 0
    torch.cuda.manual_seed(3)
    torch.cuda.manual_seed_all(3)
    torch.cuda.seed()
    torch.cuda.reset_peak_memory_stats()
    with torch.cuda.device(None), torch.cuda.device(-1), torch.cuda.stream(None):
        pass
    assert torch.cuda.Event().query() and "uninitialized" in repr(torch.cuda.Event())
    assert not torch.ones(1).is_pinned()
    with pytest.raises(RuntimeError, match="Cannot access accelerator device"):
        torch.ones(1).pin_memory()
    torch.manual_seed(4)  # goes on to devices that are not there


def test_importing_loads_no_library():
    program = (
        "import rushlight, rushlight.cuda; from rushlight.cuda import _library; assert not "
        "rushlight.cuda.is_initialized(); print('rushlight_cuda' in open('/proc/self/maps').read())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"


@built
def test_column_lists_every_kernel_op():
    lines = [line.split() for line in _library.text("column").splitlines()]
    kernels = [op for op in table.load() if op.kind == "kernel"]
    assert sorted(name for name, _ in lines) == sorted(op.symbol for op in kernels)
    missing = {name for name, has in lines if has == "0"}
    without = {op.symbol for op in kernels if op.family in ("lapack", "fft")}
    assert missing == without, sorted(missing ^ without)


@built
@without_gpu
def test_errors_of_the_c_interface_are_told():
    assert _library.function("set_device")(99) == -1
    with pytest.raises(RuntimeError, match="NVIDIA driver|No CUDA GPUs"):
        raise _library.error()


@without_gpu
def test_what_waits_for_cuda_is_not_called():
    calls = []
    torch.cuda._lazy_call(lambda: calls.append(1), seed_all=True)
    assert not calls and not torch.cuda.is_initialized()


def test_what_waits_for_cuda_is_called_where_it_is(monkeypatch):
    calls = []
    monkeypatch.setattr(torch.cuda.devices, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda.devices, "init", lambda: calls.append("init"))
    torch.cuda._lazy_call(lambda: calls.append("call"))
    assert calls == ["init", "call"]
