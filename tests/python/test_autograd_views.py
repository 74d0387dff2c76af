"""Leaves, in-place writes and views: whose history changes, and what is refused."""

import pytest

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck
from tests.python.gradients import leaf, raises

# ---- leaves and flags ----


def test_requires_grad_rules():
    x = leaf(1.0)
    y = x * 2
    assert y.requires_grad_() is y
    with raises("you can only change requires_grad flags of leaf variables"):
        y.requires_grad_(False)
    with raises("floating point"):
        torch.tensor([1]).requires_grad_()
    assert not x.requires_grad_(False).requires_grad
    assert x.requires_grad_().requires_grad


def test_set_grad_checks():
    x = leaf(1.0, 2.0)
    with raises("size"):
        x.grad = torch.ones(3, dtype=torch.float64)
    with raises("type"):
        x.grad = torch.ones(2)
    with raises("can't assign Variable as its own grad"):
        x.grad = x
    with raises("expected to be a Tensor or None", TypeError):
        x.grad = 3
    grad = torch.ones(2, dtype=torch.float64)
    x.grad = grad
    assert x.grad is grad
    x.grad = None
    assert x.grad is None


def test_detach_shares_the_version():
    x = torch.ones(3)
    d = x.detach()
    before = x._version
    d.add_(1)
    assert x._version == before + 1 and d._version == before + 1
    x.data.add_(1)
    assert x._version == before + 1


def test_set_data():
    x = leaf(1.0)
    with raises("must be floating point or complex"):
        x.data = torch.tensor([1])
    y = x * 3
    version = x._version
    x.data = torch.zeros(2, dtype=torch.float64)
    assert x.requires_grad and x.shape == (2,) and x._version == version
    assert y.grad_fn is not None


def test_detach_in_place():
    y = leaf(1.0) * 2
    assert y.detach_() is y
    assert y.is_leaf and not y.requires_grad
    with raises("Can't detach views in-place"):
        (leaf(1.0, 2.0) * 2)[:1].detach_()


@pytest.mark.parametrize(
    "copy",
    [
        lambda x: x.t().reshape(-1),
        lambda x: x.t().flatten(),
        lambda x: torch.ones(2, 2, 3) @ x,
        lambda x: torch.nn.functional.linear(torch.ones(2, 2, 3), x),
        lambda x: x.repeat(2, 1),
        lambda x: x.tile(2),
        lambda x: torch.kron(x, x),
    ],
)
def test_results_that_are_copies_are_detached_in_place(copy):
    x = torch.ones(3, 3, requires_grad=True)
    y = copy(x)
    assert y.detach_() is y and not y.requires_grad and y.is_leaf
    y.requires_grad_()
    (y * 3).sum().backward()
    assert y.grad.tolist() == torch.full_like(y, 3).tolist() and x.grad is None


def test_integers_that_take_a_float_have_no_gradient():
    w = torch.tensor(2.5, requires_grad=True)
    for dtype in (torch.int64, torch.uint8, torch.bool):
        for write in (
            lambda t: t.copy_(w),
            lambda t: t.fill_(w),
            lambda t: t[1:].copy_(w * torch.ones(3)),
            lambda t: t.__setitem__(1, w),
            lambda t: t.__setitem__(slice(1, 3), w),
            lambda t: t.masked_fill_(torch.tensor([True, False, True, True]), w),
            lambda t: t.select(0, 1).copy_(w),
        ):
            t = torch.zeros(4, dtype=dtype)
            write(t)
            assert not t.requires_grad and t.is_leaf and t.sum() > 0
            t.numpy()


# ---- in-place writes and views ----


def test_modified_saved_tensor_says_what_and_where():
    x = leaf(1.0, 2.0, 3.0)
    y = x.exp()
    y.add_(1)
    with raises(
        r"modified by an inplace operation: \[torch.DoubleTensor \[3\]\], which is output 0 of "
        r"Exp.*, is at version 1; expected version 0 instead"
    ):
        y.sum().backward()


def test_write_through_a_view_changes_the_roots_history():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    view = y[1:3]
    view.mul_(10)
    assert type(y.grad_fn).__name__ == "CopySlices"
    (y * torch.arange(4.0)).sum().backward()
    assert x.grad.tolist() == [0.0, 10.0, 20.0, 3.0]


def test_view_is_regenerated_after_a_write_to_its_root():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    view = y.view(2, 2)
    y.mul_(3)
    assert type(view.grad_fn).__name__ == "AsStridedBackward0"
    view[0].sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 0.0, 0.0]


