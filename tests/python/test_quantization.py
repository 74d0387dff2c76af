"""Quantised tensors, rounding to codes in training, and networks that are prepared and converted."""

import copy
import io
import pickle

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.ao import quantization as q
from rushlight.ao.nn import intrinsic, quantized


def whole(x, scale=0.1, zero_point=10, dtype=torch.quint8):
    return torch.quantize_per_tensor(x, scale, zero_point, dtype)


X = torch.tensor([[-1.0, 0.05, 0.15, 0.25], [0.35, 2, 300, -300]])

# ---- quantised tensors ----


def test_codes_are_the_nearest_and_say_what_they_mean():
    t = whole(X)
    assert t.int_repr().tolist() == [[0, 10, 12, 12], [14, 30, 255, 0]]
    assert (t.dtype, t.is_quantized, t.qscheme()) == (torch.quint8, True, torch.per_tensor_affine)
    assert (t.q_scale(), t.q_zero_point(), t.nbytes) == (0.1, 10, 8)
    assert torch.allclose(t.dequantize(), (t.int_repr().float() - 10) * 0.1)
    assert repr(t).endswith("scale=0.1, zero_point=10)")
    extremes = torch.tensor([float("inf"), float("-inf"), float("nan"), 1e20])
    codes = whole(extremes, 0.5, 3, torch.qint8).int_repr()
    assert codes.tolist() == [127, -128, 127, 127]


def test_channels_have_scales_of_their_own():
    t = torch.quantize_per_channel(
        X, torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, torch.qint8
    )
    assert t.q_per_channel_axis() == 0 and t.qscheme() is torch.per_channel_affine
    assert t.q_per_channel_zero_points().tolist() == [0, 1]
    assert t[0].q_scale() == pytest.approx(0.1) and t[:, 1].q_per_channel_axis() == 0
    with pytest.raises(RuntimeError, match="uniformly quantized"):
        t.T  # noqa: B018
    with pytest.raises(RuntimeError, match="kPerTensorAffine"):
        t.q_scale()
    floats = torch.quantize_per_channel(X, torch.ones(2), torch.tensor([0.5, 1]), 0, torch.quint8)
    assert floats.qscheme() is torch.per_channel_affine_float_qparams


@pytest.mark.parametrize(
    "move",
    [
        lambda t: t.view(-1),
        lambda t: t.T,
        lambda t: t[:, 1:3],
        lambda t: t.unsqueeze(0).expand(2, 2, 4),
        lambda t: torch.cat([t, t]),
        lambda t: torch.flatten(t).contiguous(),
        lambda t: nn.functional.relu(t),
        lambda t: nn.functional.max_pool2d(t[None, None], 2),
        lambda t: t.clamp(0, 1),
        lambda t: t.max(),
        lambda t: t.sort(1)[0],
        lambda t: t.clone(),
        lambda t: t.detach(),
    ],
)
def test_what_moves_or_orders_elements_keeps_the_codes_meaning(move):
    out = move(whole(X))
    assert out.q_scale() == 0.1 and out.q_zero_point() == 10
    assert torch.equal(out.dequantize(), move(whole(X).dequantize()))


def test_what_is_not_there_for_codes_refuses():
    t = whole(X)
    for call in (lambda: t + t, lambda: t * 2, lambda: t.sum(), lambda: torch.zeros_like(t)):
        with pytest.raises(NotImplementedError, match="QuantizedCPU"):
            call()
    for call in (t.float, lambda: t.to(torch.half), t.requires_grad_, t.tolist):
        with pytest.raises(RuntimeError):
            call()
    for call in (X.q_scale, X.int_repr, X.qscheme):
        with pytest.raises(NotImplementedError, match="not quantized"):
            call()
    with pytest.raises(RuntimeError, match="above upper bound"):
        whole(X, 0.1, 300)
    with pytest.raises(RuntimeError, match="only works on Float"):
        whole(X.double())
    assert torch.equal(X.dequantize(), X)


