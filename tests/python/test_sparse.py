"""Sparse tensors: what they hold, how they are computed with, their gradients and their files."""

import copy
import functools
import io
import pickle
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest

import rushlight as torch
from rushlight.testing import assert_close

LAYOUTS = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def pattern(*size, seed=0):
    generator = torch.Generator().manual_seed(seed)
    dense = torch.randn(*size, generator=generator, dtype=torch.float64)
    return dense * (torch.rand(*size, generator=generator) < 0.4)


def coo(uncoalesced=False, dtype=torch.float64):
    indices = torch.tensor([[0, 1, 1, 0], [2, 0, 2, 2]] if uncoalesced else [[0, 1, 1], [2, 0, 2]])
    values = torch.arange(1, indices.shape[1] + 1).to(dtype)
    return torch.sparse_coo_tensor(indices, values, (2, 3))


def converted(dense, layout):
    block = (2, 2) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    return dense.to_sparse(layout=layout, blocksize=block)


def test_a_coo_tensor_says_what_it_holds():
    s = coo(uncoalesced=True)
    assert s.layout is torch.sparse_coo and s.is_sparse and not s.is_sparse_csr
    assert (s.sparse_dim(), s.dense_dim(), s._nnz()) == (2, 0, 4)
    assert s.shape == (2, 3) and not s.is_coalesced()
    with pytest.raises(RuntimeError, match="uncoalesced"):
        s.indices()
    with pytest.raises(RuntimeError, match="uncoalesced"):
        s.values()
    c = s.coalesce()
    assert c.indices().tolist() == [[0, 1, 1], [2, 0, 2]] and c.values().tolist() == [5, 2, 3]
    assert s.to_dense().tolist() == [[0, 0, 5], [2, 0, 3]]


def test_text():
    assert repr(coo(dtype=torch.float32)).splitlines() == [
        "tensor(indices=tensor([[0, 1, 1],",
        "                       [2, 0, 2]]),",
        "       values=tensor([1., 2., 3.]),",
        "       size=(2, 3), nnz=3, layout=torch.sparse_coo)",
    ]


@pytest.mark.parametrize(
    ("indices", "values", "size", "match"),
    [
        ([[0, 5]], [1.0, 2.0], (3,), "found index 5"),
        ([[0, -1]], [1.0, 2.0], (3,), "negative index -1"),
        ([[0, 1]], [1.0], (3,), "same nnz"),
        ([[0, 1]], [1.0, 2.0], (3, 4), "number of dimensions"),
        ([[0, 1]], [[1.0], [2.0]], (3, 4), "values has incorrect size"),
    ],
)
def test_bad_coo_tensors_are_refused(indices, values, size, match):
    with pytest.raises(RuntimeError, match=match):
        torch.sparse_coo_tensor(torch.tensor(indices), torch.tensor(values), size)


@pytest.mark.parametrize(
    ("crow", "col", "match"),
    [
        ([1, 2, 3], [0, 1, 2], "is not satisfied"),
        ([0, 2, 2], [0, 1, 2], "is not satisfied"),
        ([0, 2, 3], [0, 3, 2], "is not satisfied"),
        ([0, 2, 3], [1, 0, 2], "is not satisfied"),
        ([0, 3], [0, 1, 2], "must be equal to the number of"),
    ],
)
def test_bad_csr_tensors_are_refused(crow, col, match):
    with pytest.raises(RuntimeError, match=match):
        torch.sparse_csr_tensor(crow, col, [1.0, 2.0, 3.0], (2, 3))


@pytest.mark.parametrize("layout", (torch.sparse_coo, *LAYOUTS))
@pytest.mark.parametrize("size", [(4, 6), (2, 2), (4, 0)])
def test_conversions_go_and_come_back(layout, size):
    dense = pattern(*size)
    s = converted(dense, layout)
    assert s.layout is layout and s.shape == dense.shape
    assert torch.equal(s.to_dense(), dense)
    for other in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        t = s.to_sparse(layout=other)
        assert t.layout is other and torch.equal(t.to_dense(), dense)


def test_hybrid_tensors():
    dense = pattern(3, 4, 2)
    s = dense.to_sparse(2)
    assert (s.sparse_dim(), s.dense_dim()) == (2, 1)
    assert torch.equal(s.to_dense(), dense)
    assert torch.equal(torch.sparse.sum(s, 2).to_dense(), dense.sum(2))
    assert torch.equal(torch.sparse.sum(s, 0).to_dense(), dense.sum(0))


