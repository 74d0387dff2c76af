"""Layers of 8-bit codes: exact sums at the ends of the codes, and bits that depend on neither threads nor processor."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import _C
from rushlight.ao import quantization as q
from rushlight.ao.nn import quantized
from tests.python import choices

RNG = np.random.default_rng(0)


def codes(*shape, dtype="uint8", ends=False):
    """Random codes, or only the first and the last."""
    info = np.iinfo(dtype)
    made = RNG.integers(info.min, info.max, shape, endpoint=True)
    made = np.where(made % 2 == 0, info.min, info.max) if ends else made
    return made.astype(dtype)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(1, 4096, 70), (2, 31, 33), (13, 64, 16), (5, 1, 1), (100, 513, 257), (3, 1023, 15)],
)
def test_products_are_exact(m, k, n, dtype, ends):
    a, b = codes(m, k, dtype=dtype, ends=ends), codes(k, n, dtype="int8", ends=ends)
    expected = a.astype("int64") @ b.astype("int64")
    for left, right in ((a, b), (a, np.asfortranarray(b)), (np.asfortranarray(a), b)):
        found = torch._int_mm(torch.from_numpy(left), torch.from_numpy(right))
        assert np.array_equal(found.numpy(), expected)


@pytest.mark.parametrize("kind", ["quint8", "qint8"])
@pytest.mark.parametrize("rows", [1, 7, 40])
def test_quantised_linear_layers_round_exact_sums(rows, kind):
    x = codes(rows, 4096, dtype=kind[1:], ends=True)
    weight = codes(20, 4096, dtype="int8", ends=True)
    layer = quantized.Linear(4096, 20)
    layer.set_weight_bias(
        torch._make_per_tensor_quantized_tensor(torch.from_numpy(weight), 0.5, 0), None
    )
    layer.scale, layer.zero_point = 2.0**20, 3
    zero = 5
    found = layer(torch._make_per_tensor_quantized_tensor(torch.from_numpy(x), 1.0, zero))
    sums = (x.astype("int64") - zero) @ weight.astype("int64").T
    info = np.iinfo(x.dtype)
    expected = np.clip(np.rint(sums * 0.5 / 2.0**20) + 3, info.min, info.max)
    assert np.array_equal(found.int_repr().numpy(), expected)


@pytest.mark.parametrize("inputs", [65_793, 65_794, 140_000])
def test_sums_that_do_not_fit_32_bits_are_exact(inputs):
    """All codes at their largest: a sum of 140,000 products is more than an int32 holds."""
    linear = torch.nn.Linear(inputs, 2, bias=False)
    with torch.no_grad():
        linear.weight.fill_(1.0)
    x = torch.ones(3, inputs)
    dynamic = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(linear), {torch.nn.Linear})
    torch.testing.assert_close(dynamic(x), torch.full((3, 2), float(inputs)), rtol=1e-2, atol=0)
    weight = np.full((2, inputs), -128, "int8")
    layer = quantized.Linear(inputs, 2)
    layer.set_weight_bias(
        torch._make_per_tensor_quantized_tensor(torch.from_numpy(weight), 1.0, 0), None
    )
    layer.scale, layer.zero_point = 2.0**26, 255
    codes = torch.full((1, inputs), 255, dtype=torch.uint8)
    found = layer(torch._make_per_tensor_quantized_tensor(codes, 1.0, 0)).int_repr()
    assert found.tolist() == [[round(255 - inputs * 255 * 128 / 2**26)] * 2]
    from rushlight.ao import Int8DynamicActivationInt8WeightConfig, quantize_

    wide = torch.nn.Sequential(linear)
    quantize_(wide, Int8DynamicActivationInt8WeightConfig())
    torch.testing.assert_close(wide(x), torch.full((3, 2), float(inputs)), rtol=1e-2, atol=0)


CONVOLUTIONS = [
    (1, {}),
    (1, {"stride": 2, "padding": 1, "dilation": 2}),
    (2, {"padding": 1}),
    (2, {"padding": (2, 0), "stride": (1, 2), "groups": 2}),
    (2, {"padding": 1, "groups": 8}),
    (2, {"padding": 1, "padding_mode": "reflect"}),
    (2, {"padding": "same"}),
    (3, {"padding": 1, "groups": 4}),
]


@pytest.mark.parametrize(("dims", "settings"), CONVOLUTIONS)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("zero_points", [False, True])
def test_quantised_convolutions_are_those_of_whole_numbers(dims, settings, relu, zero_points):
    layer = getattr(quantized, f"Conv{dims}d")(8, 8, 3, **settings)
    layer._relu = relu
    weight = codes(*layer._qweight.shape, dtype="int8")
    zeros = RNG.integers(-3, 4, 8) if zero_points else np.zeros(8, "int64")
    bias = torch.from_numpy(RNG.standard_normal(8).astype("float32") * 1000)
    scales = torch.from_numpy(RNG.uniform(0.1, 0.3, 8))
    layer.set_weight_bias(
        torch._make_per_channel_quantized_tensor(
            torch.from_numpy(weight), scales, torch.from_numpy(zeros), 0
        ),
        bias,
    )
    layer.scale, layer.zero_point = 70.0, 120
    x = codes(2, 8, *[9, 7, 6][:dims])
    given = torch._make_per_tensor_quantized_tensor(torch.from_numpy(x), 0.5, 77)
    found = layer(given)
    sums = layer._sums(given)
    by_channel = [1, -1] + [1] * dims
    numbers = sums * (scales * 0.5).reshape(by_channel) + bias.reshape(by_channel)
    expected = (numbers / 70.0).round() + 120
    expected = expected.clamp(120 if relu else 0, 255)
    # Where a number is half-way between two codes float32 may take the other one.
    apart = (found.int_repr().double() - expected).abs()
    assert apart.max() <= 1 and (apart > 0).double().mean() < 0.01


def test_weights_are_packed_again_where_they_are_set():
    layer = quantized.Linear(8, 3, bias_=False)
    x = torch.quantize_per_tensor(torch.ones(2, 8), 1.0, 0, torch.quint8)
    assert layer(x).int_repr().sum() == 0
    ones = torch._make_per_tensor_quantized_tensor(torch.ones(3, 8, dtype=torch.int8), 1.0, 0)
    layer.set_weight_bias(ones, None)
    assert layer(x).int_repr().tolist() == [[8] * 3] * 2


@pytest.mark.parametrize("rows", [1, 3, 65])
def test_rows_may_have_scales_of_their_own(rows):
    x = torch.randn(rows, 300) * torch.logspace(-3, 3, rows).reshape(-1, 1)
    weight = torch.from_numpy(codes(50, 300, dtype="int8"))
    steps = torch.rand(50) + 0.1
    packed = _C.ops._int8_pack(weight)
    sums = weight.sum(1, dtype=torch.int32)
    found = _C.ops._int8_linear_dynamic(x, packed, sums, steps, None, False, True, False)
    scale = x.abs().amax(1, keepdim=True) / 127
    whole = (x * scale.reciprocal()).round()
    expected = whole.double() @ weight.double().t() * scale * steps
    assert torch.allclose(found.double(), expected, rtol=1e-5, atol=1e-9)
    alone = torch.cat(
        [
            _C.ops._int8_linear_dynamic(row, packed, sums, steps, None, False, True, False)
            for row in x.split(1)
        ]
    )
    assert torch.equal(found, alone)


# What a process prints: sums of bits of everything that codes of 8 bits compute.
_BITS = """
import hashlib
from rushlight.ao import quantization as q
torch.manual_seed(0)
torch.set_num_threads({threads})
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()
        self.first = torch.nn.Conv2d(3, 24, 3, padding=1)
        self.each = torch.nn.Conv2d(24, 24, 3, groups=24)
        self.halves = torch.nn.Conv2d(24, 40, 3, stride=2, groups=2)
        self.point = torch.nn.Conv2d(40, 64, 1)
        self.wide = torch.nn.Conv2d(64, 72, 3, padding=1)
        self.last = torch.nn.Linear(72, 90)
    def forward(self, x):
        x = self.wide(self.point(self.halves(self.each(self.first(self.quant(x))))))
        return self.dequant(self.last(x.mean([2, 3])))
