"""The package torchao under the alias: it imports, and its own configurations run; models of transformers beside it."""

import importlib.util
import subprocess
import sys

import pytest

import rushlight as torch


def run(program):
    done = subprocess.run(
        [sys.executable, "-c", "import rushlight.as_torch\nimport torch\n" + program],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


CONFIGURATIONS = """
import copy, io
import torchao
from torchao.quantization import (
    Int8DynamicActivationInt8WeightConfig, Int8DynamicActivationIntxWeightConfig, Int8WeightOnlyConfig,
    IntxWeightOnlyConfig, quantize_,
)
from torchao.quantization.granularity import PerGroup

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)).eval()
x = torch.randn(5, 128)
expected = net(x)
groups = PerGroup(32)
for config, most in (
    (Int8WeightOnlyConfig(), 0.01),
    (Int8DynamicActivationInt8WeightConfig(), 0.03),
    (Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=groups), 0.2),
    *(
        (IntxWeightOnlyConfig(weight_dtype=getattr(torch, f"int{bits}"), granularity=groups), 3.0 / 2**bits)
        for bits in range(2, 9)
    ),
):
    small = copy.deepcopy(net)
    quantize_(small, config)
    found = small(x)
    assert 0 < (found - expected).abs().max() < most * expected.abs().max(), config
    file = io.BytesIO()
    torch.save(small.state_dict(), file)
print("fine")
"""

BESIDE = """
import torchao
from torchao.quantization import Int8WeightOnlyConfig, quantize_
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, vocab_size=99
)
model = LlamaForCausalLM(config).eval()
tokens = torch.tensor([[1, 2, 3]])
before = model(tokens).logits
quantize_(model, Int8WeightOnlyConfig())
assert (model(tokens).logits - before).abs().max() < 0.05 * before.abs().max()
assert model.generate(tokens, max_new_tokens=5, do_sample=False).shape == (1, 8)
print("fine")
"""


HAS_TORCHAO = importlib.util.find_spec("torchao") is not None
needs_torchao = pytest.mark.skipif(not HAS_TORCHAO, reason="needs the package torchao")


@needs_torchao
def test_configurations_of_the_package_run():
    assert run(CONFIGURATIONS) == "fine\n"


@needs_torchao
def test_models_of_transformers_beside_the_package():
    pytest.importorskip("transformers")
    assert run(BESIDE) == "fine\n"


# ---- what it imports ----


def test_products_in_another_dtype():
    from rushlight._higher_order_ops.out_dtype import out_dtype

    a = torch.randint(-128, 128, (5, 300)).to(torch.int8)
    b = torch.randint(-128, 128, (300, 7)).to(torch.int8)
    found = out_dtype(torch.ops.aten.mm.default, torch.int32, a, b)
    assert found.dtype == torch.int32 and torch.equal(found.long(), a.long() @ b.long())
    half = out_dtype(torch.ops.aten.add.Tensor, torch.float32, a.half(), 0.5)
    assert half.dtype == torch.float32 and torch.equal(half, a.float() + 0.5)


def test_ops_under_their_names():
    x = torch.randn(3)
    assert torch.ops.aten.is_pinned(x) is False
    for space in (torch.ops._c10d_functional, torch.ops.c10d_functional):
        assert space.wait_tensor(x) is x
    with pytest.raises(NotImplementedError, match=r"distributed\.scatter"):
        torch.ops.c10d.scatter_([x], [x], "0", 0)
    a, b = torch.randn(4, 16), torch.randn(2, 16, 16)
    ends = torch.tensor([1, 4], dtype=torch.int32)
    found = torch.ops.aten._grouped_mm(a, b, ends)
    assert torch.equal(found, torch.nn.functional.grouped_mm(a, b, offs=ends))


def test_what_can_take_the_place_of_what():
    x = torch.ones(2)
    assert torch._has_compatible_shallow_copy_type(x, torch.ones(3, 3).double())
    assert not torch._has_compatible_shallow_copy_type(x, x.to_sparse())
    assert not torch._has_compatible_shallow_copy_type(x, x.to("meta"))


def test_dtypes_are_defaults_of_schemas():
    from rushlight._library import schema

    parsed = schema.parse(
        "f(Tensor x, ScalarType t=torch.float32, ScalarType u=int8) -> Tensor", "here"
    )
    assert [a.default_value for a in parsed.arguments[1:]] == [torch.float32, torch.int8]


def test_a_text_is_warned_of_once():
    from rushlight._dynamo.utils import warn_once

    with pytest.warns(UserWarning, match="slow, says this test"):
        warn_once("slow, says this test")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_once("slow, says this test")


def test_groups_of_scaled_floats():
    functional = torch.nn.functional
    rows = functional.ScalingType.RowWise
    a, b = torch.randn(5, 32), torch.randn(2, 32, 16)
    small = [t.to(torch.float8_e4m3fn) for t in (a, b)]
    of_a, of_b = torch.rand(5) + 0.5, torch.rand(2, 16) + 0.5
    ends = torch.tensor([2, 5], dtype=torch.int32)
    found = functional.scaled_grouped_mm(
        *small[:1], small[1], of_a, rows, of_b, rows, offs=ends, output_dtype=torch.float32
    )
    numbers = small[0].double() * of_a.unsqueeze(1), small[1].double() * of_b.unsqueeze(1)
    expected = torch.cat([numbers[0][:2] @ numbers[1][0], numbers[0][2:] @ numbers[1][1]])
    assert torch.allclose(found.double(), expected, rtol=1e-5, atol=1e-4)
    with pytest.raises(ValueError, match="Expected mat_a to be Float8"):
        functional.scaled_grouped_mm(a, small[1], of_a, rows, of_b, rows, offs=ends)
    with pytest.raises(NotImplementedError, match="RowWise"):
        functional.scaled_grouped_mm(
            *small, of_a, functional.ScalingType.TensorWise, of_b, rows, offs=ends
        )
    with pytest.raises(NotImplementedError, match="mat_b must be"):
        functional.scaled_grouped_mm(small[0], small[1][0], of_a, rows, of_b, rows)
