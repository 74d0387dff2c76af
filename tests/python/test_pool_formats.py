"""Pooling of single images, and of tensors whose strides look like channels last but are not batches of images;
maxima alone, which are computed another way than those whose places are wanted."""

import random

import pytest

import rushlight as torch
import rushlight.nn.functional as F


def strided(*sizes):
    t = torch.arange(float(torch.Size(sizes).numel())).reshape(*sizes)
    return t, t.to(memory_format=torch.channels_last if t.dim() == 4 else torch.channels_last_3d)


@pytest.mark.parametrize(
    "pool",
    [
        lambda x: F.max_pool3d(x, 2),
        lambda x: F.avg_pool3d(x, 2),
        lambda x: F.adaptive_max_pool3d(x, (2, 3, 1)),
        lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)),
    ],
)
def test_one_volume(pool):
    dense, other = strided(6, 7, 5, 4)
    assert other.stride() != dense.stride()
    other.requires_grad_()
    dense.requires_grad_()
    assert torch.equal(pool(dense), pool(other))
    pool(dense).square().sum().backward()
    pool(other).square().sum().backward()
    assert torch.equal(dense.grad, other.grad)


@pytest.mark.parametrize("sizes", [(3, 4, 6, 8), (2, 3, 4, 6, 8)])
def test_batches(sizes):
    dense, other = strided(*sizes)
    pool = F.max_pool2d if len(sizes) == 4 else F.max_pool3d
    assert torch.equal(pool(dense, 2), pool(other, 2))
    assert pool(other, 2).stride() != pool(dense, 2).stride()


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_windows_that_pass_by_the_image(layout):
    """Taps of a dilated window at -1 and 1 of an image of one row: nothing is inside, and nothing has a gradient."""
    x = torch.randn(2, 3, 1, 4).to(memory_format=layout).requires_grad_()
    values, places = torch.nn.functional.max_pool2d(x, [2, 5], 5, 1, [2, 1], return_indices=True)
    assert values.eq(-float("inf")).all() and places.eq(-1).all()
    values.sum().backward()
    assert x.grad.eq(0).all()


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_windows_far_larger_than_images(kind):
    x = torch.arange(36.0).reshape(1, 4, 3, 3).requires_grad_()
    pool = getattr(torch.nn.functional, f"{kind}_pool2d")
    y = pool(x, 2**31 - 2, padding=2**30 - 1, ceil_mode=True)
    y.sum().backward()
    if kind == "max":
        assert y.flatten().tolist() == [8.0, 17.0, 26.0, 35.0]
        assert x.grad.sum() == 4
    else:
        assert y.shape == (1, 4, 1, 1) and x.grad.unique().numel() == 1


def bits(t):
    return t.contiguous().view(
        {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()]
    )


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int8, torch.int64]
)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_maxima_with_and_without_places(dims, dtype):
    """The same bits: of equal zeros the first one's sign, and NaN."""
    draw = random.Random(dims)
    torch.manual_seed(dims)
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[dims - 1]
    compared = 0
    while compared < 60:
        lengths = (1, 2, 3, 5, 8, 13, 17, 33, 40) if dims < 3 else (1, 2, 3, 5, 8)
        size = [
            draw.randint(1, 3),
            draw.randint(1, 5),
            *(draw.choice(lengths) for _ in range(dims)),
        ]
        kernel = [draw.randint(1, 5) for _ in range(dims)]
        stride = [draw.randint(1, 6) for _ in range(dims)]
        dilation = [draw.choice((1, 1, 2, 3)) for _ in range(dims)]
        padding = [
            draw.randint(0, ((k - 1) * d + 1) // 2) for k, d in zip(kernel, dilation, strict=True)
        ]
        if dtype.is_floating_point:
            x = torch.randn(size).mul(3).to(dtype)
            for value in (float("nan"), -float("inf"), 0.0, -0.0):
                x[torch.rand(size) < 0.08] = value
        else:
            x = torch.randint(-100, 100, size).to(dtype)
        if dims > 1 and draw.random() < 0.3:
            x = x.to(memory_format=torch.channels_last if dims == 2 else torch.channels_last_3d)
        window = (kernel, stride, padding, dilation, draw.random() < 0.5)
        try:
            alone = pool(x, *window)
        except RuntimeError as error:
            assert "too small" in str(error)
            continue
        places = pool(x, *window, return_indices=True)[0]
        assert alone.stride() == places.stride()
        assert torch.equal(bits(alone), bits(places)), (size, window)
        compared += 1
