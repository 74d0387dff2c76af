"""Normalisations against their formulas: layouts, statistics, accuracy, mixed dtypes, threads."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.nn import functional as F
from tests.python.closeness import assert_near, assert_same_bits

SHAPES = [(40, 17), (16, 5, 33), (3, 20, 13, 14), (2, 4, 3, 5, 7), (300, 3)]


def formula(x, dims, eps=1e-5):
    x = x.double()
    mean = x.mean(dims, keepdim=True)
    var = ((x - mean) ** 2).mean(dims, keepdim=True)
    return (x - mean) / (var + eps).sqrt()


def but_channels(x):
    return [d for d in range(x.dim()) if d != 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_batch_norm_in_training(shape, dtype):
    x = (torch.randn(*shape) * 3 + 5).to(dtype)
    c = shape[1]
    w, b, mean, var = (
        torch.randn(c).to(dtype),
        torch.randn(c).to(dtype),
        torch.zeros(c),
        torch.ones(c),
    )
    mean, var = (t if dtype is torch.bfloat16 else t.to(dtype) for t in (mean, var))
    y = F.batch_norm(x, mean, var, w, b, training=True, momentum=0.25)
    view = [1, c] + [1] * (len(shape) - 2)
    expected = formula(x, but_channels(x)) * w.double().view(view) + b.double().view(view)
    tolerance = 0.1 if dtype is torch.bfloat16 else 1e-4
    assert_near(y.double(), expected, rtol=tolerance, atol=tolerance)
    flat = x.double().transpose(0, 1).reshape(c, -1)
    assert_near(mean.double(), 0.25 * flat.mean(1), rtol=1e-3, atol=1e-3)
    assert_near(var.double(), 0.75 + 0.25 * flat.var(1), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_channels_last_images(training):
    x, g = torch.randn(5, 20, 9, 11), torch.randn(5, 20, 9, 11)
    w, b, mean, var = torch.randn(20), torch.randn(20), torch.randn(20), torch.rand(20) + 0.5
    results = []
    for memory_format in (torch.contiguous_format, torch.channels_last):
        a = x.clone().contiguous(memory_format=memory_format).requires_grad_()
        p, q, m, v = (t.clone() for t in (w, b, mean, var))
        p.requires_grad_()
        q.requires_grad_()
        y = F.batch_norm(a, m, v, p, q, training)
        assert y.is_contiguous(memory_format=memory_format)
        results.append((y, m, v, *torch.autograd.grad(y, (a, p, q), g)))
    for one, other in zip(*results, strict=True):
        assert_near(one, other, rtol=1e-4, atol=1e-5)


def test_statistics_survive_a_large_mean():
    x = torch.randn(64, 8, 7, 7) + 10000
    y = F.batch_norm(x, None, None, training=True)
    assert_near(y.double(), formula(x, (0, 2, 3)), rtol=5e-2, atol=5e-2)
    z = F.layer_norm(x.reshape(64, -1), (392,))
    assert_near(z.double(), formula(x.reshape(64, -1), -1), rtol=1e-2, atol=1e-2)


def test_two_forwards_then_one_backward():
    layer = torch.nn.BatchNorm1d(3)
    x = torch.randn(8, 3, requires_grad=True)
    (layer(x) + layer(x * 2)).sum().backward()
    assert x.grad.shape == x.shape
    assert layer.num_batches_tracked.item() == 2


@pytest.mark.parametrize("shape", [(7, 1), (5, 16), (64, 256), (3, 4, 37), (200, 20)], ids=str)
def test_layer_norm(shape):
    x = torch.randn(*shape, requires_grad=True)
    w, b = torch.randn(shape[-1], requires_grad=True), torch.randn(shape[-1], requires_grad=True)
    g = torch.randn(*shape)
    y = F.layer_norm(x, shape[-1:], w, b)
    got = torch.autograd.grad(y, (x, w, b), g)
    x64, w64, b64 = (t.detach().double().requires_grad_() for t in (x, w, b))
    z = formula(x64, -1) * w64 + b64
    want = torch.autograd.grad(z, (x64, w64, b64), g.double())
    for p, q in zip((y, *got), (z, *want), strict=True):
        assert_near(p.double(), q, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("function", ["layer_norm", "group_norm", "batch_norm", "rms_norm"])
def test_sixteen_bits_beside_parameters_of_32(function):
    x = torch.randn(4, 6, 10).bfloat16()
    w, b = torch.rand(6) + 0.5, torch.randn(6)
    if function == "group_norm":
        y = F.group_norm(x, 2, w, b)
        expected = F.group_norm(x.float(), 2, w, b)
    elif function == "batch_norm":
        y = F.batch_norm(x, None, None, w, b, training=True)
        expected = F.batch_norm(x.float(), None, None, w, b, training=True)
    else:
        x = x.transpose(1, 2).contiguous()
        arguments = (w, b) if function == "layer_norm" else (w,)
        y = getattr(F, function)(x, (6,), *arguments)
        expected = getattr(F, function)(x.float(), (6,), *arguments)
    assert y.dtype is torch.bfloat16
    assert_near(y.float(), expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("shape", [(40, 300), (6, 24, 17, 19)], ids=str)
def test_bits_do_not_depend_on_threads(shape):
    x = torch.randn(*shape, requires_grad=True)
    w, b = torch.randn(shape[1], requires_grad=True), torch.randn(shape[1], requires_grad=True)
    g = torch.randn(*shape)

    def gradients(y, *leaves):
        return y, *torch.autograd.grad(y, leaves, g)

    assert_same_bits(lambda: gradients(F.batch_norm(x, None, None, w, b, training=True), x, w, b))
    assert_same_bits(lambda: gradients(F.group_norm(x, 2, w, b), x, w, b))
    assert_same_bits(lambda: gradients(F.layer_norm(x, shape[1:]), x))
    assert_same_bits(lambda: gradients(F.rms_norm(x, shape[1:]), x))


def test_empty_batches():
    for y in (
        F.batch_norm(torch.zeros(0, 3, 4), None, None, training=True),
        F.layer_norm(torch.zeros(0, 4), (4,)),
        F.group_norm(torch.zeros(0, 4, 2), 2),
    ):
        assert y.numel() == 0
    x = torch.zeros(0, 4, requires_grad=True)
    w = torch.ones(4, requires_grad=True)
    F.layer_norm(x, (4,), w).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), np.zeros(4))


@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.channels_last_3d])
def test_group_norm_keeps_the_memory_format(memory_format):
    size = (2, 6, 5, 4) if memory_format == torch.channels_last else (2, 6, 3, 5, 4)
    x = torch.randn(size, dtype=torch.float64).requires_grad_()
    last = x.detach().to(memory_format=memory_format).requires_grad_()
    norm = torch.nn.GroupNorm(3, 6, dtype=torch.float64)
    expected, actual = norm(x), norm(last)
    assert actual.is_contiguous(memory_format=memory_format) and torch.equal(expected, actual)
    weight = torch.randn(size, dtype=torch.float64)
    (expected * weight).sum().backward()
    (actual * weight).sum().backward()
    torch.testing.assert_close(x.grad, last.grad)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "layer",
    [
        lambda: torch.nn.BatchNorm2d(4),
        lambda: torch.nn.BatchNorm2d(4, track_running_stats=False),
        lambda: torch.nn.GroupNorm(2, 4),
        lambda: torch.nn.LayerNorm([4, 2, 3]),
        lambda: torch.nn.LayerNorm(3),
        lambda: torch.nn.RMSNorm(3),
        lambda: torch.nn.InstanceNorm2d(4, affine=True),
    ],
    ids=["batch", "batch without statistics", "group", "layer", "last layer", "rms", "instance"],
)
def test_gradients_of_empty_batches_are_zero(layer, training):
    """A sum over nothing, which would spoil every step that adds it to others."""
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        module = layer().to(dtype).train(training)
        module(torch.zeros(0, 4, 2, 3, dtype=dtype, requires_grad=True)).sum().backward()
        for name, p in module.named_parameters():
            assert p.grad is not None and (p.grad == 0).all(), (name, dtype)