def test_sums_and_products_of_elements():
    a, b = pattern(4, 5), pattern(4, 5, seed=1)
    s, t = a.to_sparse(), b.to_sparse()
    for result, expected in (
        (s + t, a + b),
        (s - t, a - b),
        (s * t, a * b),
        (s * 2, a * 2),
        (s / 2, a / 2),
        (-s, -a),
        (s * b, a * b),
        (s.sin(), a.sin()),
        (s.abs().sqrt(), a.abs().sqrt()),
        (s.t(), a.t()),
        (s[1], a[1]),
        (s[1:3], a[1:3]),
        (s.index_select(1, torch.tensor([4, 0, 0])), a[:, [4, 0, 0]]),
        (torch.cat([s, t]), torch.cat([a, b])),
        (torch.stack([s, t]), torch.stack([a, b])),
    ):
        assert result.is_sparse
        assert torch.allclose(result.to_dense(), expected)
    assert torch.equal(b + s, b + a)
    with pytest.raises(RuntimeError, match="add"):
        s + b


def test_in_place():
    a = pattern(4, 5)
    s = a.to_sparse()
    s.mul_(2)
    assert torch.equal(s.to_dense(), a * 2)
    s.add_(a.to_sparse())
    assert torch.allclose(s.to_dense(), a * 3)
    d = torch.ones(4, 5, dtype=torch.float64)
    kept = d.data_ptr()
    d.add_(a.to_sparse(), alpha=2)
    assert d.data_ptr() == kept and torch.allclose(d, 1 + 2 * a)
    s.zero_()
    assert s._nnz() == 0 and s.shape == (4, 5)


@pytest.mark.parametrize("layout", (torch.sparse_coo, *LAYOUTS))
def test_products_of_matrices(layout):
    a, b = pattern(4, 6), pattern(6, 4, seed=1)
    s = converted(a, layout)
    assert torch.allclose(s @ b, a @ b)
    assert torch.allclose(torch.sparse.mm(s, b), a @ b)
    assert torch.allclose(s @ b[:, 0], a @ b[:, 0])
    assert torch.allclose(b @ s, b @ a)
    product = s @ converted(b, layout)
    assert product.layout is layout and torch.allclose(product.to_dense(), a @ b)
    start = pattern(4, 4, seed=2)
    assert torch.allclose(torch.addmm(start, s, b, beta=2, alpha=3), 2 * start + 3 * (a @ b))


def test_softmax():
    a = pattern(4, 5)
    hidden = a.masked_fill(a == 0, -float("inf"))
    for dim in (0, 1):
        soft = torch.sparse.softmax(a.to_sparse(), dim).to_dense()
        assert torch.allclose(soft, torch.softmax(hidden, dim).nan_to_num())


CASES = {
    "to_dense": lambda s: s.to_dense(),
    "add": lambda s: (s + s).to_dense(),
    "mul": lambda s: (s * s).to_dense(),
    "number": lambda s: (s * 3).to_dense(),
    "sin": lambda s: s.sin().to_dense(),
    "mm": lambda s: s @ torch.arange(15.0, dtype=torch.float64).view(5, 3),
    "sparse mm": lambda s: (s @ s.t()).to_dense(),
    "sum": lambda s: torch.sparse.sum(s),
    "sum of rows": lambda s: torch.sparse.sum(s, 1).to_dense(),
    "softmax": lambda s: torch.sparse.softmax(s, 1).to_dense(),
    "select": lambda s: s[1].to_dense(),
    "cat": lambda s: torch.cat([s, s], 1).to_dense(),
    "values": lambda s: s.coalesce().values() ** 2,
}


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    assert check(CASES[name], (pattern(4, 5).to_sparse().requires_grad_(),))


def test_gradients_of_leaves_are_sparse():
    s = pattern(4, 5).to_sparse().requires_grad_()
    (s @ torch.ones(5, 2, dtype=torch.float64)).sum().backward()
    assert s.grad.is_sparse and s.grad.indices().equal(s.detach().indices())
    assert (s.grad.values() == 2).all()


@pytest.mark.parametrize("layout", (torch.sparse_coo, *LAYOUTS))
def test_copies_and_files(layout, tmp_path):
    s = converted(pattern(4, 6), layout)
    stream = io.BytesIO()
    torch.save({"s": s}, stream)
    stream.seek(0)
    for other in (
        copy.deepcopy(s),
        s.clone(),
        pickle.loads(pickle.dumps(s)),
        torch.load(stream)["s"],
    ):
        assert other.layout is layout and torch.equal(other.to_dense(), s.to_dense())
        assert not other.requires_grad
    leaf = pickle.loads(pickle.dumps(s.requires_grad_()))
    assert leaf.requires_grad and leaf.is_leaf and leaf.layout is layout
    assert s.to(torch.float32).dtype is torch.float32