def test_codes_are_copied_written_compared_and_pickled():
    t = whole(X)
    other = copy.deepcopy(t)
    other.copy_(torch.ones(2, 4))
    assert other.dequantize().eq(1).all() and not torch.equal(t, other)
    assert torch.equal(pickle.loads(pickle.dumps(t)), t)
    assert copy.copy(torch.per_tensor_affine) is torch.per_tensor_affine
    made = torch._make_per_tensor_quantized_tensor(torch.ones(2, dtype=torch.int8), 0.1, 2)
    assert made.dequantize().tolist() == pytest.approx([-0.1, -0.1])
    dynamic = torch.quantize_per_tensor_dynamic(X, torch.quint8, False)
    assert dynamic.q_zero_point() == 128 and dynamic.q_scale() == pytest.approx(600 / 255)


def per_channel():
    scales, zeros = torch.tensor([0.1, 0.2], dtype=torch.float64), torch.tensor([1, 2])
    return torch.quantize_per_channel(X, scales, zeros, 0, torch.qint8)


@pytest.mark.parametrize("weights_only", [True, False])
def test_files_hold_codes_and_what_they_mean(weights_only):
    kept = {"t": whole(X), "view": whole(X).t()[1:], "channels": per_channel()}
    kept["scheme"] = torch.per_channel_symmetric
    file = io.BytesIO()
    torch.save(kept, file)
    assert not torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(file.getvalue()))
    file.seek(0)
    back = torch.load(file, weights_only=weights_only)
    assert back.pop("scheme") is kept.pop("scheme")
    for name, t in kept.items():
        assert back[name].dtype is t.dtype and torch.equal(back[name], t), name
        assert back[name].stride() == t.stride()
    assert back["t"].int_repr().untyped_storage().nbytes() == X.numel()


def test_a_file_is_not_trusted_with_what_codes_mean():
    t, per_row = whole(X), per_channel()
    for of, means in (
        (t, (torch.per_tensor_affine, "0.1", 3)),
        (t, (torch.per_tensor_affine, 0.1, 3, 0)),
        (t, (None, 0.1, 3)),
        (per_row, (torch.per_channel_affine, per_row.q_per_channel_scales()[:1], X[0], 0)),
        (per_row, (torch.per_channel_affine, X[:, 0], X[:, 0], 2)),
    ):
        function, parts = of.__reduce_ex__(2)
        with pytest.raises(TypeError, match="do not fit a quantized tensor"):
            function(*parts[:4], means, *parts[5:])
    function, parts = t.__reduce_ex__(2)
    with pytest.raises(RuntimeError, match="out of bounds"):
        function(parts[0], 1, *parts[2:])


# ---- rounding in training ----


def test_rounding_hands_gradients_through_between_the_last_codes():
    x = torch.tensor([-1.0, 0.04, 0.26, 99.0], requires_grad=True)
    y = torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 255)
    y.sum().backward()
    assert torch.allclose(y, torch.tensor([0.0, 0.0, 0.3, 25.5]))
    assert x.grad.tolist() == [0, 1, 1, 0]
    rows = torch.fake_quantize_per_channel_affine(
        x, torch.full((4,), 0.5), torch.zeros(4, dtype=torch.int32), 0, -128, 127
    )
    assert rows.tolist() == [-1.0, 0.0, 0.5, 63.5]
    each = torch.vmap(lambda v: torch.fake_quantize_per_tensor_affine(v, 0.1, 0, 0, 255))(x[None])
    assert torch.equal(each[0], y)
    for dtype in (torch.half, torch.bfloat16, torch.double):
        assert torch.fake_quantize_per_tensor_affine(x.to(dtype), 0.1, 0, 0, 255).dtype == dtype


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda x: (x, 0.1, 300, 0, 255), RuntimeError, "between `quant_min` and `quant_max`"),
        (lambda x: (x, 0.1, 0, 255, 0), RuntimeError, "less than or equal"),
        (lambda x: (x.long(), 0.1, 0, 0, 255), NotImplementedError, "Long"),
        (lambda x: (x, torch.ones(3), torch.zeros(1), 0, 255), RuntimeError, "3 elements"),
        (
            lambda x: (x, torch.ones(1, requires_grad=True), torch.zeros(1), 0, 255),
            RuntimeError,
            "not differentiable with respect to argument 'scale'",
        ),
    ],
)
def test_rounding_refuses(call, error, says):
    with pytest.raises(error, match=says):
        torch.fake_quantize_per_tensor_affine(*call(torch.ones(2)))


