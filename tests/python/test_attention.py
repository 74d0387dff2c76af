"""Attention: one meaning for any number of queries, and for whatever stands where nothing is seen."""

import pytest

import rushlight as torch
from rushlight.nn import functional as F

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.02, torch.float16: 0.003}
HIDING = ["bool", "-inf", "causal"]


def by_definition(q, k, v, hidden):
    """Row by row in float64, of the keys that a query sees."""
    q, k, v = q.double(), k.double(), v.double()
    rows = []
    for i in range(q.size(-2)):
        seen = hidden[i].logical_not().nonzero().flatten()
        if len(seen) == 0:
            nothing = 0 * (q.sum() + k.sum() + v.sum())
            rows.append(nothing.expand(*q.shape[:-2], v.size(-1)))
            continue
        scores = (q[..., i : i + 1, :] * k[..., seen, :]).sum(-1) / q.size(-1) ** 0.5
        rows.append((scores.softmax(-1).unsqueeze(-1) * v[..., seen, :]).sum(-2))
    return torch.stack(rows, -2)


def hidden_keys(how, queries, keys):
    if how == "causal":
        return torch.ones(queries, keys).tril() == 0
    torch.manual_seed(queries)
    hidden = torch.rand(queries, keys) < 0.4
    hidden[:, 1] = False
    hidden[0] = True  # a query that sees nothing
    hidden[:, 2 % keys] = True
    return hidden


def attention(q, k, v, how, hidden):
    if how == "causal":
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    if how == "bool":
        return F.scaled_dot_product_attention(q, k, v, hidden.logical_not())
    mask = torch.zeros(hidden.shape, dtype=q.dtype).masked_fill(hidden, float("-inf"))
    return F.scaled_dot_product_attention(q, k, v, mask)


def operands(queries, keys, dtype, heads=2):
    torch.manual_seed(queries + keys)
    return [
        torch.randn(2, heads, rows, width).to(dtype).requires_grad_()
        for rows, width in ((queries, 20), (keys, 20), (keys, 12))
    ]


def assert_same(found, expected, dtype):
    assert found.dtype == dtype
    limit = TOLERANCE[dtype]
    scale = max(1.0, expected.abs().max().item())
    torch.testing.assert_close(found.double(), expected, rtol=limit, atol=limit * scale)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("how", HIDING)