def test_sparse_gradients_of_embeddings_train_like_dense_ones():
    for make in (
        lambda p, sparse: torch.optim.SGD(p, lr=0.1),
        lambda p, sparse: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p, sparse: torch.optim.Adagrad(p, lr=0.1),
        lambda p, sparse: torch.optim.LBFGS(p, max_iter=2),
    ):
        tables = []
        for sparse in (False, True):
            torch.manual_seed(0)
            table = torch.nn.Embedding(10, 3, sparse=sparse)
            optimizer = make(table.parameters(), sparse)
            for step in range(3):

                def loss(table=table, optimizer=optimizer, step=step, sparse=sparse):
                    optimizer.zero_grad()
                    value = (table(torch.tensor([1, 4, 1, step])) ** 2).sum()
                    value.backward()
                    assert table.weight.grad.is_sparse == sparse
                    return value

                optimizer.step(loss)
            tables.append(table.weight.detach())
        assert torch.allclose(*tables)


def test_sparse_adam_moves_only_what_has_a_gradient():
    table = torch.nn.Embedding(10, 3, sparse=True)
    before = table.weight.detach().clone()
    optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
    table(torch.tensor([1, 1, 4])).sum().backward()
    optimizer.step()
    moved = (table.weight.detach() - before).abs().sum(1)
    assert moved.nonzero().flatten().tolist() == [1, 4]
    assert torch.allclose(moved[1], torch.tensor(0.3))
    with pytest.raises(RuntimeError, match="SparseAdam"):
        torch.optim.Adam(table.parameters()).step()


def test_sparse_gradients_add_up():
    table = torch.nn.Embedding(4, 2, sparse=True)
    for _ in range(2):
        table(torch.tensor([1, 1])).sum().backward()
    assert table.weight.grad.to_dense()[1].tolist() == [4, 4]
    (table.weight * 1).sum().backward()
    assert not table.weight.grad.is_sparse and table.weight.grad[1].tolist() == [5, 5]


def test_values_of_a_gradient_can_be_written():
    table = torch.nn.Embedding(4, 2, sparse=True)
    for times in (3, 6):  # a sum's gradient is one number for all elements
        table(torch.tensor([1, 1])).sum().backward()
        table.weight.grad._values().mul_(times)
    assert table.weight.grad.to_dense().tolist() == [[0, 0], [48, 48], [0, 0], [0, 0]]


def test_ops_without_a_rule_refuse():
    with pytest.raises(NotImplementedError, match="Could not run 'aten::cos'"):
        coo().cos()
    with pytest.raises(RuntimeError):
        coo().data_ptr()


def test_products_refuse_what_does_not_fit():
    matrix = torch.eye(3).to_sparse()
    for other in (
        torch.ones(4, 2),
        torch.ones(3),
        torch.ones(3, 2, dtype=torch.float64),
        torch.ones(3, 2, device="meta"),
    ):
        for product in (torch.hspmm, torch.mm):
            with pytest.raises(RuntimeError):
                product(matrix, other)
    with pytest.raises(RuntimeError):
        torch.hspmm(torch.ones(3, 1, 1), torch.ones(4, 1, 5, device="meta"))
    with pytest.raises(RuntimeError, match="scalar values expected, got 1D|got 2D values"):
        torch.ones(4, 4).to_sparse(1) @ torch.ones(4, 4).to_sparse(1)


def test_values_like_those_of_compressed_tensors():
    """`ones_like` and its like put values at the places that there are; of COO tensors they are refused."""
    for layout, block in (("csr", {}), ("csc", {}), ("bsr", {"blocksize": (1, 2)})):
        t = getattr(torch.eye(4), f"to_sparse_{layout}")(**block)
        for made in (torch.ones_like(t), torch.full_like(t, 3.0) / 3):
            assert made.layout == t.layout
            assert torch.equal(made.values(), torch.ones_like(t.values()))
        assert torch.randn_like(t).values().shape == t.values().shape
        assert torch.rand_like(t, dtype=torch.float64).dtype == torch.float64
        assert torch.empty_like(t).values().shape == t.values().shape
    with pytest.raises(NotImplementedError, match="ones_like"):
        torch.ones_like(torch.eye(3).to_sparse())
    with pytest.raises(RuntimeError, match="only supported by strided"):
        torch.empty_like(torch.eye(3).to_sparse(), memory_format=torch.preserve_format)


def test_empty_bools_stay_bools():
    for layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        assert torch.zeros(2, 3).bool().to_sparse(layout=layout).to_dense().dtype == torch.bool


def test_linear_with_a_sparse_weight():
    x = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    weight, bias = (
        torch.randn(4, 3, dtype=torch.float64).relu(),
        torch.randn(4, dtype=torch.float64),
    )
    want = torch.nn.functional.linear(x, weight, bias)
    grads = torch.autograd.grad(want.square().sum(), x)
    for made in (weight.to_sparse(), weight.to_sparse_csr(), weight.to_sparse_csc()):
        got = torch.nn.functional.linear(x, made, bias)
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(torch.autograd.grad(got.square().sum(), x), grads)


