"""Nested tensors: each op against the same op on the components, one by one."""

import copy
import io
import math
import subprocess
import sys

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight._rules import kinds
from rushlight.autograd import gradcheck, gradgradcheck

LAYOUTS = [torch.strided, torch.jagged]
LENGTHS = (2, 4, 1)


def parts(*inner, dtype=torch.float64, grad=False, lengths=LENGTHS):
    torch.manual_seed(0)
    return [torch.randn(n, *inner, dtype=dtype, requires_grad=grad) for n in lengths]


def nest(components, layout=torch.jagged):
    return torch.nested.as_nested_tensor(components, layout=layout)


def same(nested, expected):
    assert nested.is_nested and len(nested.unbind()) == len(expected)
    for got, want in zip(nested.unbind(), expected, strict=True):
        torch.testing.assert_close(got, want, equal_nan=True)


def holes():
    x = torch.arange(24.0).reshape(3, 4, 2)
    starts, lengths = torch.tensor([0, 1, 0]), torch.tensor([1, 2, 4])
    nt = torch.nested.narrow(x, 1, starts, lengths, layout=torch.jagged)
    return nt, [x[0, :1], x[1, 1:3], x[2]]


def test_import_is_lazy():
    code = "import sys, rushlight; assert not [m for m in sys.modules if '.nested' in m]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pointwise_ops_of_the_table():
    """Those of one tensor, and of two, whatever their names are."""
    x = [p.abs() * 0.4 + 0.3 for p in parts(3)]
    done = 0
    for name in sorted(n.split("::")[1] for n in torch._C._op_names() if n.startswith("aten::")):
        function = getattr(torch, name, None)
        if function is None or not kinds.is_elementwise(name) or name.endswith("_"):
            continue
        for count in (1, 2):
            try:
                expected = [function(*[p] * count) for p in x]
            except (TypeError, RuntimeError):
                continue
            pairs = zip(expected, x, strict=True)
            if all(isinstance(e, torch.Tensor) and e.shape == p.shape for e, p in pairs):
                for layout in LAYOUTS:
                    nt = nest(x, layout)
                    same(function(*[nt] * count), expected)
                    done += 1
    assert done > 240


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "f",
    [
        lambda t: t.tanh() * 2 + t,
        lambda t: t.clamp(-0.5, 0.5),
        lambda t: t.masked_fill(t > 0, 3.0),
        lambda t: torch.where(t > 0, t, t * 2),
        lambda t: t.to(torch.complex128).abs(),
        lambda t: t.clone(),
        lambda t: F.gelu(t),
        lambda t: F.silu(t),
        lambda t: F.softmax(t, -1),
        lambda t: F.linear(t, torch.ones(5, 4, dtype=t.dtype), torch.ones(5, dtype=t.dtype)),
        lambda t: F.dropout(t, 0.5, training=False),
        lambda t: t.sum(-1, keepdim=True),
        lambda t: t.unsqueeze(-1),
        lambda t: t.unsqueeze(-1).squeeze(-1),
        lambda t: t @ torch.ones(4, 2, dtype=t.dtype),
        lambda t: t[..., 1:],
        lambda t: t.chunk(2, -1)[1],
        lambda t: t.split_with_sizes([1, 3], -1)[1],
    ],
)
def test_as_on_components(layout, f):
    x = parts(4, grad=True)
    same(f(nest(x, layout)), [f(p) for p in x])

    def padded(*x):
        return f(nest(x, layout)).contiguous().to_padded_tensor(0.5)

    assert gradcheck(padded, x)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("f", "one"),
    [
        (lambda t: t.transpose(1, 2), lambda p: p.transpose(0, 1)),
        (lambda t: t.softmax(1), lambda p: p.softmax(0)),
        (lambda t: t.select(2, 1), lambda p: p.select(1, 1)),
        (lambda t: t.unflatten(2, (2, 2)), lambda p: p.unflatten(1, (2, 2))),
        (lambda t: F.layer_norm(t, (4,), *NORM), lambda p: F.layer_norm(p, (4,), *NORM)),
        (lambda t: F.rms_norm(t, (4,), NORM[0]), lambda p: F.rms_norm(p, (4,), NORM[0])),
        (lambda t: t.reshape(3, -1, 2, 2), lambda p: p.reshape(-1, 2, 2)),
        (lambda t: t.view(3, -1, 2, 2).transpose(1, 2), lambda p: p.view(-1, 2, 2).transpose(0, 1)),
    ],
)
def test_dims(layout, f, one):
    x = parts(4, grad=True)
    same(f(nest(x, layout)), [one(p) for p in x])
    assert gradcheck(lambda *x: f(nest(x, layout)).contiguous().values(), x)


