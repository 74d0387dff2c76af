"""Devices that are not there, and what programs ask of the one that is."""

import pickle
import subprocess
import sys

import pytest

import rushlight as torch
from rushlight import _C


def test_devices_that_are_not_there():
    assert torch.mps.device_count() == 0 and torch.mps.empty_cache() is None
    torch.mps.manual_seed(1)
    assert torch.get_device_module("cpu") is torch.cpu
    assert torch.cpu.device_count() == 1 and torch.cpu.is_available()
    assert torch.cpu.current_device() in (0, "cpu") and torch.cpu.synchronize() is None
    assert torch.cpu.max_memory_reserved() >= torch.cpu.memory_reserved() >= 0
    with torch.cuda.device_of(torch.ones(1)):
        pass


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_gpus_are_asked_for_in_vain():
    assert not torch.cuda.is_initialized() or torch.backends.cuda.is_built()
    assert torch.cuda.get_rng_state_all() == [] and not torch.cuda.is_bf16_supported()
    torch.cuda.set_rng_state_all([])
    for ask in (
        torch.cuda.get_device_capability,
        torch.cuda.default_stream,
        torch.cuda.get_rng_state,
        torch.cuda.initial_seed,
        lambda: torch.cuda.set_device(0),
        lambda: torch.cuda.can_device_access_peer(0, 1),
    ):
        with pytest.raises((AssertionError, RuntimeError), match="CUDA|NVIDIA"):
            ask()


def test_the_environment_is_told():
    command = [sys.executable, "-m", "rushlight.utils.collect_env"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"rushlight version: {torch.version.rushlight}" in told and "oneDNN" in told


def test_accelerators():
    built = torch.backends.cuda.is_built()
    there = torch.cuda.is_available()
    expected = torch.device("cuda")
    assert torch.accelerator.current_accelerator() == (expected if built else None)
    assert torch.accelerator.current_accelerator(True) == (expected if there else None)
    assert torch.accelerator.device_count() == torch.cuda.device_count()
    assert (torch.cuda.get_arch_list() != []) == there


def test_the_accelerator_is_that_of_the_build(monkeypatch):
    """Another build and machine, by what tells them apart."""
    monkeypatch.setattr(_C, "_accelerator", lambda: torch.device("cuda"))
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert torch.accelerator.current_accelerator(check_available=True) == torch.device("cuda")


def test_the_processor_has_no_number():
    first = torch.device("cpu", 0)
    x = torch.arange(3.0, device=first)
    assert str(first) == "cpu:0" and x.device == torch.device("cpu")
    assert torch.ones(3).to(first).device == torch.device("cpu")
    assert (x + torch.ones(3)).index_select(0, torch.tensor([2])).tolist() == [3]
    assert torch.empty(2, device="meta:1").device == torch.device("meta")


def test_names_of_devices_that_are_not_here():
    for name in ("mps", "xpu", "hpu", "mtia", "xla", "vulkan"):
        device = torch.device(name, 1)
        assert (device.type, device.index, str(device)) == (name, 1, f"{name}:1")
        assert repr(device) == f"device(type='{name}', index=1)" and device != torch.device(
            "cpu", 1
        )
        assert pickle.loads(pickle.dumps(device)) == device
        assert not torch.is_autocast_enabled(name) and not torch.amp.is_autocast_available(name)
    uses = (
        lambda d: torch.zeros(2, device=d),
        lambda d: torch.empty(0, device=d),
        lambda d: torch.tensor([1.0], device=d),
        lambda d: torch.ones(2).to(d),
        lambda d: torch.nn.Linear(2, 2).to(d),
        lambda d: torch.Generator(d),
    )
    for use in uses:
        with pytest.raises(NotImplementedError, match="mps devices by name alone"):
            use(torch.device("mps"))
        with pytest.raises(AssertionError, match="Torch not compiled with XPU enabled"):
            use("xpu")
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda, .* device type at start"):
        torch.device("npu")