def test_writes_through_views_of_views():
    x = leaf(*map(float, range(8)))
    y = (x * 1).view(2, 2, 2)
    inner = y[0].t()[1]
    inner.mul_(5)
    inner.add_(y[1, 0])
    y.sum().backward()
    expected = [1.0, 5.0, 1.0, 5.0, 2.0, 2.0, 1.0, 1.0]
    assert x.grad.tolist() == expected


def test_write_of_something_that_requires_grad_into_something_that_does_not():
    x = torch.zeros(4, dtype=torch.float64)
    view = x[:2]
    w = leaf(1.0, 2.0, 3.0, 4.0)
    x.mul_(w)
    assert view.requires_grad and not view.is_leaf
    view.sum().backward()
    assert w.grad.tolist() == [0.0] * 4
    y = torch.zeros(3, dtype=torch.float64)
    y[1:] = w[:2] * 2
    y.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0, 0.0, 0.0]


def test_in_place_on_leaves():
    x = leaf(1.0, 2.0)
    with raises("a leaf Variable that requires grad is being used"):
        x.add_(1)
    with raises("a view of a leaf Variable that requires grad"):
        x[:1].add_(1)
    with torch.no_grad():
        x.add_(1)
        x[:1].add_(1)
    assert x.tolist() == [3.0, 3.0]


def test_in_place_on_special_views():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    parts = y.unbind(0)
    with raises("is a view and is being modified inplace"):
        parts[0].add_(1)
    y.add_(1)
    with raises("its base or another view of its base has been modified inplace"):
        parts[1] * 2
    with torch.no_grad():
        view = x.view(2, 2)
    assert view.requires_grad and view.is_leaf
    with raises("A view was created in no_grad mode and is being"):
        view.mul_(leaf(1.0, 2.0))


