"""Outputs that share memory with inputs, with each other or with themselves, that have other sizes or live elsewhere."""

import pytest

import rushlight as torch
from rushlight._table import ops
from tests.ops.harness import Makers, array, assert_same, cases, function_of, tensors_of

SHARED = "some elements of an input and of the written-to tensor"
REPEATED = "more than one element of the written-to tensor"
CASES = cases()
# Every element gets one value: PyTorch, too, lets these write a place several times.
CONSTANT = {"fill_", "zero_", "fill_diagonal_"}


def call(key, text):
    args, kwargs = Makers(torch, CASES[key].dtypes[0], key + text).arguments(text)
    return function_of(torch, CASES[key].op), args, kwargs


def with_form(form):
    return [key for key, case in CASES.items() if form in case.op.variants]


def expanded(t):
    """As large as t, and all of its last dimension in one place."""
    return t[..., :1].clone().expand(t.shape)


def is_view_op(op):
    return op.inplace_only and op.family == "shape" and op.name != "copy_"


def in_place(op):
    """The in-place form of an op, None where Python has none."""
    return getattr(torch.Tensor if "method" in op.variants else ops, op.inplace_name, None)


def writes_elements(op):
    """Not one value, nor geometry alone, nor into lists."""
    return op.name not in CONSTANT and not is_view_op(op) and op.args[0].type.is_tensor


def warns(op):
    return op.kernel.shares == "warned"


WRITTEN = [
    key
    for key in with_form("inplace")
    if writes_elements(CASES[key].op) and not warns(CASES[key].op) and in_place(CASES[key].op)
]


@pytest.mark.parametrize("key", WRITTEN)
def test_in_place_on_an_expanded_tensor_raises(key):
    op, tried = CASES[key].op, 0
    for text in CASES[key].samples:
        _, args, kwargs = call(key, text)
        if (
            not isinstance(args[0], torch.Tensor)
            or args[0].dim() == 0
            or args[0].shape[-1] < 2
            or args[0].numel() == 0
        ):
            continue
        args[0] = target = expanded(args[0])
        before = target.clone()
        try:
            in_place(op)(*args, **kwargs)
        except RuntimeError as error:
            tried += REPEATED in str(error)
            assert torch.equal(target, before) or target.isnan().any()
        else:
            pytest.fail(f"{op.inplace_name}({text}) wrote into an expanded tensor")
    assert tried or "random" in op.family or not any("x(3, 4)" in t for t in CASES[key].samples)


@pytest.mark.parametrize("key", [k for k in with_form("inplace") if warns(CASES[k].op)])
def test_in_place_on_an_expanded_tensor_warns(key):
    op, tried = CASES[key].op, 0
    for text in CASES[key].samples:
        _, args, kwargs = call(key, text)
        x = args[0]
        fits = function_of(torch, op)(*args, **kwargs).shape == x.shape
        if fits and x.dim() > 0 and x.shape[-1] > 1 and x.numel() > 0:
            args[0] = expanded(x)
            with pytest.warns(UserWarning, match="expanded"):
                in_place(op)(*args, **kwargs)
            tried += 1
    assert tried


@pytest.mark.parametrize("key", with_form("out"))
def test_out_that_overlaps_an_input_in_part_raises(key):
    for text in CASES[key].samples[:4]:
        function, args, kwargs = call(key, text)
        expected = function(*args, **kwargs)
        inputs = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.numel() > 1]
        if not isinstance(expected, torch.Tensor) or expected.numel() < 2:
            continue
        same = [i for i in inputs if args[i].dtype == expected.dtype]
        if not same or CASES[key].op.kind == "composite" or CASES[key].op.kernel.kind == "update":
            continue
        n = args[same[0]].numel()
        both = torch.zeros(n + expected.numel() - 1, dtype=expected.dtype)
        args[same[0]] = both[:n].view(args[same[0]].shape).copy_(args[same[0]])
        out = both[n - 1 :].view(expected.shape)
        with pytest.raises(RuntimeError, match=SHARED):
            function(*args, **kwargs, out=out)


@pytest.mark.parametrize("key", with_form("out"))
def test_out_on_another_device_raises(key):
    for text in CASES[key].samples[:3]:
        function, args, kwargs = call(key, text)
        expected = tensors_of(function(*args, **kwargs))
        if CASES[key].op.has_options or not tensors_of([*args, *kwargs.values()]):
            continue  # factories go where out= is
        outs = tuple(torch.empty(t.shape, dtype=t.dtype, device="meta") for t in expected)
        with pytest.raises(RuntimeError, match="device"):
            function(*args, **kwargs, out=outs[0] if len(outs) == 1 else outs)


@pytest.mark.parametrize("key", [k for k in with_form("out") if len(CASES[k].op.results) > 1])
def test_outputs_that_share_memory_raise(key):
    for text in CASES[key].samples[:3]:
        function, args, kwargs = call(key, text)
        expected = function(*args, **kwargs)
        if len({t.dtype for t in expected}) > 1 or expected[0].numel() == 0:
            continue
        out = torch.empty_like(expected[0])
        with pytest.raises(RuntimeError, match="two of the output tensors share memory"):
            function(*args, **kwargs, out=(out,) * len(expected))


