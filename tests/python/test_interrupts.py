"""Signals while a long op works: Ctrl-C ends it there, handlers of the program wait until it is done"""

import signal
import threading

import pytest

import rushlight as torch

from .signals import ends_by_ctrl_c

NAN = float("nan")


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def product(out):
    a = torch.ones(()).expand(out.shape[0], 20_000)
    torch.mm(a, a.t(), out=out)


def sums_of_products(out):
    a = torch.ones(()).expand(1, out.shape[1], 20_000)
    torch.baddbmm(out, a, a.mT, beta=0, out=out)


def sums(out):
    torch.logsumexp(torch.zeros(()).expand(out.shape[0], 1_000_000), 1, out=out)


def distances(out):
    """`cdist` has no `out=`: it is given back where it came to its end."""
    x = torch.zeros(len(out), 50)
    out.copy_(torch.cdist(x, x, p=1.5))


def long_row(out):
    """One channel of a long signal, which threads share out."""
    signal_, taps = torch.zeros(()).expand(1, 1, len(out) + 1999), torch.zeros(1, 1, 2000)
    out.copy_(torch.nn.functional.conv1d(signal_, taps)[0, 0])


@pytest.mark.parametrize(
    ("work", "out"),
    [
        (product, (7000, 7000)),
        (sums_of_products, (1, 7000, 7000)),
        (sums, (7000,)),
        (distances, (20_000, 20_000)),
        (long_row, (20_000_000,)),
    ],
    ids=["mm", "baddbmm", "logsumexp", "cdist", "conv1d"],
)
def test_ctrl_c_ends_an_op_in_its_midst(work, out):
    """Some of the result is not there yet."""
    result = torch.full(out, NAN)
    with ends_by_ctrl_c():
        work(result)
    assert result.isnan().any()
    assert (torch.ones(2, 3) @ torch.ones(3, 2)).tolist() == [[3, 3], [3, 3]]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_handlers_of_programs_wait_for_the_op(number):
    """They may save what the op writes: they see all of it, or nothing."""
    result = torch.full((2500, 2500), NAN)
    seen = []
    before = signal.signal(number, lambda *_: seen.append(int(result.isnan().sum())))
    main = threading.get_ident()
    timer = threading.Timer(0.1, lambda: signal.pthread_kill(main, number))
    timer.start()
    try:
        product(result)
        timer.join()
    finally:
        signal.signal(number, before)
    assert seen in ([0], [result.numel()]) and not result.isnan().any()