# Results that are windows on what was made on the way to them.
COMPOSED = {
    "repeat": lambda x: x.repeat(2, 1),
    "matmul": lambda x: x.expand(3, 2, 2) @ x,
    "einsum": lambda x: torch.einsum("ij,jk->ki", x, x),
    "tensordot": lambda x: torch.tensordot(x, x, 1),
    "kron": lambda x: torch.kron(x, x),
    "cdist": lambda x: torch.cdist(x, x + 1),
    "pixel_shuffle": lambda x: torch.pixel_shuffle(x.expand(4, 2, 2), 2),
    "lstm": lambda x: torch.nn.LSTM(2, 3, batch_first=True)(x.float()[None])[0],
    "quantile": lambda x: x.quantile(0.3, 0),
    "bilinear": lambda x: torch.nn.functional.bilinear(x, x, x.expand(3, 2, 2)),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_results_without_a_graph_are_written_by_what_has_one(name):
    """No other tensor has their memory: there is nothing ambiguous about it."""
    with torch.no_grad():
        y = COMPOSED[name](torch.arange(1.0, 5, dtype=torch.float64).view(2, 2))
        kept = y.clone()
    w = torch.full(y.shape, 3.0, dtype=y.dtype, requires_grad=True)
    version = y._version
    y.mul_(w)
    assert y._version == version + 1 and not y._is_view()
    y.sin().sum().backward()
    assert torch.allclose(w.grad, (kept * 3).cos() * kept)


def test_windows_without_a_graph_that_others_see_are_not():
    w = leaf(1.0, 2.0)
    for held in (lambda base: base, lambda base: base[:1], lambda base: base.view_as(base)):
        with torch.no_grad():
            base = torch.ones(2, dtype=torch.float64)
            view, other = base.view(2), held(base)
            del base
        with raises("A view was created in no_grad mode and is being modified inplace"):
            view.mul_(w)
        del other


def test_split_pieces_cannot_be_written():
    y = leaf(1.0, 2.0, 3.0, 4.0) * 1
    a, _ = y.split(2)
    with raises("multiple views"):
        a.add_(1)


@pytest.mark.parametrize(
    "split",
    [
        lambda t: t.tensor_split(2),
        lambda t: t.tensor_split(torch.tensor(2)),
        lambda t: t.tensor_split([1]),
        lambda t: t.hsplit(2),
        lambda t: t.hsplit([1]),
        lambda t: t.vsplit(2),
        lambda t: t.vsplit([1]),
        lambda t: t.view(2, 1, 2).dsplit(2),
        lambda t: t.view(2, 1, 2).dsplit([1]),
    ],
)
def test_pieces_that_are_slices_are_written(split):
    x = torch.ones(2, 2, requires_grad=True)
    y = x * 1
    piece, other = split(y)
    piece.mul_(3)
    (y * 2).sum().backward()
    expected = torch.full((2, 2), 2.0)
    split(expected)[0].mul_(3)
    assert torch.equal(x.grad, expected)
    y = x * 1
    piece, other = split(y)
    y.mul_(3)
    assert other.sum().item() == 6


def test_late_leaf_views():
    base = torch.zeros(2)
    view = base.view(2)
    base.requires_grad_()
    assert view.requires_grad and view.grad_fn is None


def test_in_place_results_of_saved_output_ops_on_views():
    def function(x):
        y = x * 1
        y[0].exp_()
        return y

    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


def test_broadcast_in_place_gradients():
    def function(x, w):
        y = x * 1
        y[:, 1].mul_(w)
        y.add_(w[:1])
        return y

    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    w = torch.randn(2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(function, (x, w))
    assert gradgradcheck(function, (x, w))


# ---- inference mode ----


def test_inference_mode():
    x = leaf(1.0, 2.0)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
        made = torch.ones(2, dtype=torch.float64)
        view = x.view(2, 1)
    assert made.is_inference() and not x.is_inference() and not view.is_inference()
    with raises("Inplace update to inference tensor outside InferenceMode"):
        made.add_(1)
    with raises("Inference tensors cannot be saved for backward"):
        made * x
    with raises("do not track version counter"):
        made._version  # noqa: B018
    with raises("Setting requires_grad=True on inference tensor"):
        made.requires_grad_()
    with raises("A view was created in inference mode"):
        view.mul_(x.view(2, 1))
    assert (made.clone() * x).requires_grad


def test_saved_inputs_that_were_detached_in_place():
    a = torch.tensor(1.0, requires_grad=True).clone()
    b = a.sin()
    a.detach_()
    with pytest.raises(RuntimeError, match="saved tensor that has been detached"):
        b.backward()
    a = torch.tensor(1.0, requires_grad=True).clone()
    b = a.exp()  # saves its result
    a.detach_()
    b.backward()


WRITES = {
    "add_": lambda t: t.add_(1),
    "copy_": lambda t: t.copy_(torch.ones(3)),
    "fill_": lambda t: t.fill_(1),
    "normal_": lambda t: t.normal_(),
    "index": lambda t: t.__setitem__(0, 1.0),
    "resize_": lambda t: t.resize_(5),
    "resize_as_": lambda t: t.resize_as_(torch.ones(5)),
    "set_": lambda t: t.set_(torch.ones(3)),
    "set_ of a storage": lambda t: t.set_(torch.ones(3).untyped_storage(), 0, (3,), (1,)),
    "set_ of nothing": lambda t: t.set_(),
    "init": lambda t: torch.nn.init.uniform_(t),
    "foreach": lambda t: torch._foreach_add_([t], 1),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_inference_tensors_are_written_in_inference_mode_alone(write):
    with torch.inference_mode():
        made = torch.zeros(3)
        write(torch.zeros(3))
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        write(made)
    assert made.tolist() == [0, 0, 0]
    torch.autograd.graph.increment_version(made)
    plain = torch.zeros(3)
    with torch.inference_mode():
        write(plain)


def test_out_is_no_inference_tensor_outside():
    with torch.inference_mode():
        c = torch.ones(2, 2)
        torch.mul(c, c, out=c)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        torch.mm(torch.ones(2, 2), torch.ones(2, 2), out=c)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        torch.mul(torch.ones(2, 2), 2, out=c)


@pytest.mark.parametrize(
    "parts",
    [
        lambda t: t.unsafe_split(1),
        lambda t: t.unsafe_split_with_sizes((1, 1, 1)),
        lambda t: t.unsafe_chunk(3),
    ],
)
def test_parts_that_are_no_views_are_written(parts):
    a = torch.rand(3, 3, dtype=torch.float64, requires_grad=True)
    whole = a * 2
    first, second, third = parts(whole)
    assert first._base is None and first.data_ptr() == whole.data_ptr()
    first.mul_(second.detach())
    assert first._version == 1 and third._version == 0
    (first.sum() + third.sum()).backward()
    expected = torch.stack([2 * second.detach()[0], torch.zeros(3), torch.full((3,), 2.0)])
    assert torch.allclose(a.grad, expected)


@pytest.mark.parametrize("write", ["under no_grad", "optimizer", "data"])
def test_views_of_a_leaf_that_is_a_view_keep_their_gradient(write):
    """What writes beside the graph changes values; the view stays a view of the leaf."""
    leaf = torch.arange(6.0).view(2, 3).requires_grad_()
    view, other = leaf.t(), torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([leaf], lr=0.5)
    for _ in range(3):
        leaf.grad = None
        ((view**2).sum() + other.sum()).backward()
        assert torch.equal(leaf.grad, 2 * leaf.detach())
        if write == "under no_grad":
            with torch.no_grad():
                leaf.add_(1)
        elif write == "optimizer":
            optimizer.step()
        else:
            leaf.data.mul_(3)
        assert view.requires_grad and torch.equal(view.detach(), leaf.detach().t())