def test_products_of_every_width():
    """Columns in blocks of 64, 16, 4 and 1, rows without entries, and bits on any number of threads."""
    rng = np.random.default_rng(0)
    dense = torch.from_numpy(rng.standard_normal((70, 50)) * (rng.random((70, 50)) < 0.1))
    dense[3:9] = 0
    for dtype in (torch.float32, torch.float64):
        a = dense.to(dtype)
        for width in (1, 3, 4, 17, 64, 85, 150):
            b = torch.from_numpy(rng.standard_normal((50, width))).to(dtype)
            got = a.to_sparse_csr() @ b
            torch.testing.assert_close(got, a @ b)
            before = torch.get_num_threads()
            torch.set_num_threads(1)
            alone = a.to_sparse_csr() @ b
            torch.set_num_threads(before)
            assert torch.equal(alone, got)


def test_sparse_numbers_and_any():
    two = torch.tensor(2.0).to_sparse()
    t = torch.eye(3).to_sparse()
    assert torch.equal((t * two).to_dense(), torch.eye(3) * 2)
    assert torch.equal((two * t).to_dense(), torch.eye(3) * 2)
    assert t.any() and not (t * 0).any()
    assert torch.equal(t.any(0), torch.ones(3, dtype=torch.bool))
    made = torch.sparse_coo_tensor(torch.tensor([[0.0, 2.0]]), torch.ones(2), (3,))
    assert made.to_dense().tolist() == [1, 0, 1]


_LAYOUTS = {"coo": None, "csr": None, "csc": None, "bsr": (1, 2), "bsc": (2, 1)}


def _of_layout(dense, name):
    layout = getattr(torch, "sparse_" + name)
    return dense.to_sparse(layout=layout, blocksize=_LAYOUTS[name]).requires_grad_()


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("name", _LAYOUTS)
def test_gradcheck_of_sparse_inputs_and_outputs(name, dtype, masked, fast):
    dense = torch.zeros(2, 4, dtype=dtype)
    dense[0, 1], dense[1, 2] = 1.5, -2
    x = _of_layout(dense, name)
    how = {"masked": masked, "fast_mode": fast}
    functions = (
        lambda x: x.to_dense(),
        lambda x: x * 2,
        lambda x: x.sin(),
        lambda x: x @ torch.ones(4, 3, dtype=dtype),
        lambda x: (x.to_dense(), x.neg()),
    )
    for f in functions:
        assert torch.autograd.gradcheck(f, (x,), **how)
    assert torch.autograd.gradgradcheck(lambda x: x.to_dense() ** 2, (x,), **how)
    assert torch.equal(x.detach().to_dense(), dense)


class _WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.to_dense()

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


class _EntriesAlone(_WrongGradient):
    @staticmethod
    def forward(ctx, x):
        return x.to_dense().where(torch.tensor([[False, True], [True, False]]), 0)

    @staticmethod
    def backward(ctx, grad):
        return grad


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", ["coo", "csr"])
def test_gradcheck_finds_wrong_gradients_of_sparse_tensors(name, fast):
    x = _of_layout(torch.tensor([[0, 1.0], [2, 0]], dtype=torch.float64), name)
    for masked in (False, True):
        with pytest.raises(RuntimeError, match="Jacobian mismatch"):
            torch.autograd.gradcheck(_WrongGradient.apply, (x,), masked=masked, fast_mode=fast)
    # Wrong where `x` has no entry: seen unless those places are left out.
    assert torch.autograd.gradcheck(_EntriesAlone.apply, (x,), masked=True, fast_mode=fast)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(_EntriesAlone.apply, (x,), masked=False, fast_mode=fast)


@pytest.mark.parametrize("name", _LAYOUTS)
def test_products_keep_entries_that_are_zero(name):
    """Second gradients at entries of 0 are there, a block of them and a batch, too."""
    dense = torch.tensor([[0, 1.0, 0, 0], [2, 0, 0, 3]], dtype=torch.float64)
    other = torch.tensor([[4.0, 0, 5, 6], [0, 7, 8, 9]], dtype=torch.float64, requires_grad=True)
    x = _of_layout(dense, name)
    assert torch.autograd.gradgradcheck(lambda x: x * x, (x,))
    assert torch.autograd.gradcheck(lambda x, y: x * y, (x, other), masked=True)
    assert torch.equal((x * other).to_dense(), dense * other)
    assert (x * other).values().shape == x.values().shape if name != "coo" else True
    if name != "coo":
        batch = _of_layout(torch.stack((dense, dense)), name)
        assert torch.equal((batch * other).to_dense(), torch.stack((dense, dense)) * other)
        assert torch.equal((batch * batch).to_dense(), torch.stack((dense, dense)) ** 2)


