"""`MaskedTensor`: what plain ops make of the elements that take part, and their gradients."""

import math

import pytest

import rushlight as rl
from rushlight.masked import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor
from rushlight.masked.maskedtensor.binary import BINARY_NAMES, INPLACE_BINARY_NAMES
from rushlight.masked.maskedtensor.reductions import REDUCE_NAMES
from rushlight.masked.maskedtensor.unary import INPLACE_UNARY_NAMES, UNARY_NAMES

LAYOUTS = [rl.strided, rl.sparse_coo, rl.sparse_csr]


def numbers(layout=rl.strided, requires_grad=False, dtype=rl.float64):
    data = rl.tensor([[0.25, 0.5, 0.75], [0.375, 0.625, 0.875]], dtype=dtype)
    mask = rl.tensor([[True, False, True], [False, True, False]])
    made = masked_tensor(data, mask, requires_grad)
    if layout == rl.sparse_coo:
        made = made.to_sparse()
    return data, mask, made.to_sparse_csr() if layout == rl.sparse_csr else made


def taken(t):
    """The elements that take part."""
    return t.to_dense().get_data()[t.to_dense().get_mask()].tolist()


def arguments(name):
    if name.startswith("bitwise"):
        return rl.int64
    return rl.float64


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("name", UNARY_NAMES)
def test_unary(name, layout):
    data, mask, x = numbers(layout, dtype=arguments(name))
    data = data + 1 if "acosh" in name or "arccosh" in name else data
    x = x + 1 if "acosh" in name or "arccosh" in name else x
    rest = {"clamp": (0.3, 0.6), "clip": (0.3, 0.6), "pow": (2,)}.get(name, ())
    expected = getattr(rl, name)(data, *rest)[mask].tolist()
    for call in (getattr(rl, name), getattr(rl.ops.aten, name)):
        made = call(x, *rest)
        assert is_masked_tensor(made) and made.layout is x.layout
        assert taken(made) == expected
    if f"{name}_" in INPLACE_UNARY_NAMES:
        made = getattr(x, f"{name}_")(*rest)
        assert made is x and taken(x) == expected


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("name", BINARY_NAMES)
def test_binary(name, layout):
    data, mask, x = numbers(layout, dtype=arguments(name))
    other = (data + 1).flip(1)
    y = masked_tensor(other, mask)
    y = y.to_sparse() if layout == rl.sparse_coo else y
    y = y.to_sparse_csr() if layout == rl.sparse_csr else y
    expected = getattr(rl, name)(data, other)[mask].tolist()
    assert taken(getattr(rl, name)(x, y)) == expected
    assert taken(getattr(rl.ops.aten, name)(x, y)) == expected
    if layout == rl.strided:
        assert taken(getattr(rl, name)(x, other)) == expected
    if f"{name}_" in INPLACE_BINARY_NAMES:
        made = getattr(x, f"{name}_")(y)
        assert made is x and taken(x) == getattr(data.clone(), f"{name}_")(other)[mask].tolist()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("name", REDUCE_NAMES)
def test_reductions(name, layout):
    data, mask, x = numbers(layout)
    whole = getattr(x, name)()
    if name in ("argmin", "argmax"):
        assert whole.item() == {"argmin": 0, "argmax": 2}[name]
    else:
        assert whole.item() == getattr(data[mask], name)().item()
    assert whole.get_mask().item()
    of_columns = getattr(x, name)(0) if name != "norm" else x.norm(dim=0)
    assert of_columns.shape == (3,) and of_columns.get_mask().all()
    if name in ("sum", "mean", "amin", "amax", "prod"):
        assert of_columns.get_data().tolist() == [0.25, 0.625, 0.75]
    kept = x.sum(1, keepdim=True)
    assert kept.shape == (2, 1) and kept.get_data().tolist() == [[1.0], [0.625]]