@pytest.mark.parametrize("queries", range(1, 10))
def test_hidden_keys_count_for_nothing(queries, how, dtype):
    for keys in (9, 130):
        hidden = hidden_keys(how, queries, keys)
        q, k, v = operands(queries, keys, dtype)
        inputs = [t.detach().double().requires_grad_() for t in (q, k, v)]
        expected = by_definition(*inputs, hidden)
        g = torch.randn(expected.shape).to(dtype)
        slopes = torch.autograd.grad(expected, inputs, g.double())

        unseen = hidden.all(0)
        for strange in (0.0, float("nan"), float("inf")):
            with torch.no_grad():
                if how != "causal":
                    k[:, :, unseen] = strange
                    v[:, :, unseen] = strange
            found = attention(q, k, v, how, hidden)
            assert_same(found, expected.detach(), dtype)
            for t, slope in zip(torch.autograd.grad(found, (q, k, v), g), slopes, strict=True):
                assert_same(t, slope, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("queries", range(1, 10))
def test_strange_keys_reach_those_who_see_them(queries, dtype):
    """Key 3 is NaN, value 4 is infinite: later queries see them, earlier ones do not."""
    q, k, v = operands(queries, 40, dtype)
    with torch.no_grad():
        k[..., 3, :] = float("nan")
        v[..., 4, :] = float("inf")
    found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    hidden = hidden_keys("causal", queries, 40)
    clean = [t.detach().nan_to_num(0, 0, 0).double() for t in (q, k, v)]
    expected = by_definition(*clean, hidden)
    assert_same(found[..., :3, :].detach(), expected[..., :3, :], dtype)
    assert found[..., 3:, :].isnan().all()
    grad_query = torch.autograd.grad(found[..., :3, :].sum(), q)[0]
    assert grad_query[..., :3, :].isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("queries", [1, 2, 3, 4, 9])
def test_scores_are_not_rounded_to_16_bits(queries, dtype):
    torch.manual_seed(0)
    q = (torch.randn(1, 2, queries, 64) * 300).to(dtype)
    k = (torch.randn(1, 2, 50, 64) * 3).to(dtype)
    v = torch.randn(1, 2, 50, 8).to(dtype)
    expected = by_definition(q, k, v, torch.zeros(queries, 50, dtype=torch.bool))
    assert_same(F.scaled_dot_product_attention(q, k, v), expected, dtype)
    large = torch.full((1, 1, queries, 8), 300.0, dtype=dtype)  # whose scores half does not hold
    same = torch.full((1, 1, 5, 8), 300.0, dtype=dtype)
    assert (F.scaled_dot_product_attention(large, same, same) == 300).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_query_of_many_keys(dtype):
    for queries in (1, 3):
        q, k, v = operands(queries, 2500, dtype)
        none = torch.zeros(queries, 2500, dtype=torch.bool)
        expected = by_definition(q.detach(), k.detach(), v.detach(), none)
        found = []
        before = torch.get_num_threads()
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(F.scaled_dot_product_attention(q, k, v).detach())
        torch.set_num_threads(before)
        assert_same(found[0], expected, dtype)
        assert all(t.equal(found[0]) for t in found)


@pytest.mark.parametrize("queries", [1, 3, 5])
def test_few_queries_of_shared_heads(queries):
    q = torch.randn(2, 6, queries, 16, dtype=torch.float64, requires_grad=True)
    k, v = (torch.randn(2, 2, 7, 16, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def f(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    wide = [t.repeat_interleave(3, 1) for t in (k, v)]
    torch.testing.assert_close(f(q, k, v), F.scaled_dot_product_attention(q, *wide))
    assert torch.autograd.gradcheck(f, (q, k, v))
    assert torch.autograd.gradgradcheck(f, (q[:1, :3], k[:1, :1], v[:1, :1]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_dropout_and_gradients_of_masks_keep_the_scores(dtype):
    large = torch.full((1, 1, 5, 8), 300.0, dtype=dtype)
    mask = torch.zeros(5, 5, dtype=dtype, requires_grad=True)
    found = F.scaled_dot_product_attention(large, large, large, mask)
    assert found.dtype == dtype
    assert (found == 300).all()
    assert torch.autograd.grad(found.sum(), mask)[0].isfinite().all()
    dropped = F.scaled_dot_product_attention(large, large, large, dropout_p=0.5)
    assert dropped.dtype == dtype
    assert dropped.isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("how", HIDING)
@pytest.mark.parametrize("queries", [2, 6])
def test_hidden_keys_count_for_nothing_with_dropout(queries, how, dtype):
    """Draws and results are those of zeros in their place, and so are gradients."""
    hidden = hidden_keys(how, queries, 9)
    unseen = hidden.all(0)
    found = []
    for strange in (0.0, float("nan"), float("inf")):
        q, k, v = operands(queries, 9, dtype)
        with torch.no_grad():
            k[:, :, unseen] = strange
            v[:, :, unseen] = strange
        torch.manual_seed(5)
        mask = None if how == "causal" else hidden.logical_not()
        if how == "-inf":
            mask = torch.zeros(hidden.shape, dtype=dtype).masked_fill(hidden, float("-inf"))
            mask.requires_grad_()
        y = F.scaled_dot_product_attention(q, k, v, mask, 0.25, how == "causal")
        inputs = [q, k, v] if mask is None or not mask.requires_grad else [q, k, v, mask]
        found.append([y.detach(), *torch.autograd.grad(y.sum(), inputs)])
    for other in found[1:]:
        for ours, clean in zip(other, found[0], strict=True):
            torch.testing.assert_close(ours, clean)


def test_strange_keys_reach_those_who_see_them_with_dropout():
    q, k, v = operands(6, 9, torch.float64)
    with torch.no_grad():
        k[..., 3, :] = float("nan")
        v[..., 2, :] = float("inf")
    torch.manual_seed(0)
    found = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True)
    assert found[..., :2, :].isfinite().all() and found[..., 3:, :].isnan().all()
    assert not found[..., 2, :].isfinite().any()
    (grad_query,) = torch.autograd.grad(found[..., :2, :].sum(), q)
    assert grad_query[..., :2, :].isfinite().all()


def test_second_derivatives_do_not_see_what_is_hidden():
    hidden = hidden_keys("bool", 6, 9)
    found = []
    for strange in (0.0, float("nan")):
        q, k, v = operands(6, 9, torch.float64)
        with torch.no_grad():
            k[:, :, hidden.all(0)] = strange
            v[:, :, hidden.all(0)] = strange
        y = F.scaled_dot_product_attention(q, k, v, hidden.logical_not())
        first = torch.autograd.grad(y.square().sum(), (q, k, v), create_graph=True)
        found.append(torch.autograd.grad(sum(g.square().sum() for g in first), (q, k, v)))
    for ours, clean in zip(*found, strict=True):
        torch.testing.assert_close(ours, clean)


# ---- layers that return their weights ----


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("masked", [False, True])
def test_weights_of_16_bits_are_rounded_once(dtype, masked):
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(16, 2, batch_first=True).to(dtype)
    x = (torch.randn(2, 7, 16) * 6).to(dtype)
    mask = torch.ones(7, 7).triu(1).bool() if masked else None
    q, k, _ = (
        F.linear(x, w, b).unflatten(-1, (2, 8)).transpose(1, 2).double()
        for w, b in zip(layer.in_proj_weight.chunk(3), layer.in_proj_bias.chunk(3), strict=True)
    )
    scores = q @ k.transpose(-2, -1) / 8**0.5
    if masked:
        scores = scores.masked_fill(mask, float("-inf"))
    expected = scores.softmax(-1).mean(1)
    _, weights = layer(x, x, x, attn_mask=mask)
    assert weights.dtype == dtype
    off = (weights.double() - expected).abs() / (expected + 1e-3)
    assert off.max() < 1.01 * torch.finfo(dtype).eps / 2 + 1e-4
    with torch.autocast("cpu", dtype=dtype):
        y, wide = layer.float()(x.float(), x.float(), x.float(), attn_mask=mask)
    assert y.dtype == dtype and wide.dtype == torch.float32


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_weights_do_not_see_padding_that_is_no_number(dropout):
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(16, 2, dropout=dropout, batch_first=True).double()
    padding = torch.zeros(2, 7).bool()
    padding[0, 4:] = True
    query = torch.randn(2, 3, 16).double()
    found = []
    for strange in (0.0, float("nan")):
        torch.manual_seed(1)
        x = torch.randn(2, 7, 16).double()
        x[0, 5] = strange
        y, weights = layer(query, x, x, key_padding_mask=padding)
        found.append(
            [y.detach(), weights.detach(), *torch.autograd.grad(y.sum(), [layer.out_proj.weight])]
        )
    for ours, clean in zip(*found, strict=True):
        torch.testing.assert_close(ours, clean)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("sizes", [(70, 133, 40, 24), (33, 300, 64, 80), (160, 257, 31, 33)])
def test_blocks_of_short_floats(sizes, dtype, causal):
    """Only operands and results have few digits: weights of many keys are rounded no more than sums."""
    queries, keys, width, value_width = sizes
    torch.manual_seed(0)
    leaves = [
        torch.randn(1, 2, rows, columns).to(dtype).requires_grad_()
        for rows, columns in ((queries, width), (keys, width), (keys, value_width))
    ]
    hidden = torch.ones(queries, keys).tril() == 0 if causal else torch.zeros(queries, keys).bool()
    found = F.scaled_dot_product_attention(*leaves, is_causal=causal)
    expected = by_definition(*leaves, hidden)
    grad = torch.randn(found.shape).to(dtype)
    pairs = zip(
        (found, *torch.autograd.grad(found, leaves, grad)),
        (expected, *torch.autograd.grad(expected, leaves, grad.double())),
        strict=True,
    )
    for mine, right in pairs:
        error = (mine.double() - right.double()).norm() / right.double().norm()
        assert error < torch.finfo(dtype).eps / 2


def test_infinite_values_that_are_seen_are_infinite():
    q, k, v = (torch.randn(1, 1, 40, 16).bfloat16() for _ in range(3))
    v[..., 7, 3] = float("inf")
    found = F.scaled_dot_product_attention(q, k, v)
    assert (found[..., 3] == float("inf")).all()
    assert found[..., :3].isfinite().all() and found[..., 4:].isfinite().all()