@pytest.mark.parametrize("name", _LAYOUTS)
def test_strided_tensors_times_sparse_ones_in_place(name):
    dense = torch.tensor([[0, 1.0], [2, 0]])
    s = _of_layout(dense, name).detach()
    t = torch.tensor([[3.0, 4], [5, 6]])
    assert t.mul_(s) is t and torch.equal(t, torch.tensor([[0, 4.0], [10, 0]]))
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(2, 2, dtype=torch.int64).mul_(s)


@pytest.mark.parametrize("op", ["arcsin", "negative", "deg2rad", "rad2deg", "nan_to_num", "fix"])
def test_other_names_fill_sparse_outputs(op):
    dense = torch.tensor([[0, 0.5], [-1, 0]])
    s, f = dense.to_sparse(), getattr(torch, op)
    out = torch.zeros(2, 2).to_sparse()
    assert f(s, out=out) is out
    assert torch.equal(out.to_dense(), f(dense)) and torch.equal(f(s).to_dense(), f(dense))
    assert torch.equal(getattr(s.clone(), op + "_")().to_dense(), f(dense))


@pytest.mark.parametrize(
    "reduce, result, grad",
    [
        ("sum", [[11.0, -10.0], [0.0, 0.0], [9.0, 10.0]], [2.0, -6.0, 14.0, 32.0]),
        ("mean", [[5.5, -5.0], [0.0, 0.0], [4.5, 5.0]], [1.0, -3.0, 7.0, 16.0]),
        ("amax", [[10.0, 2.0], [0.0, 0.0], [12.0, 16.0]], [2.0, 0.0, 0.0, 32.0]),
        ("min", [[1.0, -12.0], [0.0, 0.0], [-3.0, -6.0]], [0.0, -6.0, 14.0, 0.0]),
    ],
)
def test_products_reduced(reduce, result, grad):
    plain = torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [-3.0, 4.0, 0.0]])
    matrix = plain.to_sparse_csr().requires_grad_()
    dense = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, -6.0]])
    out = torch.sparse.mm(matrix, dense, reduce)
    assert out.tolist() == result
    (out * torch.arange(6.0).view(3, 2)).sum().backward()
    assert matrix.grad.values().tolist() == grad
    with pytest.raises(NotImplementedError, match="CSR"):
        torch.sparse.mm(plain, dense, "mean")
    with pytest.raises(RuntimeError, match="reduce argument must be either"):
        torch.sparse.mm(matrix, dense, "median")
    with pytest.raises(RuntimeError, match=r"Expected a tensor of dimension 2 .* == 3 but got"):
        torch.sparse.mm(matrix, dense[:2], reduce)


def test_indices_converted():
    crow = torch._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 2]), 3)
    assert crow.tolist() == [0, 2, 2, 3] and crow.dtype == torch.int64
    column = torch.tensor([0, 2, 1])
    back = torch.ops.aten._convert_indices_from_csr_to_coo.default
    assert back(crow, column).tolist() == [[0, 0, 2], [0, 2, 1]]
    turned = back(crow, column, transpose=True, out_int32=True)
    assert turned.tolist() == [[0, 2, 1], [0, 0, 2]] and turned.dtype == torch.int32
    batches = back(torch.tensor([[0, 2, 3], [0, 1, 3]]), torch.tensor([[0, 2, 1], [1, 0, 1]]))
    assert batches.tolist() == [[0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1], [0, 2, 1, 1, 0, 1]]


@pytest.mark.filterwarnings("ignore:torch.sparse")
def test_types_by_name():
    indices, values = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])
    made = torch.sparse.FloatTensor(indices, values, torch.Size([2, 3]))
    assert made.to_dense().tolist() == [[0, 1, 0], [2, 0, 0]]
    assert torch.sparse.FloatTensor(indices, values).shape == (2, 2)
    assert torch.sparse.LongTensor(2, 3).dtype is torch.int64
    assert (
        torch.sparse.DoubleTensor(torch.Size([4])).shape == (4,)
        and not torch.sparse.HalfTensor()._nnz()
    )
    assert torch.sparse.FloatTensor(indices, values.double()).dtype is torch.float64
    assert isinstance(made, torch.sparse.FloatTensor) and not isinstance(
        made, torch.sparse.LongTensor
    )
    assert made.type() == "torch.sparse.FloatTensor"
    assert torch.ones(2, device="meta").type() == "torch.meta.FloatTensor"
    assert not isinstance(values, torch.sparse.FloatTensor)
    assert repr(torch.sparse.FloatTensor) == "<class 'torch.sparse.FloatTensor'>"


