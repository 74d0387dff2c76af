"""The switches of `__future__`, and modules called with other parameters."""

import contextlib

import pytest

import rushlight as rl
from rushlight import __future__ as switches
from rushlight.nn.utils import stateless


@contextlib.contextmanager
def switch(name):
    set_switch = getattr(switches, f"set_{name}_module_params_on_conversion")
    set_switch(True)
    try:
        yield
    finally:
        set_switch(False)


def test_conversions_may_give_new_parameters():
    layer = rl.nn.Linear(2, 2)
    weight = layer.weight
    layer.double()
    assert layer.weight is weight
    with switch("overwrite"):
        assert switches.get_overwrite_module_params_on_conversion()
        layer.float()
    assert layer.weight is not weight and weight.dtype == rl.float64


def test_conversions_may_exchange_contents():
    layer = rl.nn.Linear(2, 2)
    weight = layer.weight
    weight.grad = grad = rl.ones(2, 2)
    with switch("swap"):
        assert switches.get_swap_module_params_on_conversion()
        layer.double()
        assert layer.weight is weight and weight.dtype == rl.float64
        assert weight.grad is grad and grad.dtype == rl.float64
        alias = rl.empty(0)
        import weakref

        held = weakref.ref(weight)
        with pytest.raises(RuntimeError, match="Couldn't swap Linear.weight"):
            layer.float()
        del alias, held


@pytest.mark.parametrize("assign", [False, True])
def test_loading_may_exchange_contents(assign):
    layer = rl.nn.Linear(2, 2)
    weight = layer.weight
    state = {"weight": rl.eye(2).double(), "bias": rl.zeros(2)}
    with switch("swap"):
        layer.load_state_dict(state, assign=assign)
    assert layer.weight is weight and weight.requires_grad and weight.tolist() == [[1, 0], [0, 1]]
    assert weight.dtype == (rl.float64 if assign else rl.float32)


class Counts(rl.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", rl.tensor(0.0))

    def forward(self, x):
        self.count = self.count + 1
        return x + self.count


def test_what_a_call_assigns_is_in_the_dict_afterwards():
    module, given = Counts(), {"count": rl.tensor(2.0)}
    for call in (rl.func.functional_call, stateless._functional_call):
        given["count"] = rl.tensor(2.0)
        assert call(module, given, rl.zeros(())).item() == 3
        assert given["count"].item() == 3 and module.count.item() == 0


def test_names_that_the_module_lacks():
    class Reads(rl.nn.Module):
        def forward(self, x):
            return x + self.extra

    module = Reads()
    assert rl.func.functional_call(module, {"extra": rl.ones(())}, rl.ones(())).item() == 2
    assert not hasattr(module, "extra")
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'extra'"):
        rl.func.functional_call(module, {"extra": rl.ones(())}, rl.ones(()), strict=True)
    with pytest.raises(AttributeError, match="has no attribute `layer`"):
        rl.func.functional_call(module, {"layer.extra": rl.ones(())}, rl.ones(()))
    with pytest.raises(TypeError, match="not an instance of"):
        rl.func.functional_call(module, {"extra": 3}, rl.ones(()))


def test_tied_names_and_rings():
    layer = rl.nn.Linear(2, 2, bias=False)
    tied = rl.nn.Sequential(layer, layer)
    two = {"0.weight": rl.eye(2), "1.weight": rl.zeros(2, 2)}
    with pytest.raises(ValueError, match="multiple values"):
        rl.func.functional_call(tied, two, rl.ones(1, 2))
    layer.ring = layer
    once = rl.func.functional_call(layer, {"ring.weight": rl.eye(2) * 3}, rl.ones(1, 2))
    assert once.tolist() == [[3, 3]]


def test_the_older_name_warns():
    layer = rl.nn.Linear(1, 1)
    with pytest.warns(FutureWarning, match=r"Please use `torch.func.functional_call`"):
        stateless.functional_call(layer, dict(layer.named_parameters()), rl.ones(1, 1))


def test_tensors_by_device_and_dtype():
    from rushlight.utils import _foreach_utils

    one, two, three = rl.ones(1), rl.ones(1).double(), rl.zeros(1)
    groups = _foreach_utils._group_tensors_by_device_and_dtype(
        [[one, two, three], [two, two, two]], with_indices=True
    )
    lists, places = groups[one.device, rl.float32]
    assert places == [0, 2] and lists[0][1] is three and lists[1][0] is two
    assert _foreach_utils._has_foreach_support([one, None], one.device)
    assert "cpu" in _foreach_utils._get_fused_kernels_supported_devices()
    assert "cuda" in _foreach_utils._get_foreach_kernels_supported_devices()


def test_seeded_calls_leave_the_generator_alone():
    from rushlight.testing import _utils

    before = rl.get_rng_state()
    assert _utils.wrapper_set_seed(rl.rand, 3).equal(_utils.wrapper_set_seed(rl.rand, 3))
    assert rl.get_rng_state().equal(before)