net = Net().eval()
net.qconfig = q.get_default_qconfig("{engine}")
x = torch.rand(3, 3, 41, 37) * 4 - 2  # rand is exact on every processor
prepared = q.prepare(net)
prepared(x)
seen = dict(first=3.0, each=1.5, halves=1.0, point=0.6, wide=0.5, last=0.5)
converted = q.convert(prepared)
for name, scale in seen.items():
    layer = getattr(converted, name)
    layer.scale, layer.zero_point = scale / 100, 64
converted.quant.scale.fill_(0.02)
converted.quant.zero_point.fill_(100)
outs = [converted(x)]
for rows in (1, 5, 130):
    for reduce_range in (False, True):
        layer = q.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(700, 300)))[0]
        outs.append(layer(torch.rand(rows, 700) * 3 - 1, reduce_range))
for config in (
    torch.ao.Int4WeightOnlyConfig(32),
    torch.ao.Int8WeightOnlyConfig(128),
    torch.ao.Int8DynamicActivationInt8WeightConfig(),
):
    layer = torch.nn.Sequential(torch.nn.Linear(384, 300))
    torch.ao.quantize_(layer, config)
    outs += [layer(torch.rand(rows, 384) * 3 - 1) for rows in (1, 9, 70)]
a = torch.randint(-128, 128, (70, 900)).to(torch.int8)
outs.append(torch._int_mm(a, a.t()))
print(hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in outs)).hexdigest())
"""


@pytest.mark.parametrize("engine", ["fbgemm", "qnnpack"])
def test_bits_depend_on_neither_threads_nor_processor(engine):
    found = {
        (level, threads): choices.run(
            _BITS.format(threads=threads, engine=engine), RUSHLIGHT_CPU=level
        )[0]
        for level in choices.instruction_sets()
        for threads in (1, 2, 3, 5)
    }
    assert len(set(found.values())) == 1, found


def test_networks_of_codes_are_near_those_of_numbers():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(512, 300), torch.nn.ReLU(), torch.nn.Linear(300, 10))
    x = torch.randn(33, 512)
    expected = net(x)
    found = q.quantize_dynamic(net)(x)
    assert (found - expected).abs().max() < 0.03 * expected.abs().max()