MAKERS = [
    lambda t: t.to_sparse(),
    lambda t: t.to_sparse_csr(),
    lambda t: t.to_sparse_csc(),
    lambda t: t.to_sparse_bsr((2, 2)),
    lambda t: t.to_sparse_bsc((2, 2)),
]


@pytest.mark.parametrize("make", MAKERS)
def test_other_processes_get_what_was_sent(make):
    tensor = make(torch.eye(4))
    sent = pickle.loads(bytes(ForkingPickler.dumps(tensor)))
    assert sent.layout is tensor.layout and sent.to_dense().equal(torch.eye(4))
    loader = torch.utils.data.DataLoader([tensor, tensor], batch_size=None, num_workers=1)
    for sample in loader:
        assert sample.layout is tensor.layout and sample.to_dense().equal(torch.eye(4))
    assert tensor.is_shared()  # a tensor that was sent is, in place
    tensor = make(torch.eye(4))
    assert not tensor.is_shared()
    assert tensor.share_memory_() is tensor
    assert tensor.is_shared() and tensor.to_dense().equal(torch.eye(4))


@pytest.mark.parametrize("make", MAKERS)
def test_copies_without_entries_keep_dimensions_and_blocks(make):
    dense = torch.eye(4)
    tensor = make(dense)
    for like in (
        torch.zeros_like(tensor),
        torch.zeros_like(tensor, dtype=torch.int64),
        torch.zeros_like(tensor, device="meta"),
        tensor.to("meta"),
    ):
        assert like.layout is tensor.layout and like.shape == tensor.shape
        assert like._nnz() == 0
        assert (like.sparse_dim(), like.dense_dim()) == (tensor.sparse_dim(), tensor.dense_dim())
        values = tensor.detach().values() if tensor.layout is not torch.sparse_coo else None
        if values is not None:
            assert like.values().shape[1:] == values.shape[1:]
    assert torch.zeros_like(tensor, layout=torch.strided).equal(torch.zeros(4, 4))


def test_copies_without_entries_in_other_layouts():
    hybrid = torch.ones(2, 3, 4).to_sparse_csr(dense_dim=1)
    coo = torch.zeros_like(hybrid, layout=torch.sparse_coo)
    assert (coo.sparse_dim(), coo.dense_dim(), coo.shape) == (2, 1, (2, 3, 4))
    csc = torch.zeros_like(hybrid, layout=torch.sparse_csc)
    assert csc.ccol_indices().shape == (4,) and csc.values().shape == (0, 4)
    back = torch.zeros_like(torch.ones(2, 3, 4).to_sparse(2), layout=torch.sparse_csr)
    assert back.crow_indices().shape == (3,) and back.dense_dim() == 1
    with pytest.raises(RuntimeError, match="block size"):
        torch.zeros_like(hybrid, layout=torch.sparse_bsr)


def test_products_of_broadcast_sizes():
    torch.manual_seed(0)
    mask = torch.rand(2, 3, 4) < 0.5
    full = torch.randn(2, 3, 4) * mask
    for sparse_dim in (0, 1, 2, 3):
        sparse = full.to_sparse(sparse_dim) if sparse_dim else torch.sparse_coo_tensor(
            torch.zeros(0, 1, dtype=torch.int64), full.unsqueeze(0), (2, 3, 4)
        )  # fmt: skip
        for size in ((4,), (1, 1), (2, 1, 4), (5, 2, 3, 4), (5, 1, 1, 1, 4)):
            dense = torch.randn(size)
            for product in (sparse * dense, dense * sparse):
                assert_close(product.to_dense(), full * dense)
    row = torch.randn(1, 4).to_sparse()
    assert_close((row * torch.ones(3, 1)).to_dense(), row.to_dense().expand(3, 4))
    assert_close((full[0].to_sparse() * row).to_dense(), full[0] * row.to_dense())
    few = row.requires_grad_()
    (few * torch.ones(3, 1)).to_dense().sum().backward()
    assert_close(few.grad.to_dense(), torch.full((1, 4), 3.0))