def test_observers_see_the_ends():
    seen = q.MinMaxObserver()
    seen(torch.tensor([-1.0, 2.0]))
    seen(torch.tensor([0.5]))
    scale, zero_point = seen.calculate_qparams()
    assert float(scale) == pytest.approx(3 / 255) and int(zero_point) == 85
    seen.reset_min_max_vals()
    assert seen.min_val == float("inf")
    moving = q.MovingAverageMinMaxObserver(averaging_constant=0.5)
    for x in (torch.tensor([0.0, 2.0]), torch.tensor([0.0, 4.0])):
        moving(x)
    assert float(moving.max_val) == 3.0
    rows = q.PerChannelMinMaxObserver(ch_axis=1)
    rows(torch.tensor([[1.0, 2.0], [3.0, -4.0]]))
    assert rows.max_val.tolist() == [3.0, 2.0] and rows.min_val.tolist() == [1.0, -4.0]
    again = q.PerChannelMinMaxObserver(ch_axis=1)
    again.load_state_dict(rows.state_dict())
    assert torch.equal(again.min_val, rows.min_val)
    histogram = q.HistogramObserver(bins=64)
    for size in (1.0, 2.0):
        histogram(torch.linspace(-size, size, 101))
    assert histogram.histogram.sum() == 202 and histogram.max_val == 2
    with pytest.raises(NotImplementedError, match="qscheme only support"):
        q.MinMaxObserver(qscheme=torch.per_channel_affine)
    with pytest.warns(UserWarning, match="nothing was seen"):
        q.MinMaxObserver().calculate_qparams()


def test_fake_quantisation_is_switched_and_its_scale_kept():
    rounding = q.default_fake_quant()
    x = torch.tensor([-1.0, 0.3, 1.0])
    rounding(x)
    kept = rounding.scale.clone()
    q.disable_observer(rounding)
    rounding(x * 9)
    assert torch.equal(rounding.scale, kept)
    q.disable_fake_quant(rounding)
    assert rounding(x) is x
    channels = q.default_per_channel_weight_fake_quant()
    channels(torch.randn(3, 4))
    other = q.default_per_channel_weight_fake_quant()
    other.load_state_dict(channels.state_dict())
    assert torch.equal(other.scale, channels.scale) and other.scale.shape == (3,)


def test_qconfigs_hold_constructors_and_are_compared_by_what_they_make():
    with pytest.raises(ValueError, match="observer instance"):
        q.QConfig(q.MinMaxObserver(), q.MinMaxObserver)
    assert q.qconfig_equals(q.get_default_qconfig("fbgemm"), q.get_default_qconfig("x86"))
    assert not q.qconfig_equals(q.get_default_qconfig("fbgemm"), q.get_default_qconfig("qnnpack"))
    with pytest.raises(AssertionError, match="backend must be one of"):
        q.get_default_qconfig("gpu")


# ---- networks ----


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()
        self.conv, self.bn, self.relu = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()
        self.conv2 = nn.Conv2d(8, 8, 3, stride=2, groups=2)
        self.add = quantized.FloatFunctional()
        self.pool, self.fc = nn.AdaptiveAvgPool2d(2), nn.Linear(32, 5)

    def forward(self, x):
        x = self.conv2(self.relu(self.bn(self.conv(self.quant(x)))))
        x = self.pool(self.add.add(x, x))
        return self.dequant(self.fc(torch.flatten(x, 1)))


def network():
    torch.manual_seed(0)
    net, x = Net(), torch.randn(4, 3, 9, 9)
    for _ in range(3):
        net(x * 1.5 + 0.3)
    return net, x