NORM = torch.rand(2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + 0.5


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "amax", "amin", "any", "all", "argmax", "argmin", "logsumexp"]
)
def test_reductions(name, keepdim):
    x = parts(3)
    f = getattr(torch, name)
    nt = nest(x)
    expected = torch.stack([f(p, 0, keepdim=keepdim) for p in x])
    torch.testing.assert_close(f(nt, 1, keepdim=keepdim), expected)
    same(f(nt, 2, keepdim=keepdim), [f(p, 1, keepdim=keepdim) for p in x])
    flipped = f(nt.transpose(1, 2), 2, keepdim=keepdim)
    wanted = torch.stack([f(p.mT, 1, keepdim=keepdim) for p in x])
    torch.testing.assert_close(flipped, wanted)
    gap, rest = holes()
    rest = torch.stack([f(p, 0, keepdim=keepdim) for p in rest])
    torch.testing.assert_close(f(gap, 1, keepdim=keepdim), rest)


def test_reductions_of_all():
    x = parts(3, grad=True)
    flat = torch.cat(x)
    nt = nest(x)
    for name in ("sum", "mean", "max", "min", "std", "var", "norm"):
        torch.testing.assert_close(getattr(nt, name)(), getattr(flat, name)())
    torch.testing.assert_close(nt.sum((0, 1)), flat.sum(0))
    assert gradcheck(lambda *x: nest(x).mean(1), x)
    assert gradgradcheck(lambda *x: (nest(x) ** 2).sum(1), x)
    gap, rest = holes()
    torch.testing.assert_close(gap.sum(), torch.cat(rest).sum())
    assert gap.numel() == torch.cat(rest).numel()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_padding(layout):
    x = parts(3, grad=True)
    nt = nest(x, layout)
    out = nt.to_padded_tensor(-1.0)
    assert out.shape == (3, 4, 3) and (out[2, 1:] == -1).all()
    assert torch.nested.to_padded_tensor(nt, 0.0, (3, 6, 3)).shape == (3, 6, 3)
    with pytest.raises(RuntimeError, match="less than NestedTensor padded size"):
        nt.to_padded_tensor(0.0, (3, 2, 3))
    with pytest.raises(RuntimeError, match="Length of output_size"):
        nt.to_padded_tensor(0.0, (3, 2))
    assert gradcheck(lambda *x: nest(x, layout).to_padded_tensor(0.0), x)
    assert gradgradcheck(lambda *x: (nest(x, layout) ** 2).to_padded_tensor(0.0), x)
    with pytest.raises(NotImplementedError):
        torch.ones(2).to_padded_tensor(0.0)


def test_ragged_sizes():
    x = parts(3)
    nt, other = nest(x), nest(x)
    assert nt.shape[1] == nt.shape[1] == (nt * 2).shape[1] != other.shape[1]
    assert isinstance(nt.shape[1], torch.SymInt) and nt.shape[1] != 4 and nt.shape[1] >= 2
    assert repr(nt.shape[1] * 2).startswith("2*j") and "j" in repr(nt.shape)
    same(nt + torch.nested.nested_tensor_from_jagged(nt.values(), nt.offsets()), [p * 2 for p in x])
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function add"):
        nt + other
    with pytest.raises(RuntimeError, match="ragged"):
        torch.cat([nt, other], -1)
    with pytest.raises(ValueError, match="indeterminate"):
        bool(nt.shape[1] > 3)
    with pytest.raises(TypeError):
        int(nt.shape[1])
    with pytest.raises(TypeError):
        nt.shape.numel()


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_components_are_joined_along_any_dimension(dim):
    first = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], requires_grad=True)
    second = torch.nested.nested_tensor([torch.zeros(2, 3), torch.zeros(4, 3)])
    made = torch.cat([first, second], dim)
    rows = [*first.unbind(), *second.unbind()]
    if dim != 0:
        rows = [torch.cat(row, dim % 3 - 1) for row in zip(*(rows[:2], rows[2:]), strict=True)]
    assert all(map(torch.equal, made.unbind(), rows)) and made.size(0) == len(rows)
    (made * 2).to_padded_tensor(0.0).sum().backward()
    assert all((g == 2).all() for g in first.grad.unbind())
    with pytest.raises(RuntimeError):
        torch.cat([first, torch.nested.nested_tensor([torch.ones(2, 3)])], 1)