def test_empty_sums_and_negatives_and_old_constructors():
    x = torch.sparse_coo_tensor([[0, 0, 1]], [1.0, 2.0, 3.0], (2,))
    x.neg_()
    assert x.to_dense().tolist() == [-3.0, -3.0]
    hybrid = torch.ones(2, 3).to_sparse(1)
    for total in (
        hybrid + torch.sparse_coo_tensor((2, 3)),
        torch.sparse_coo_tensor((2, 3)) + hybrid,
    ):
        assert total.to_dense().equal(torch.ones(2, 3)) and total.dense_dim() == 1
    assert x.new().layout is torch.sparse_coo and x.new(2, 3).shape == (2, 3)
    assert x.new(x._indices(), x._values(), (2,)).to_dense().equal(x.to_dense())
    mask = torch.eye(2).to_sparse()._coalesced_(False)
    assert not torch.eye(2).to_sparse().sparse_mask(mask).is_coalesced()


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
def test_masked_reductions_keep_the_layout(name):
    dense = torch.tensor([[1.0, 0.0, 3.0], [0.0, 5.0, 6.0]])
    mask = dense != 0
    reduce = getattr(torch.masked, name)
    expected = reduce(dense, dim=(0, 1), mask=mask)
    found = reduce(dense.to_sparse(), dim=(), mask=mask.to_sparse())
    assert found.layout is torch.sparse_coo and found.to_dense().equal(expected)
    rows = reduce(dense.to_sparse_csr(), dim=1, keepdim=True, mask=mask.to_sparse_csr())
    assert rows.layout is torch.sparse_csr
    assert rows.to_dense().equal(reduce(dense, dim=1, keepdim=True, mask=mask))
    if name in ("prod", "amax", "amin"):
        with pytest.raises(ValueError, match="explicit mask"):
            reduce(dense.to_sparse())


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_asking_for_a_gradient_keeps_that_of_the_values(layout):
    values = torch.tensor([1.0, 2.0], requires_grad=True)
    if layout is torch.sparse_coo:
        make = functools.partial(torch.sparse_coo_tensor, torch.tensor([[0, 1], [1, 0]]))
    else:
        make = functools.partial(torch.sparse_compressed_tensor, [0, 1, 2], [1, 0], layout=layout)
    made = make(values, (2, 2), requires_grad=True)
    assert made.requires_grad and not made.is_leaf
    (made.to_dense() * torch.tensor([[1.0, 5.0], [7.0, 1.0]])).sum().backward()
    assert sorted(values.grad.tolist()) == [5.0, 7.0]
    leaf = make(values.detach(), (2, 2), requires_grad=True)
    assert leaf.requires_grad and leaf.is_leaf


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_slices_along_a_dimension(layout):
    dense = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    s = dense.to_sparse(layout=layout)
    assert [r.to_dense().tolist() for r in s] == dense.tolist()
    for dim in (0, 1, -1):
        for ours, expected in zip(s.unbind(dim), dense.unbind(dim), strict=True):
            assert ours.to_dense().equal(expected)
    with pytest.raises(IndexError):
        s.unbind(2)


def test_norms():
    s = torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, -4.0], (2, 2))
    assert torch.norm(s) == 5 and s.norm(1) == 7 and torch.linalg.norm(s) == 5
    s.requires_grad_()
    s.norm().backward()
    assert s.grad.to_dense().tolist() == [[0.0, 0.6000000238418579], [-0.800000011920929, 0.0]]
    with pytest.raises(RuntimeError, match="only support.* full reductions"):
        s.detach().norm(dim=0)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_formats_of_images_are_refused(layout):
    s = torch.eye(2).to_sparse(layout=layout)
    for call in (s.clone, s.to, s.double):
        with pytest.raises(RuntimeError, match="memory format"):
            call(memory_format=torch.channels_last)
    assert s.to(memory_format=torch.preserve_format).to_dense().equal(torch.eye(2))


@pytest.mark.parametrize("layout", ["", "_csr", "_csc", "_bsr", "_bsc"])
@pytest.mark.parametrize(
    "write", [lambda y: y.zero_(), lambda y: y.copy_(y.detach() * 3)], ids=["zero_", "copy_"]
)
def test_what_is_replaced_gets_no_gradient(layout, write):
    blocks = ((2, 2),) if layout in ("_bsr", "_bsc") else ()
    s = getattr(torch.eye(4), f"to_sparse{layout}")(*blocks).requires_grad_()
    y = s.clone()
    write(y)
    (y.to_dense() + s.to_dense()).sum().backward()
    assert torch.equal(s.grad.to_dense() * torch.eye(4), torch.eye(4))


LAYOUTS = [torch.sparse_csr, torch.sparse_csc, torch.sparse_coo, torch.sparse_bsr]


