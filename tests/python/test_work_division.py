"""Work is cut by its amount, whatever the number of threads: a millisecond of it into 32 pieces at least."""

import pytest

import rushlight as torch

# m, n, k of products, with a batch before them or not.
PRODUCTS = [
    *((n, n, n) for n in (8, 64, 128, 256, 512, 777, 1024, 1500)),
    *((m, 4096, 4096) for m in (1, 2, 5, 16, 100)),
    *((m, 1000, 333) for m in (40, 77, 500, 2000)),
    (4096, 1, 4096),
    (1, 30000, 512),
    (16384, 64, 64),
    (64, 64, 16384),
    (16, 16, 100_000),
    (4096, 768, 64),
    (197, 3072, 768),
    (50, 300, 40),
    (100_000, 16, 16),
    (16, 100_000, 16),
    (300, 700, 500),
    (2048, 2048, 16),
    (512, 512, 4096),
    (64, 64, 64, 64),
    (16, 256, 256, 256),
    (1024, 8, 8, 8),
    (96, 128, 32, 128),
    (12, 197, 197, 64),
    (3, 512, 512, 512),
    (256, 40, 40, 40),
    (2, 33, 4096, 1024),
    (7, 100, 100, 1000),
    (4096, 1, 64, 64),
]
# What a core of 2023 multiplies and adds in a millisecond.
MILLISECOND = 60_000_000


def pieces(run):
    """Of the loop that is cut finest."""
    torch._watch_cuts()
    run()
    return max(torch._cuts(), default=1)


def product(shape, transposed):
    *batch, m, n, k = shape
    a = torch.ones(*batch, m, k)
    b = torch.ones(*batch, n, k).mT if transposed else torch.ones(*batch, k, n)
    return lambda: a @ b


@pytest.mark.parametrize("transposed", [False, True], ids=["plain", "transposed"])
def test_products_are_cut_by_their_work(transposed):
    assert len(PRODUCTS) == 40
    few = []
    for shape in PRODUCTS:
        work = torch.Size(shape).numel()
        found = {}
        before = torch.get_num_threads()
        try:
            for threads in (1, 3):
                torch.set_num_threads(threads)
                found[threads] = pieces(product(shape, transposed))
        finally:
            torch.set_num_threads(before)
        print("x".join(map(str, shape)), work, found[1])
        assert found[1] == found[3], shape
        if work >= MILLISECOND and found[1] < 32:
            few.append((shape, found[1]))
    assert not few


def test_a_product_of_1024_has_64_pieces():
    assert pieces(product((1024, 1024, 1024), False)) >= 64


def test_small_work_stays_whole():
    assert pieces(product((32, 32, 32), False)) == 1


# Channels in and out, kernel, stride, groups, dilation, image: classifiers, detectors, U-Nets, speech, video.
CONVOLUTIONS = [
    (3, 32, (3, 3), 2, 1, 1, (224, 224)),
    (64, 64, (3, 3), 1, 1, 1, (56, 56)),
    (128, 128, (3, 3), 1, 1, 1, (28, 28)),
    (256, 256, (3, 3), 1, 1, 1, (14, 14)),
    (512, 512, (3, 3), 1, 1, 1, (7, 7)),
    (128, 256, (3, 3), 2, 1, 1, (56, 56)),
    (256, 512, (3, 3), 2, 1, 1, (28, 28)),
    (256, 64, (1, 1), 1, 1, 1, (96, 96)),
    (1024, 256, (1, 1), 1, 1, 1, (16, 16)),
    (512, 1024, (1, 1), 2, 1, 1, (28, 28)),
    (96, 96, (3, 3), 1, 1, 4, (40, 40)),
    (256, 256, (3, 3), 1, 16, 1, (56, 56)),
    (32, 32, (3, 3), 1, 32, 1, (512, 512)),
    (384, 384, (7, 7), 1, 384, 1, (64, 64)),
    (80, 512, (3,), 1, 1, 1, (1500,)),
    (512, 512, (3,), 2, 1, 1, (400,)),
]


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("shape", CONVOLUTIONS, ids=str)
def test_convolutions_are_cut_by_their_work(shape, batch):
    """Forward, gradient of the input, gradient of the weight. oneDNN computes pieces of ours on one
    thread each, so that they count as those of other ways."""
    inputs, outputs, kernel, stride, groups, dilation, image = shape
    x = torch.ones(batch, inputs, *image, requires_grad=True)
    w = torch.ones(outputs, inputs // groups, *kernel, requires_grad=True)
    padding = tuple(k // 2 * dilation for k in kernel) if stride < kernel[0] else 0
    conv = getattr(torch.nn.functional, f"conv{len(kernel)}d")

    def forward():
        return conv(x, w, None, stride, padding, dilation, groups)

    y = forward()
    g = torch.ones_like(y)
    work = y.numel() * inputs // groups * torch.Size(kernel).numel()
    few = []
    for name, run in (
        ("forward", forward),
        ("input", lambda: torch.autograd.grad(y, x, g, retain_graph=True)),
        ("weight", lambda: torch.autograd.grad(y, w, g, retain_graph=True)),
    ):
        found = {}
        before = torch.get_num_threads()
        try:
            for threads in (2, 3):
                torch.set_num_threads(threads)
                found[threads] = pieces(run)
        finally:
            torch.set_num_threads(before)
        print(name, batch, shape, work, found[2])
        assert found[2] == found[3], name
        if work >= MILLISECOND and found[2] < 32:
            few.append((name, found[2]))
    assert not few