@pytest.mark.parametrize("dim", [1, -1])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["any", "all"])
def test_any_and_all_of_strided_components(name, keepdim, dim):
    parts = [torch.tensor([[True, False], [True, True]]), torch.tensor([[False, False]])]
    nt = torch.nested.nested_tensor(parts)
    made = getattr(nt, name)(dim, keepdim).unbind()
    inner = dim % 3 - 1
    assert all(map(torch.equal, made, [getattr(p, name)(inner, keepdim) for p in parts]))
    assert getattr(nt, name)().item() == (name == "any")
    with pytest.raises(RuntimeError, match="nested dimension 0"):
        getattr(nt, name)(0)


def test_dense_operands():
    x = parts(3)
    nt = nest(x)
    rows, per = torch.randn(3, dtype=torch.float64), torch.randn(3, 1, 3, dtype=torch.float64)
    same(nt + rows, [p + rows for p in x])
    same(per * nt, [d * p for d, p in zip(per, x, strict=True)])
    full = torch.randn(3, 4, 3, dtype=torch.float64)
    same(nt - full, [p - f[: len(p)] for f, p in zip(full, x, strict=True)])
    for wrong in (torch.ones(3, 5, 3), torch.ones(2, 1, 3), torch.ones(1, 3, 1, 3)):
        with pytest.raises(RuntimeError, match="cannot call binary pointwise"):
            nt + wrong


def test_products():
    x = parts(3)
    nt = nest(x)
    each = torch.randn(3, 3, 2, dtype=torch.float64)
    same(torch.bmm(nt, each), [p @ m for p, m in zip(x, each, strict=True)])
    same(nt @ each, [p @ m for p, m in zip(x, each, strict=True)])
    torch.testing.assert_close(nt.transpose(1, 2) @ nt, torch.stack([p.mT @ p for p in x]))
    strided = nest(x, torch.strided)
    same(strided @ strided.transpose(1, 2), [p @ p.mT for p in x])
    with pytest.raises(RuntimeError, match="matmul"):
        nt @ nt


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("causal", [False, True])
def test_attention(layout, causal):
    q = parts(6, grad=True)

    def heads(t):
        return t.unflatten(-1, (2, 3)).transpose(-3, -2)

    def one(q, k, v):
        out = F.scaled_dot_product_attention(heads(q), heads(k), heads(v), is_causal=causal)
        return out.transpose(-3, -2)

    source = nest(q, layout)
    same(one(source, source * 2, source + 1), [one(p, p * 2, p + 1) for p in q])
    assert gradcheck(lambda *q: one(*[nest(q, layout)] * 3).contiguous().values(), q)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer(layout, norm_first):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    model = nn.TransformerEncoder(layer, 2)
    x = parts(8, grad=True)
    got, want = model(nest(x, layout)), [model(p.unsqueeze(0)).squeeze(0) for p in x]
    same(got, want)
    sums = [sum((p * p.detach().sin()).sum() for p in out) for out in (got.unbind(), want)]
    both = [torch.autograd.grad(s, [*x, *model.parameters()]) for s in sums]
    torch.testing.assert_close(*both)
    attention = layer.self_attn
    with pytest.raises(AssertionError, match="outside of its fast path"):
        attention(nest(x, layout), nest(x, layout), nest(x, layout))
    with pytest.raises(AssertionError, match="all be nested"):
        attention(nest(x, layout), x[0][None], x[0][None], need_weights=False)