def in_layout(dense, layout):
    return dense.to_sparse(layout=layout, blocksize=(1, 1) if layout is torch.sparse_bsr else None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_triangles_are_solved(layout, dtype):
    torch.manual_seed(0)
    n = 40
    dense = torch.randn(n, n, dtype=dtype) * (torch.rand(n, n) < 0.2) * 0.3 + 2 * torch.eye(n)
    b = torch.randn(n, 35, dtype=dtype)
    for upper in (False, True):
        for transpose in (False, True):
            for unit in (False, True):
                how = {"upper": upper, "transpose": transpose, "unitriangular": unit}
                a = in_layout(dense, layout)
                found = torch.triangular_solve(b, a, **how)
                expected = torch.triangular_solve(b, dense, **how).solution
                torch.testing.assert_close(found.solution, expected, rtol=1e-4, atol=1e-5)
                assert found.cloned_coefficient.numel() == 0


def test_gradients_of_triangular_solutions():
    torch.manual_seed(0)
    for upper in (False, True):
        for transpose in (False, True):
            for unit in (False, True):
                how = {"upper": upper, "transpose": transpose, "unitriangular": unit}
                dense = torch.randn(4, 4, dtype=torch.complex128) + 3 * torch.eye(4)
                a = dense.to_sparse_csr()

                def solve(values, b, a=a, how=how):
                    m = torch.sparse_csr_tensor(a.crow_indices(), a.col_indices(), values, (4, 4))
                    return torch.triangular_solve(b, m, **how).solution

                values = a.values().clone().requires_grad_()
                b = torch.randn(4, 2, dtype=torch.complex128, requires_grad=True)
                assert torch.autograd.gradcheck(solve, (values, b))
                assert torch.autograd.gradgradcheck(solve, (values, b))


def test_triangles_that_do_not_fit_are_refused():
    a, b = torch.eye(3).to_sparse_csr(), torch.ones(3, 2)
    for bad in (torch.ones(2, 2), torch.ones(3), torch.ones(3, 2).double()):
        with pytest.raises(RuntimeError):
            torch.triangular_solve(bad, a)
    with pytest.raises(RuntimeError, match="square"):
        torch.triangular_solve(torch.ones(2, 1), torch.ones(3, 2).to_sparse_csr())
    with pytest.raises(NotImplementedError):
        torch.triangular_solve(b.to_sparse_csr(), torch.eye(3))
    assert torch.triangular_solve(b, torch.zeros(3, 3).to_sparse_csr()).solution.isinf().all()
    assert torch.triangular_solve(b[:, :0], a).solution.shape == (3, 0)
    columns = torch.tensor([0, 1, 2])
    broken = torch.sparse_csr_tensor(torch.tensor([0, 1, 2, 3]), columns, torch.ones(3), (3, 3))
    broken.col_indices().fill_(1 << 40)
    with pytest.raises((RuntimeError, IndexError)):
        torch.triangular_solve(b, broken)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_quotients_are_rounded(layout, dtype):
    dense = torch.tensor([[0, 3], [-5, 7]]).to(dtype)
    t = in_layout(dense, layout)
    for call in (
        lambda t: t // 2,
        lambda t: t.floor_divide(torch.tensor(2)),
        lambda t: torch.div(t, 2, rounding_mode="floor"),
        lambda t: torch.div(t, 2, rounding_mode="trunc"),
    ):
        found = call(t)
        assert found.layout is layout and torch.equal(found.to_dense(), call(dense))
    with pytest.raises(RuntimeError):
        t // torch.ones(2, 2)
    twice = torch.sparse_coo_tensor(torch.tensor([[0, 0]]), torch.tensor([3, 4]), (2,))
    assert (twice // 2).to_dense().tolist() == [3, 0]


def test_specified_elements_are_filled():
    dense = torch.tensor([[0.0, 3], [-5, 7]])
    for layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr):
        t = in_layout(dense, layout)
        assert t.fill_(2) is t and t._nnz() == 3
        assert t.to_dense().tolist() == [[0, 2], [2, 2]]
    with pytest.raises(NotImplementedError, match="fill_"):
        dense.to_sparse().fill_(2)


def test_one_number_for_both_sides_of_blocks():
    x = torch.arange(16.0).view(4, 4)
    for made in (
        x.to_sparse_bsr(2),
        x.to_sparse_bsc(2),
        x.to_sparse(layout=torch.sparse_bsr, blocksize=2),
    ):
        assert made.values().shape == (4, 2, 2) and torch.equal(made.to_dense(), x)
    with pytest.raises(RuntimeError, match="blocksize is two numbers"):
        x.to_sparse_bsr((2, 2, 2))


def test_kinds_of_errors_of_sparse_ops():
    with pytest.raises(RuntimeError, match="hspmm: mat1 has to be sparse in both"):
        torch.hspmm(torch.ones(3, 3).to_sparse(1), torch.ones(3, 2))
    for op in (torch.sparse.softmax, torch.sparse.log_softmax):
        for x in (torch.eye(2).long(), torch.eye(2).bool()):
            with pytest.raises(NotImplementedError, match="softmax"):
                op(x.to_sparse(), 0)
        assert op(torch.eye(2).long().to_sparse(), 0, dtype=torch.float64).dtype is torch.float64
