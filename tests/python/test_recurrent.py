"""Recurrent layers on batches and sequences at their ends, and packed sequences."""

import math

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.utils import rnn

KINDS = [nn.RNN, nn.LSTM, nn.GRU]
OPTIONS = [{}, {"bidirectional": True}, {"num_layers": 2, "dropout": 0.5}, {"batch_first": True}]
OPTIONS += [{"batch_first": True, "num_layers": 2, "dropout": 0.5}]


def states(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_batch(kind, options, given):
    model = kind(3, 4, **options)
    first = options.get("batch_first", False)
    x = torch.randn(*((0, 5) if first else (5, 0)), 3, requires_grad=True)
    cells = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    width = 4 * (1 + options.get("bidirectional", False))
    hx = None
    if given:
        hx = torch.zeros(cells, 0, 4)
        hx = (hx, hx) if kind is nn.LSTM else hx
    y, last = model(x, hx)
    assert y.shape == (*x.shape[:2], width)
    assert all(s.shape == (cells, 0, 4) for s in states(last))
    y.sum().backward()
    assert x.grad.shape == x.shape
    for p in model.parameters():
        assert torch.equal(p.grad, torch.zeros_like(p))


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_sequence_is_refused(kind):
    for shape in ((0, 2, 3), (0, 0, 3), (0, 3)):
        with pytest.raises(RuntimeError, match="sequence length larger than 0"):
            kind(3, 4)(torch.ones(shape))


def test_projections_and_cells_of_an_empty_batch():
    y, (h, c) = nn.LSTM(3, 4, proj_size=2)(torch.ones(5, 0, 3))
    assert (y.shape, h.shape, c.shape) == ((5, 0, 2), (1, 0, 2), (1, 0, 4))
    for kind in (nn.RNNCell, nn.LSTMCell, nn.GRUCell):
        assert all(s.shape == (0, 4) for s in states(kind(3, 4)(torch.ones(0, 3))))


def test_all_of_a_masks_share_is_dropped():
    """A probability of 1 leaves the first layer's results nothing, in both orders."""
    for first in (False, True):
        torch.manual_seed(0)
        model = nn.GRU(3, 4, 2, dropout=1.0, batch_first=first)
        x = torch.randn(2, 2, 3)
        assert torch.equal(model(x)[0], model(x + 1)[0])


# ---- packed sequences ----

INPUT = torch.arange(24.0).reshape(4, 3, 2)  # three sequences of up to 4 elements

COUNT = r"Expected `len\(lengths\)` to be equal to batch_size"
WRONG = [
    ([4, 3], COUNT),
    ([4, 3, 2, 1], COUNT),
    ([], COUNT),
    (torch.tensor([4, 3]), COUNT),
    ([4, 3, 0], "greater than 0"),
    ([4, 3, -1], "greater than 0"),
    ([5, 3, 2], "at most 4"),
    ([2**62, 3, 2], "at most 4"),
    ([4, 2.5, 1], "whole numbers"),
    (torch.tensor([4, 2.5, 1]), "whole numbers"),
    (torch.tensor([4, math.nan, 1]), "whole numbers"),
    (torch.tensor([[4, 3, 2]]), "1D CPU int64 tensor"),
    (torch.tensor(4), "1D CPU int64 tensor"),
    (4, "1D CPU int64 tensor"),
    (torch.tensor([4, 3, 2], device="meta"), "1D CPU int64 tensor"),
]


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("case", range(len(WRONG)))
def test_wrong_lengths(case, first, is_sorted):
    lengths, message = WRONG[case]
    x = INPUT.transpose(0, 1) if first else INPUT
    with pytest.raises(RuntimeError, match=message):
        rnn.pack_padded_sequence(x, lengths, first, is_sorted)


def test_lengths_of_another_kind():
    with pytest.raises(RuntimeError, match="sorted in decreasing order"):
        rnn.pack_padded_sequence(INPUT, [2, 3, 4])
    for lengths in ("abc", None):
        with pytest.raises(TypeError):
            rnn.pack_padded_sequence(INPUT, lengths)
    for shape in ((4,), ()):
        with pytest.raises(IndexError):
            rnn.pack_padded_sequence(torch.ones(shape), [1])
    for shape in ((0, 3, 2), (4, 0, 2)):
        with pytest.raises(RuntimeError, match="Cannot pack empty tensors"):
            rnn.pack_padded_sequence(torch.ones(shape), [1] * shape[1])


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    "lengths",
    [[4, 3, 2], [1, 4, 3], [3, 3, 3], [1.0, 4.0, 2.0], torch.tensor([2, 4, 1], dtype=torch.int32)],
)
def test_packing_and_back(lengths, first):
    x = INPUT.transpose(0, 1) if first else INPUT
    packed = rnn.pack_padded_sequence(x, lengths, first, enforce_sorted=False)
    counts = [int(n) for n in lengths]
    assert packed.batch_sizes.tolist() == [sum(n > i for n in counts) for i in range(max(counts))]
    padded, found = rnn.pad_packed_sequence(packed, first, total_length=4)
    assert found.tolist() == counts
    for i, n in enumerate(counts):
        own, back = (t[i] if first else t[:, i] for t in (x, padded))
        assert torch.equal(back[:n], own[:n]) and not back[n:].any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_layers_behind_others_in_mixed_precision(kind, dtype):
    torch.manual_seed(0)
    before = torch.nn.Linear(4, 4)
    for options in ({}, {"num_layers": 2, "bidirectional": True, "batch_first": True}):
        layer = getattr(torch.nn, kind)(4, 3, **options)
        x = torch.randn(2, 3, 4)
        right, _ = layer(before(x))
        with torch.autocast("cpu", dtype=dtype):
            inner = before(x)
            assert inner.dtype is dtype
            out, _ = layer(inner)
            packed = torch.nn.utils.rnn.pack_sequence([inner[0], inner[1][:2]])
            assert layer(packed)[0].data.dtype is dtype
        assert out.dtype is dtype
        assert torch.allclose(out.float(), right, atol=3e-2)
        out.float().sum().backward()
        assert before.weight.grad.any() and layer.weight_ih_l0.grad.dtype is torch.float32
    with pytest.raises(ValueError, match="does not match that of the weights"):
        layer(x.to(dtype))