def test_copy_of_an_overlapping_part_raises():
    y = torch.arange(6.0)
    with pytest.raises(RuntimeError, match=SHARED):
        y[1:].copy_(y[:-1])
    with pytest.raises(RuntimeError, match=SHARED):
        y[1:] = y[:-1]
    x = torch.arange(16.0).reshape(4, 4)
    for write in (
        lambda: x.copy_(x.t()),
        lambda: x.add_(x.t()),
        lambda: torch.mul(x, 2, out=x.t()),
    ):
        with pytest.raises(RuntimeError, match=SHARED):
            write()
    with pytest.raises(RuntimeError, match=REPEATED):
        torch.zeros(1).expand(3).copy_(torch.ones(3))
    assert y.tolist() == [0, 1, 2, 3, 4, 5] and x[0, 1] == 1


@pytest.mark.parametrize(
    "key", [slice(0, 2), slice(0, 4, 2), slice(None), ..., None, (slice(1, 3), None)]
)
def test_items_of_an_expanded_tensor_are_not_set(key):
    """Neither to a number nor to a tensor; one place is one element, which may be."""
    t = torch.zeros(1).expand(4)
    for value in (5.0, torch.tensor(5.0), torch.tensor([5.0]), True):
        with pytest.raises(RuntimeError, match=REPEATED):
            t[key] = value
    assert t.tolist() == [0, 0, 0, 0]
    t[:1] = 5.0
    t[1] = 6.0
    rows = torch.zeros(3, 1).expand(3, 4)
    rows[:, 0] = torch.tensor([1.0, 2, 3])
    rows[1, 2] = 7.0
    assert t.tolist() == [6] * 4 and rows[:, 3].tolist() == [1, 7, 3]
    with pytest.raises(RuntimeError, match=REPEATED):
        rows[0] = 1.0
    meta = torch.zeros(1, device="meta").expand(4)
    meta[:2] = 5.0
    for key in (torch.tensor([True, False, True, False]), torch.tensor([0, 2]), [0, 2]):
        with pytest.warns(UserWarning, match="expanded"):
            t[key] = 9.0
    assert t.tolist() == [9] * 4
    t.fill_(2.0), t.fill_(torch.tensor(3.0)), t.zero_()  # one value, wherever it goes
    assert t.tolist() == [0] * 4


def test_layouts_with_gaps_are_read_before_they_are_written():
    """Nobody can tell cheaply whether these overlap: they may be used, and give what copies would."""
    x = torch.arange(16.0).reshape(4, 4)
    expected = x[:, :-1].clone() + x[:, 1:].clone()
    x[:, 1:].add_(x[:, :-1])
    assert torch.equal(x[:, 1:], expected)
    y = torch.arange(9.0).reshape(3, 3) + 1
    y[:, 0] /= y[0, 0] * 1
    y[:, 1] *= y[1, 1]
    assert y[:, 1].tolist() == [10, 25, 40]
    z = torch.arange(6.0)
    z[::2] = z[1::2]
    assert z.tolist() == [1, 1, 3, 3, 5, 5]


def test_writing_a_tensor_into_itself_is_fine():
    x = torch.arange(4.0)
    assert x.copy_(x).tolist() == x[:].copy_(x).tolist() == [0, 1, 2, 3]
    x[1:] += 1
    assert torch.add(x, x, out=x).tolist() == [0, 4, 6, 8]
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert torch.mm(a, a, out=a).tolist() == [[7, 10], [15, 22]]


def test_out_that_is_an_input_of_another_size():
    a, b = torch.ones(2, 3), torch.ones(3, 4)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.mm(a, b, out=a)
    c = torch.ones(3)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.add(c, a, out=c)
    assert a.shape == (2, 3) and c.shape == (3,)


def test_out_grows_the_storage_that_inputs_share():
    for function, args in ((torch.add, (torch.ones(3),)), (torch.cumsum, (0,)), (torch.mul, (2,))):
        storage = torch.arange(4.0)
        x, out = storage[:3], storage[3:3]
        expected = function(x.clone(), *args)
        function(x, *args, out=out)
        assert torch.equal(out, expected) and x.tolist() == [0, 1, 2]


def test_a_refused_resize_changes_nothing():
    x = torch.arange(3.0)
    for sizes in ([-1, -3], [3, -1], [2**62, 4], [2**40, 2**40], [1] * 65):
        with pytest.raises(RuntimeError):
            x.resize_(sizes)
        assert x.tolist() == [0, 1, 2] and x.stride() == (1,)


def test_sizes_that_no_memory_has():
    for sizes in ([2**60], [2**40, 2**40], [2**31, 2**31, 2], [2**40, 2**40, 0], [0, 2**40, 2**40]):
        with pytest.raises(RuntimeError):
            torch.empty(sizes)
        with pytest.raises(RuntimeError):
            torch.zeros(1).expand(2**40, 2**40)
    assert torch.empty(2**40, 0, 2**40).stride() == (2**40, 2**40, 1)
    assert_same(torch.tril_indices(3, 3, 2**63 - 1), torch.ones(3, 3).nonzero().t())
    assert (
        torch.triu_indices(2**40, 0).shape == torch.tril_indices(2**40, 5, -(2**63)).shape == (2, 0)
    )
    with pytest.raises(RuntimeError):
        torch.triu_indices(2, 2**63 - 1)
    with pytest.raises(RuntimeError, match="pieces"):
        torch.ones(3).tensor_split(2**40)
    for row, col, offset in (
        (3, 4, 0),
        (4, 3, 1),
        (4, 3, -2),
        (2, 5, 3),
        (5, 2, -4),
        (3, 3, 7),
        (3, 3, -7),
    ):
        full = torch.ones(row, col)
        assert_same(torch.tril_indices(row, col, offset), full.tril(offset).nonzero().t())
        assert_same(torch.triu_indices(row, col, offset), full.triu(offset).nonzero().t())
    assert array(torch.ones(()).topk(0).values) == 1
