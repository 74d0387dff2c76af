"""More names that packages import from PyTorch beside what they call."""

import logging

import pytest

import rushlight as torch
from rushlight import nn


def test_what_is_said_of_tensors_and_modes():
    x = torch.ones(4)
    assert torch._C._is_alias_of(x, x[1:]) and not torch._C._is_alias_of(x, x.clone())
    assert torch.legacy_contiguous_format is torch.contiguous_format
    assert not torch._C._is_torch_function_mode_enabled()
    with torch.overrides.BaseTorchFunctionMode():
        assert torch._C._is_torch_function_mode_enabled()
    assert torch._C.DispatchKey.CPU in torch._C.DispatchKey
    assert torch._utils._get_device_module("cpu") is torch.cpu
    with pytest.raises(RuntimeError, match=r"no module torch\.nope"):
        torch._utils._get_device_module("nope")


def test_classes_of_results():
    class Kind(torch.Tensor):
        pass

    found = torch._tensor._convert([torch.ones(1), (torch.ones(2), 3)], Kind)
    assert type(found[0]) is type(found[1][0]) is Kind and found[1][1] == 3


def test_representations_of_ones_own():
    from rushlight import _tensor_str

    assert _tensor_str._str_intern(torch.ones(2)) == "tensor([1., 1.])"
    assert _tensor_str._add_suffixes("tensor(1", ["a=2"], 0, False) == "tensor(1, a=2)"
    assert _tensor_str._add_suffixes("t(1", ["a", "b"], 2, True) == "t(1,\n  a, b)"


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is an accelerator")
@pytest.mark.parametrize(
    "name",
    [
        "get_memory_info",
        "max_memory_allocated",
        "max_memory_reserved",
        "memory_allocated",
        "memory_reserved",
        "memory_stats",
        "reset_accumulated_memory_stats",
        "reset_peak_memory_stats",
    ],
)
def test_memory_of_an_accelerator_that_is_not_there(name):
    with pytest.raises(RuntimeError, match="none is available"):
        getattr(torch.accelerator, name)()


def test_generators_of_gpus_that_are_not_there():
    assert torch.xpu.get_rng_state_all() == []
    torch.xpu.set_rng_state_all([])
    with pytest.raises(RuntimeError):
        torch.xpu.set_rng_state_all([torch.zeros(1)])


def test_offloaded_modules_compute_the_same():
    from rushlight.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers

    layer, x = nn.Linear(2, 3), torch.randn(4, 2, requires_grad=True)
    offloaded = wrappers.offload_wrapper(layer)
    (wanted,) = torch.autograd.grad(layer(x).sum(), x)
    assert torch.equal(offloaded(x), layer(x))
    offloaded(x).sum().backward()
    assert torch.equal(x.grad, wanted) and "weight" in offloaded.state_dict()


def test_levels_of_loggers():
    dynamo, aot = logging.getLogger("torch._dynamo"), logging.getLogger("torch._functorch")
    torch._logging.set_logs(dynamo=logging.DEBUG, graph_breaks=True, modules={"json": 10})
    assert dynamo.level == logging.getLogger("json").level == 10 and aot.level == 0
    torch._logging.set_logs(all=logging.ERROR)
    assert dynamo.level == logging.ERROR and logging.getLogger("json").level == 0
    torch._logging.set_logs()
    assert dynamo.level == 0
    with pytest.raises(TypeError, match="nope"):
        torch._logging.set_logs(nope=10)
    with pytest.raises(ValueError, match="no level of dynamo"):
        torch._logging.set_logs(dynamo="x")
    with pytest.raises(ValueError, match="switched by a bool"):
        torch._logging.set_logs(graph_breaks=3)
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        torch._logging.set_logs(modules={"no_such": 10})