def test_a_network_is_fused_calibrated_and_converted():
    net, x = network()
    net.eval()
    fused = q.fuse_modules(net, ["conv", "bn", "relu"])
    assert type(fused.conv) is intrinsic.ConvReLU2d and type(fused.bn) is nn.Identity
    assert torch.allclose(fused(x), net(x), atol=1e-5) and type(net.conv) is nn.Conv2d
    for config in (q.get_default_qconfig("fbgemm"), q.default_qconfig):
        fused.qconfig = config
        prepared = q.prepare(fused)
        prepared(x)
        converted = q.convert(prepared)
        assert type(converted.conv) is intrinsic.quantized.ConvReLU2d
        assert isinstance(converted.fc, quantized.Linear)
        out = converted(x)
        assert (out - net(x)).abs().max() < 0.1 and not out.is_quantized
        file = io.BytesIO()
        torch.save(converted.state_dict(), file)
        file.seek(0)
        other = q.convert(prepared)
        other.fc.set_weight_bias(other.fc.weight(), torch.zeros(5))
        other.load_state_dict(torch.load(file, weights_only=False))
        assert torch.equal(other(x), out)


def test_a_network_is_trained_with_rounded_weights():
    net, x = network()
    net = q.fuse_modules_qat(net.train(), ["conv", "bn", "relu"])
    assert type(net.conv) is intrinsic.ConvBnReLU2d
    net.qconfig = q.get_default_qat_qconfig("fbgemm")
    prepared = q.prepare_qat(net)
    assert type(prepared.conv) is intrinsic.qat.ConvBnReLU2d
    optimizer = torch.optim.SGD(prepared.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        loss = prepared(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    prepared.apply(q.disable_observer)
    prepared.apply(intrinsic.qat.freeze_bn_stats)
    prepared.eval()
    converted = q.convert(prepared)
    assert (converted(x) - prepared(x)).abs().max() < 0.05
    with pytest.raises(AssertionError, match="training mode"):
        q.prepare_qat(net.eval())


def test_rounded_layers_give_their_float_ones_back():
    net, x = network()
    fused = q.fuse_modules_qat(net.train(), [["conv", "bn", "relu"]])
    fused.qconfig = q.default_qat_qconfig
    prepared = q.prepare_qat(fused).eval()
    prepared.apply(q.disable_fake_quant)
    plain = prepared.conv.to_float().eval()
    assert torch.allclose(plain(x), prepared.conv(x), atol=1e-5)
    assert torch.equal(prepared.fc.to_float().weight, prepared.fc.weight)


@pytest.mark.parametrize(
    ("layer", "x"),
    [
        (lambda: nn.Linear(6, 5), torch.randn(7, 6)),
        (lambda: nn.LSTM(6, 5, num_layers=2, bidirectional=True), torch.randn(4, 3, 6)),
        (lambda: nn.GRU(6, 5, batch_first=True), torch.randn(4, 3, 6)),
        (lambda: nn.LSTMCell(6, 5), torch.randn(7, 6)),
        (lambda: nn.GRUCell(6, 5), torch.randn(7, 6)),
        (lambda: nn.RNNCell(6, 5), torch.randn(7, 6)),
    ],
)
def test_weights_become_codes_at_once(layer, x):
    net = nn.Sequential(layer())
    changed = q.quantize_dynamic(net)
    assert type(changed[0]) is not type(net[0])
    ours, float_ones = changed(x), net(x)
    first = lambda out: out if isinstance(out, torch.Tensor) else first(out[0])
    assert (first(ours) - first(float_ones)).abs().max() < 0.1
    assert any(getattr(v, "is_quantized", False) for v in leaves(changed.state_dict()))
    with pytest.raises(ValueError, match="default settings"):
        q.quantize_dynamic(net, dtype=torch.float16)


def leaves(tree):
    if isinstance(tree, dict):
        tree = tree.values()
    return [leaf for v in tree for leaf in (leaves(v) if isinstance(v, tuple) else [v])]


def test_old_places_hold_the_same():
    assert torch.quantization.quantize_dynamic is q.quantize_dynamic
    assert torch.nn.intrinsic.qat.ConvBn2d is intrinsic.qat.ConvBn2d
    assert torch.nn.quantized.dynamic.Linear is quantized.dynamic.Linear
    assert torch.nn.qat.Linear is torch.ao.nn.qat.Linear
    assert callable(torch.quantization.fuse_modules) and callable(torch.ao.quantization.quantize)