def test_modules_learn():
    torch.manual_seed(0)
    x = parts(3, dtype=torch.float32)
    model = nn.Sequential(
        nn.Linear(3, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.0), nn.Linear(8, 2)
    )
    grads = []
    for layout in (*LAYOUTS, None):
        model.zero_grad()
        out = [model(p) for p in x] if layout is None else model(nest(x, layout)).unbind()
        F.cross_entropy(torch.cat(list(out)), torch.tensor([0, 1, 1, 0, 1, 0, 0])).backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    for got in grads[:2]:
        torch.testing.assert_close(got, grads[2])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_leaves(layout):
    x = parts(3)
    nt = torch.nested.nested_tensor(x, layout=layout, requires_grad=True)
    assert nt.is_leaf and nt.requires_grad and nt.layout == layout and nt.is_nested
    (nt * 2).backward(torch.ones_like(nt))
    (nt * 3).backward(torch.ones_like(nt))
    same(nt.grad, [torch.full_like(p, 5.0) for p in x])
    with torch.no_grad():
        nt.add_(1).mul_(nt)
    same(nt.detach(), [(p + 1) ** 2 for p in x])
    torch.optim.SGD([nt], lr=0.5).step()
    same(nt.detach(), [(p + 1) ** 2 - 2.5 for p in x])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("safe", [False, True])
def test_copies_and_files(layout, grad, safe):
    x = parts(3)
    nt = torch.nested.nested_tensor(x, layout=layout)
    if layout == torch.jagged:  # files of the strided layout do not say it, as PyTorch's
        nt.requires_grad_(grad)
    stream = io.BytesIO()
    torch.save(nt, stream)
    stream.seek(0)
    back = torch.load(stream, weights_only=safe)
    for other in (back, copy.deepcopy(nt)):
        same(other.detach(), x)
        assert other.layout == layout and other.requires_grad == nt.requires_grad
        assert type(other) is type(nt)


def test_damaged_files_are_refused():
    from rushlight._utils import _rebuild_nested_tensor

    buffer, table = torch.ones(4), torch.tensor([[2, 2], [2, 2]])
    with pytest.raises(RuntimeError):
        _rebuild_nested_tensor(buffer, table, table, torch.tensor([0, 4]))
    with pytest.raises(RuntimeError):
        torch.nested.nested_tensor_from_jagged(torch.ones(4), torch.tensor([0, 2, 9])).unbind()


def test_views_know_their_root():
    values, offsets = torch.randn(7, 6), torch.tensor([0, 2, 6, 7])
    nt = torch.nested.nested_tensor_from_jagged(values, offsets)
    assert nt._is_view() and nt._base is values
    alone = nt.detach()
    view = alone.view(3, -1, 2, 3).transpose(2, 3)
    assert view._base is alone and (alone * 2)._base is None
    alone.zero_()
    assert (values == 0).all() and (view.values() == 0).all()


def test_printing():
    nt = torch.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=torch.jagged)
    number = repr(nt.shape[1])
    assert (
        repr(nt) == f"NestedTensor(size=(2, {number}), offsets=tensor([0, 2, 3]), contiguous=True)"
    )
    strided = torch.nested.nested_tensor([[1.0, 2.0], [3.0]])
    assert repr(strided) == "nested_tensor([\n  tensor([1., 2.]),\n  tensor([3.])\n])"
    assert repr(torch.jagged) == "torch.jagged"


def test_holes():
    nt, expected = holes()
    assert nt.lengths().tolist() == [1, 2, 4] and not nt.is_contiguous()
    same(nt, expected)
    same(nt * 2, [p * 2 for p in expected])
    packed = nt.contiguous()
    assert packed.is_contiguous() and packed.values().shape == (7, 2)
    same(packed, expected)
    assert nt.to_padded_tensor(0.0).shape == (3, 4, 2)
    mask = torch.tensor([[True, False, True], [False, False, True]])
    chosen = torch.nested.masked_select(torch.arange(6.0).reshape(2, 3), mask)
    same(chosen, [torch.tensor([0.0, 2.0]), torch.tensor([5.0])])


