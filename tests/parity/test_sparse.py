"""Sparse tensors beside PyTorch's: text, entries, files."""

import io

import pytest

import rushlight

torch = pytest.importorskip("torch")

MAKERS = {
    "coo": lambda t: t.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3)),
    "hybrid": lambda t: t.sparse_coo_tensor([[0, 2, 0]], [[1, 2], [3, 4], [5, 6]], (4, 2)),
    "empty": lambda t: t.sparse_coo_tensor(t.zeros(2, 0, dtype=t.int64), t.zeros(0), (2, 3)),
    "csr": lambda t: t.sparse_csr_tensor([0, 2, 4], [0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0]),
    "csc": lambda t: t.sparse_csc_tensor([0, 2, 4], [0, 1, 0, 1], [1, 2, 3, 4], dtype=t.float64),
    "bsr": lambda t: t.sparse_bsr_tensor([0, 1, 2], [0, 1], [[[3, 4, 5]], [[9, 8, 7]]]),
    "batch": lambda t: t.sparse_csr_tensor([[0, 1], [0, 1]], [[0], [1]], [[5.0], [6.0]], (2, 1, 2)),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.filterwarnings("ignore")
def test_text_and_elements(name):
    ours, theirs = MAKERS[name](rushlight), MAKERS[name](torch)
    assert repr(ours) == repr(theirs)
    assert ours.to_dense().tolist() == theirs.to_dense().tolist()
    assert ours._nnz() == theirs._nnz()
    assert (ours.sparse_dim(), ours.dense_dim()) == (theirs.sparse_dim(), theirs.dense_dim())


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.filterwarnings("ignore")
def test_files_go_both_ways(name):
    for source, target in ((rushlight, torch), (torch, rushlight)):
        stream = io.BytesIO()
        made = MAKERS[name](source)
        source.save(made, stream)
        stream.seek(0)
        read = target.load(stream)
        assert str(read.layout) == str(made.layout)
        assert read.to_dense().tolist() == made.to_dense().tolist()


@pytest.mark.filterwarnings("ignore")
def test_gradients_have_the_same_entries():
    found = []
    for t in (rushlight, torch):
        s = MAKERS["coo"](t).coalesce().detach().requires_grad_()
        t.sparse.mm(s, t.arange(6.0).view(3, 2)).sum().backward()
        table = t.nn.Embedding(4, 2, sparse=True)
        table(t.tensor([1, 1, 3])).sum().backward()
        grads = (s.grad, table.weight.grad)
        found.append(
            [
                (
                    g.layout is t.sparse_coo,
                    g.coalesce().indices().tolist(),
                    g.coalesce().values().tolist(),
                )
                for g in grads
            ]
        )
    assert found[0] == found[1]