def test_what_is_left_of_nothing_is_masked():
    x = masked_tensor(rl.ones(2, 2), rl.tensor([[True, True], [False, False]]))
    assert x.sum(1).get_mask().tolist() == [True, False]
    assert not masked_tensor(rl.ones(3), rl.zeros(3) > 0).mean().get_mask()


@pytest.mark.parametrize(
    "f",
    [
        lambda t: t.exp(),
        lambda t: t * t + t / 3,
        lambda t: t.t()[1:].reshape(-1) * 2,
        lambda t: rl.cat([t, t * t]).unsqueeze(0),
        lambda t: t.pow(3).clamp(max=0.4),
    ],
)
def test_gradients_are_those_of_plain_ops(f):
    data, mask, x = numbers(requires_grad=True)
    plain = data.clone().requires_grad_()
    f(x).sum().backward()
    f(plain)[f_mask(f, mask)].sum().backward()
    assert is_masked_tensor(x.grad) and x.grad.get_mask().tolist() == mask.tolist()
    assert x.grad.get_data()[mask].tolist() == plain.grad[mask].tolist()


def f_mask(f, mask):
    """Which elements of f's result take part."""
    return f(masked_tensor(mask.double(), mask)).get_mask()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sum", [[1.0, 1.0], [1.0]]),
        ("mean", [[1 / 3, 1 / 3], [1 / 3]]),
        ("amax", [[0.0, 1.0], [0.0]]),
        ("prod", [[0.75 * 0.625, 0.25 * 0.625], [0.25 * 0.75]]),
    ],
)
def test_gradients_of_reductions(name, expected):
    _, mask, x = numbers(requires_grad=True)
    getattr(x, name)().backward()
    flat = [v for row in expected for v in row]
    assert x.grad.get_data()[mask].tolist() == pytest.approx(flat)


def test_softmax_of_what_takes_part():
    data, mask, x = numbers(requires_grad=True)
    weights = rl.softmax(x, -1)
    filled = data.masked_fill(~mask, -math.inf).requires_grad_()
    expected = filled.softmax(-1)
    assert weights.get_data()[mask].tolist() == expected[mask].tolist()
    (weights * weights).sum().backward()
    (expected * expected).sum().backward()
    assert rl.allclose(x.grad.get_data()[mask], filled.grad[mask])
    assert taken(rl.nn.functional.log_softmax(numbers()[2], -1)) == pytest.approx(
        data.masked_fill(~mask, -math.inf).log_softmax(-1)[mask].tolist()
    )


@pytest.mark.parametrize("sparse", ["to_sparse", "to_sparse_csr"])
def test_layouts_and_back(sparse):
    data, mask, x = numbers(requires_grad=True)
    there = getattr(x, sparse)()
    assert there.is_sparse and there.is_sparse_coo() == (sparse == "to_sparse")
    back = there.to_dense()
    assert back.get_data().tolist() == (data * mask).tolist()
    (back * 3).sum().backward()
    assert x.grad.get_data().tolist() == (mask * 3.0).tolist()
    for call in (there.contiguous, there.is_contiguous):
        with pytest.raises(ValueError, match="MaskedTensors with sparse data do not have"):
            call()


def test_gradients_reach_the_data_where_they_should():
    data = rl.ones(3, requires_grad=True)
    mask = rl.tensor([True, False, True])
    as_masked_tensor(data, mask).sum().backward()
    assert is_masked_tensor(data.grad) and data.grad.get_mask().tolist() == mask.tolist()
    with pytest.warns(UserWarning, match="It is not recommended to create a MaskedTensor"):
        x = masked_tensor(data, mask)
    assert not x.requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        x.sum().backward()
    leaf = masked_tensor(data.detach(), mask, requires_grad=True)
    leaf.to_tensor(5.0).sum().backward()
    assert leaf.grad.get_data().tolist() == [1, 0, 1]


def test_where():
    _, mask, x = numbers(requires_grad=True)
    made = rl.where(mask, x, rl.zeros(2, 3, dtype=rl.float64))
    assert made.get_mask().all() and made.get_data().tolist() == [[0.25, 0, 0.75], [0, 0.625, 0]]
    made.sum().backward()
    assert x.grad.get_data().tolist() == mask.double().tolist()


