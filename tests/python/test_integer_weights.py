"""Weights of 4 and 8 bits as tensors: how near they are, what is done with them, and files of them."""

import copy
import io
import subprocess
import sys

import pytest

import rushlight as torch
from rushlight import _C, ao, nn
from rushlight.ao import _integer_weights

CONFIGS = [
    (ao.Int8WeightOnlyConfig(), 0.02),
    (ao.Int8WeightOnlyConfig(group_size=32), 0.02),
    (ao.Int4WeightOnlyConfig(group_size=32), 0.15),
    (ao.Int4WeightOnlyConfig(group_size=64), 0.15),
    (ao.Int4WeightOnlyConfig(), 0.15),
    (ao.Int8DynamicActivationInt8WeightConfig(), 0.02),
]


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(256, 50), nn.ReLU(), nn.Linear(50, 7))


def quantised(config):
    net = network()
    ao.quantize_(net, config)
    return net


@pytest.mark.parametrize(("config", "most"), CONFIGS)
@pytest.mark.parametrize("rows", [1, 8, 33])
def test_layers_are_near_those_of_numbers(config, most, rows):
    net, plain = quantised(config), network()
    x = torch.randn(2, rows, 256)
    first, expected = net[0](x), plain[0](x)
    assert isinstance(net[0].weight, _integer_weights.IntegerWeight)
    assert (first - expected).abs().max() < most * expected.abs().max()
    # Beside the weight only the input is rounded, to 8 bits.
    exact = nn.functional.linear(x, net[0].weight.dequantize(), plain[0].bias)
    assert (first - exact).abs().max() < 0.02 * expected.abs().max()


@pytest.mark.parametrize(("config", "most"), CONFIGS)
def test_a_row_has_the_same_bits_beside_any_others(config, most):
    layer, x = quantised(config)[0], torch.randn(40, 256)
    whole = layer(x)
    for n in (1, 3, 16, 17):
        assert torch.equal(torch.cat([layer(part) for part in x.split(n)]), whole)


def test_zero_points_may_be_any_bytes():
    """Of 4 bits, whose differences do not fit a byte."""
    panels = torch.randint(0, 256, (1, 8, 64), dtype=torch.uint8)
    scales, x = torch.ones(2, 16), torch.ones(35, 64)
    for zero in (7, 127, 128, 255):
        zeros = torch.full((2, 16), zero, dtype=torch.uint8)
        found = _C.ops._block_linear(x, panels, scales, zeros, None, 32, 4)
        none = _C.ops._block_linear(x, panels, scales, zeros * 0, None, 32, 4)
        assert torch.allclose(none - found, torch.full((35, 16), 64.0 * zero))


@pytest.mark.parametrize(("config", "most"), CONFIGS)
def test_codes_are_the_nearest_ones(config, most):
    weight, numbers = quantised(config)[0].weight, network()[0].weight.detach()
    layout = weight._layout
    found = weight.dequantize()
    assert found.shape == weight.shape == numbers.shape
    if type(layout) is _integer_weights.Rows:
        steps = layout.steps.unsqueeze(1).expand(-1, 256)
    else:
        steps = layout.scales.t().repeat_interleave(layout.block, 1)
    assert ((found - numbers).abs() <= steps * 0.50001).all()


def test_layers_that_do_not_fit_stay():
    net = quantised(ao.Int4WeightOnlyConfig(group_size=64))
    assert type(net[2].weight) is nn.Parameter  # of 50 inputs
    net = network()
    chosen = {"0": ao.Int8WeightOnlyConfig(), "_default": None}
    ao.quantize_(net, ao.FqnToConfig(chosen))
    assert not isinstance(net[2].weight, _integer_weights.IntegerWeight)
    net = network()
    ao.quantize_(net, ao.Int8WeightOnlyConfig(), lambda module, name: name == "2")
    assert type(net[0].weight) is nn.Parameter
    with pytest.raises(TypeError, match="expects a configuration"):
        ao.quantize_(net, "int8")


@pytest.mark.parametrize(("config", "most"), CONFIGS)
@pytest.mark.parametrize("weights_only", [True, False])
def test_files_hold_codes(config, most, weights_only):
    net, x = quantised(config), torch.randn(3, 256)
    stream = io.BytesIO()
    torch.save(net.state_dict(), stream)
    assert len(stream.getvalue()) < 30_000  # float32 takes 52,000
    stream.seek(0)
    read = torch.load(stream, weights_only=weights_only)
    other = quantised(config)
    other[0].bias.data.zero_()
    other.load_state_dict(read)
    assert torch.equal(other(x), net(x))
    assigned = network()
    assigned.load_state_dict(read, assign=True)
    assert torch.equal(assigned(x), net(x))


def test_files_are_not_trusted():
    layout = quantised(ao.Int4WeightOnlyConfig(32))[0].weight._layout
    for parts in (
        layout._replace(codes=layout.codes[:1]),
        layout._replace(scales=layout.scales[:, :3]),
        layout._replace(block=0),
        layout._replace(bits=3),
        layout._replace(zeros=layout.zeros.float()),
        layout._replace(block="32"),
    ):
        with pytest.raises((TypeError, RuntimeError)):
            _integer_weights.rebuilt("blocks", tuple(parts), torch.float32)
    with pytest.raises((TypeError, RuntimeError)):
        _integer_weights.rebuilt("blocks", tuple(layout), torch.int8)