REFUSED = [
    ("torch.nested.nested_tensor(3)", TypeError, "Only lists"),
    ("torch.nested.nested_tensor([], layout=torch.jagged)", RuntimeError, "empty tensor list"),
    ("torch.nested.nested_tensor([t0, t0], layout=torch.jagged)", RuntimeError, "zero-dim"),
    ("torch.nested.nested_tensor([t0, t2])", RuntimeError, "same dimension"),
    (
        "torch.nested.nested_tensor([t2, t2[:1, :1]], layout=torch.jagged)",
        RuntimeError,
        "single ragged",
    ),
    ("torch.nested.nested_tensor([t2], layout=torch.sparse_coo)", RuntimeError, "layout is unsupp"),
    ("torch.nested.as_nested_tensor([[1.0]])", TypeError, "tensor or a list"),
    ("torch.nested.as_nested_tensor(t0)", RuntimeError, "dim\\(\\) > 1"),
    ("torch.nested.nested_tensor_from_jagged(t2)", RuntimeError, "At least one of"),
    ("torch.nested.narrow(t2, 0, 0, 1, layout=torch.jagged)", RuntimeError, "only supports dim=1"),
    ("nt.sum(0)", RuntimeError, "batch dimension but not the ragged"),
    ("nt.sum((1, 2))", RuntimeError, "ragged and non-batch"),
    ("nt.softmax(0)", RuntimeError, "batch dimension"),
    ("nt.transpose(0, 1)", ValueError, "batch dimension"),
    ("nt.squeeze(1)", RuntimeError, "ragged dim"),
    ("nt.unsqueeze(0)", RuntimeError, "dim=0"),
    ("nt.chunk(2, 1)", RuntimeError, "ragged dim"),
    ("nt.split(1, 0)", RuntimeError, "dim=0"),
    ("nt.unbind(1)", RuntimeError, "dim=0"),
    ("nt.select(1, 0)", RuntimeError, "ragged dim"),
    ("nt.size(5)", IndexError, "out of range"),
    ("nt[3]", IndexError, None),
    ("nt.view(2, 6)", RuntimeError, "cannot view shape"),
    ("nt.flatten(1, 2)", RuntimeError, "ragged dim"),
    ("torch.linalg.det(nt)", NotImplementedError, None),
    ("nt.repeat(1, 1, 2)", NotImplementedError, None),
    ("nt.tile(2)", NotImplementedError, None),
    ("nt.tolist()", RuntimeError, "not supported"),
    ("nt.item()", RuntimeError, "cannot be converted"),
    ("bool(nt)", RuntimeError, "ambiguous"),
    ("nt + st", RuntimeError, "layouts"),
    ("t2.add_(nt)", RuntimeError, "nested"),
    ("st.shape", RuntimeError, "doesn't support sizes"),
    ("st.size(1)", RuntimeError, "irregular"),
    ("st + t2", RuntimeError, "both self and other to be nested"),
    ("st.sum(1)", RuntimeError, "last dimension"),
    ("st.softmax(0)", RuntimeError, "nested dimension 0"),
    ("st.transpose(0, 1)", RuntimeError, "dimension 0"),
    ("st.squeeze()", RuntimeError, "without the dim"),
    ("st.reshape(3, -1, 3)", RuntimeError, "batch dimension"),
    ("st.transpose(1, 2).to_padded_tensor(0.0)", RuntimeError, "contiguous"),
    ("torch.bmm(st, st)", RuntimeError, "cannot be multiplied"),
    ("torch.cumsum(st, 1)", NotImplementedError, None),
    ("torch.zeros(2, layout=torch.jagged)", (RuntimeError, NotImplementedError), None),
]


@pytest.mark.parametrize(("text", "kind", "phrase"), REFUSED)
def test_refused(text, kind, phrase):
    nt = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)
    st = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)])
    with pytest.raises(kind, match=phrase):
        eval(
            text, {"torch": torch, "nt": nt, "st": st, "t0": torch.ones(()), "t2": torch.ones(2, 2)}
        )


def test_empty_components():
    nt = torch.nested.nested_tensor([torch.ones(2, 2), torch.ones(0, 2)], layout=torch.jagged)
    assert nt.sum(1).tolist() == [[2, 2], [0, 0]] and nt.to_padded_tensor(0.0).shape == (2, 2, 2)
    none = torch.nested.nested_tensor([torch.ones(0, 2)] * 2, layout=torch.jagged)
    assert none.to_padded_tensor(0.0).shape == (2, 0, 2) and none.sum(1).tolist() == [[0, 0]] * 2
    assert math.isnan(none.mean())


def test_a_mode_that_answers_with_the_tensor_itself_is_not_asked_for_ever():
    class Itself(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return args[0] if func.__name__ == "unbind" else func(*args, **(kwargs or {}))

    made = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    with Itself(), pytest.raises(TypeError, match="tuple"):
        iter(made)
    assert [t.tolist() for t in made] == [[1.0] * 2, [1.0] * 3]