def test_printing():
    _, _, x = numbers()
    text = """MaskedTensor(
  [
    [  0.2500,       --,   0.7500],
    [      --,   0.6250,       --]
  ]
)"""
    assert str(x) == repr(x) == str(x.to_sparse()) == text
    assert str(x.sum()) == "MaskedTensor(  1.6250, True)"
    assert str(masked_tensor(rl.zeros(0), rl.zeros(0) > 0)) == "MaskedTensor(\n  []\n)"
    assert str(masked_tensor(rl.tensor(3), rl.tensor(False))) == "MaskedTensor(--, False)"


def test_data_is_copied_or_shared_as_it_says():
    data, mask = rl.zeros(2), rl.tensor([True, False])
    masked_tensor(data, mask).add_(1)
    assert data.tolist() == [0, 0]
    as_masked_tensor(data, mask).add_(1)
    assert data.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (TypeError, "data must be a Tensor", lambda d, m, x: masked_tensor(x, m)),
        (TypeError, "data must be a Tensor", lambda d, m, x: masked_tensor(0, m)),
        (TypeError, "mask must be a Tensor", lambda d, m, x: masked_tensor(d, x)),
        (TypeError, "same layout", lambda d, m, x: masked_tensor(d.to_sparse(), m)),
        (
            TypeError,
            "layout of torch.sparse_csc is not supported",
            lambda d, m, x: masked_tensor(d.to_sparse_csc(), m.to_sparse_csc()),
        ),
        (TypeError, "mask must have dtype bool", lambda d, m, x: masked_tensor(d, m.int())),
        (TypeError, "complex64 is not", lambda d, m, x: masked_tensor(d.to(rl.complex64), m)),
        (ValueError, "data.dim()", lambda d, m, x: masked_tensor(d, m[0])),
        (ValueError, "data.size()", lambda d, m, x: masked_tensor(d, m[:, :2])),
        (
            ValueError,
            "do not have the same indices",
            lambda d, m, x: masked_tensor((d * m)[:, :2].to_sparse(), m.flip(0)[:, :2].to_sparse()),
        ),
        (ValueError, "Input masks must match", lambda d, m, x: x + masked_tensor(d, ~m)),
        (ValueError, "Input masks must match", lambda d, m, x: x.add_(masked_tensor(d, ~m))),
        (ValueError, "no mask of shape", lambda d, m, x: x + rl.ones(4, 2, 3)),
        (TypeError, "sparse masked tensor", lambda d, m, x: rl.add(x.to_sparse(), d)),
        (TypeError, "aten.max.default", lambda d, m, x: x.max()),
        (TypeError, "aten.mm.default", lambda d, m, x: rl.mm(x, d.t())),
        (TypeError, "at most", lambda d, m, x: x.sum(0, False, 3)),
        (IndexError, "out of range", lambda d, m, x: x.sum(5)),
        (
            RuntimeError,
            "Only Tensors of floating point and complex dtype can require gradients",
            lambda d, m, x: masked_tensor(d.int(), m, requires_grad=True),
        ),
    ],
)
def test_errors(error, text, call):
    with pytest.raises(error, match=text.replace("(", "\\(").replace(")", "\\)")):
        call(*numbers())


def test_the_class_is_the_constructor():
    data, mask, x = numbers()
    assert isinstance(x, MaskedTensor) and type(MaskedTensor(data, mask)) is MaskedTensor
    assert x.to(rl.float32).dtype == rl.float32 and x.get_data().dtype == rl.float64


def test_copies_bring_their_mask():
    data, mask, x = numbers()
    y = x.exp()
    y.copy_(masked_tensor(data, ~mask))
    assert taken(y) == data[~mask].tolist() and x.get_mask().tolist() == mask.tolist()
    assert y.copy_(data).get_mask().all()