def test_weights_are_copied_moved_and_refuse_the_rest():
    net = quantised(ao.Int8WeightOnlyConfig(32))
    x = torch.randn(3, 256)
    twin = copy.deepcopy(net)
    assert isinstance(twin[0].weight, nn.Parameter) and not twin[0].weight.requires_grad
    assert torch.equal(twin(x), net(x))
    half = copy.deepcopy(net).to(torch.bfloat16)
    assert half[0].weight.dtype == torch.bfloat16
    assert half(x.bfloat16()).dtype == torch.bfloat16
    assert (half(x.bfloat16()).float() - net(x)).abs().max() < 0.1
    assert torch.equal(net[0].weight.detach().dequantize(), net[0].weight.dequantize())
    with pytest.raises(NotImplementedError, match="dequantize"):
        net[0].weight + 1
    assert "8 bits in blocks of 32, size=(50, 256)" in repr(net[0].weight)


def test_gradients_of_inputs_are_those_of_the_numbers():
    net = quantised(ao.Int4WeightOnlyConfig(32))
    x = torch.randn(3, 256, requires_grad=True)
    net[0](x).sum().backward()
    assert torch.allclose(x.grad, net[0].weight.dequantize().sum(0).expand(3, -1), atol=1e-5)


@pytest.mark.parametrize("config", [config for config, _ in CONFIGS])
def test_derivatives_of_all_orders_are_those_of_the_numbers(config):
    func = torch.func
    layer = quantised(config)[0]
    numbers = layer.weight.dequantize()
    x = torch.randn(3, 256)
    assert torch.allclose(func.jacrev(layer)(x[0]), numbers, atol=1e-5)
    by_sample = func.vmap(func.grad(lambda row: layer(row).sum()))(x)
    assert torch.allclose(by_sample, numbers.sum(0).expand(3, -1), atol=1e-5)
    second = func.jacrev(func.jacrev(lambda row: layer(row).square().sum()))(x[0])
    assert torch.allclose(second, 2 * numbers.T @ numbers, atol=1e-4)
    assert torch.equal(torch.jit.trace(layer, x)(x), layer(x))


def test_layers_that_share_a_weight_go_on_to_share_it():
    net = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 64))
    net[2].weight = net[0].weight
    ao.quantize_(net, ao.Int8WeightOnlyConfig(32))
    assert net[2].weight is net[0].weight and net[1].weight is not net[0].weight
    assert all(isinstance(layer.weight, _integer_weights.IntegerWeight) for layer in net)


def test_a_state_of_codes_goes_into_a_network_of_numbers():
    coded, plain = quantised(ao.Int8WeightOnlyConfig(32)), network()
    plain.load_state_dict(coded.state_dict())
    assert torch.equal(plain[0].weight, coded[0].weight.dequantize())


def test_what_cannot_have_codes_is_named():
    config = ao.Int8WeightOnlyConfig(32)
    with pytest.raises(TypeError, match=r"ParametrizedLinear.*remove_parametrizations"):
        ao.quantize_(nn.utils.parametrizations.weight_norm(nn.Linear(64, 4)), config)
    with pytest.raises(TypeError, match=r"the network \(Sequential\)"):
        ao.quantize_(nn.Sequential(nn.Linear(64, 4)), config, lambda module, name: True)
    with pytest.raises(TypeError, match="8 bits in blocks of 32; its dequantize"):
        torch.gguf.save("never.gguf", {}, {"w": quantised(config)[0].weight})


def test_programs_import_torchao():
    code = """
import rushlight.as_torch
import torch
from torchao.quantization import quantize_, Int8WeightOnlyConfig
import torchao
net = torch.nn.Sequential(torch.nn.Linear(64, 3))
torchao.quantize_(net, Int8WeightOnlyConfig())
print(net(torch.ones(1, 64)).shape)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.stdout == "torch.Size([1, 3])\n", done.stderr


# ---- programs ----


@pytest.mark.parametrize(("config", "most"), CONFIGS)
def test_exported_programs_have_codes_as_constants(config, most):
    net = quantised(config).eval()
    x, rows = torch.randn(3, 256), torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(net, (x,), dynamic_shapes=({0: rows},))
    assert "0.weight.codes" in program.constants and "0.weight" not in program.state_dict
    more = torch.randn(9, 256)
    assert torch.equal(program.module()(more), net(more))
    fixed = torch.export.export(net, (x,)).run_decompositions()
    assert torch.equal(fixed.module()(x), net(x))
    with pytest.raises(NotImplementedError, match="op of rushlight alone"):
        torch.export.save(program, io.BytesIO())


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize(("config", "most"), CONFIGS)
def test_traces_and_scripts(config, most):
    net = quantised(config).eval()
    x, more = torch.randn(3, 256), torch.randn(9, 256)
    traced, scripted = torch.jit.trace(net, (x,)), torch.jit.script(net)
    assert torch.equal(traced(more), net(more)) and torch.equal(scripted(more), net(more))
    for program in (traced, scripted):
        with pytest.raises(RuntimeError, match="doesn't have storage: it is a wrapper"):
            torch.jit.save(program, io.BytesIO())


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_they_are_no_arguments_of_programs():
    class Linear(nn.Module):
        def forward(self, x, weight):
            return nn.functional.linear(x, weight)

    given = torch.ones(1, 256), quantised(ao.Int8WeightOnlyConfig())[0].weight
    with pytest.raises(RuntimeError, match="IntegerWeight cannot be traced"):
        torch.jit.trace(Linear(), given)
    with pytest.raises(ValueError, match="Unsupported input type"):
        torch.export.export(Linear(), given)


def test_weights_come_apart_and_together():
    weight = quantised(ao.Int8WeightOnlyConfig())[0].weight
    names, context = weight.__tensor_flatten__()
    parts = {name: getattr(weight, name) for name in names}
    made = type(weight).__tensor_unflatten__(parts, context, weight.shape, weight.stride())
    assert names == ["codes", "scales"] and torch.equal(made.dequantize(), weight.dequantize())
    with pytest.raises(AttributeError, match="no attribute 'zeros_of_it'"):
        weight.zeros_of_it  # noqa: B018
