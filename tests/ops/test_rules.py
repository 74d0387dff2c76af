"""Every op's rules for forward derivatives, batches and autocast, held to what they stand for.

Tangents agree with differences and with backward of backward, batches with a loop over slices, whichever arguments have the
batch and wherever it stands; rules.py carries them out.
"""

import re

import numpy as np
import pytest

import rushlight
from gen import rules as table_rules
from gen import table
from tests.ops import rules
from tests.ops.harness import (
    Makers,
    array,
    assert_close,
    assert_same,
    bound,
    count,
    over,
    tensors_of,
)

BATCH = 2
STEP = 1e-6  # of differences


def every_op(case):
    return True


# ---- forward derivatives ----


def has_tangents(case):
    return table_rules.tangent(case.op).kind not in ("composite", "none", "refused")


def sample(case, dtype, text, more=""):
    args, kwargs = Makers(rushlight, dtype, case.key + text + more).arguments(text)
    return bound(case.op, args, kwargs)


def is_differentiable(value):
    found = tensors_of([value])
    return bool(found) and all(t.dtype in (rushlight.float64, rushlight.complex128) for t in found)


def finite(value):
    return rules.mapped(lambda t: t.where(t.isfinite(), 1), value)


def shifted(value, t, step):
    if isinstance(value, (list, tuple)):
        return [shifted(v, u, step) for v, u in zip(value, t, strict=True)]
    return value + step * t


def differences(case, values, tangents):
    ends = []
    for step in (STEP, -STEP):
        given = values | {n: shifted(values[n], t, step) for n, t in tangents.items()}
        ends.append(rules.results_of(case.op, rules.call(case.op, given)))
    _, names = table_rules.differentiable(case.op)
    pairs = [
        (a, b)
        for n in names
        for a, b in zip(tensors_of([ends[0][n]]), tensors_of([ends[1][n]]), strict=True)
    ]
    return [(a - b) / (2 * STEP) for a, b in pairs]


def assert_tangents(case, values, tangents):
    found = rules.tangent(case.op, values, tangents)
    flat = tensors_of(list(found.values()))
    kind = table_rules.tangent(case.op).kind
    # Steps have no slope, and samples at the jumps.
    if kind != "zero" and "differences" not in case.skips:
        for ours, theirs in zip(flat, differences(case, values, tangents), strict=True):
            assert_close(array(ours), array(theirs), 1e-5)
    if "gradgrad" not in case.skips:
        twice = rules.twice(case.op, values, tangents)
        assert_same(flat, tensors_of(list(twice.values())), 1e-8)
    (name,) = found if len(found) == 1 else (None,)
    if "inplace" in case.op.variants and name is not None:
        form = lambda t: (t.shape, t.dtype) if isinstance(t, rushlight.Tensor) else None
        if form(found[name]) == form(values["self"]) and form(found[name]) is not None:
            written = rules.tangent_in_place(case.op, values, tangents)
            assert_same(written, found[name], 1e-12)


def has_gradient(case, values, tangents):
    """Whether backward takes these arguments; where it refuses, so does forward mode."""
    if "gradgrad" in case.skips:
        return True
    try:
        rules.twice(case.op, values, tangents)
    except (RuntimeError, NotImplementedError) as error:
        assert re.search("[Dd]erivative|differentiable", str(error)), error
        with pytest.raises(RuntimeError):
            rules.tangent(case.op, values, tangents)
        return False
    return True


@over(has_tangents, mode="jvp", among=every_op)
def test_tangents(case):
    names, _ = table_rules.differentiable(case.op)
    for dtype in ("float64", "complex128"):
        for text in case.samples if dtype in case.dtypes else ():
            values, other = sample(case, dtype, text), sample(case, dtype, text, "tangent")
            tangents = {n: finite(other[n]) for n in names if is_differentiable(values.get(n))}
            for chosen in [tangents, *({n: t} for n, t in tangents.items() if len(tangents) > 1)]:
                if chosen and has_gradient(case, values, chosen):
                    assert_tangents(case, values, chosen)


def has_smooth_tangents(case):
    kind = table_rules.tangent(case.op).kind
    rough = {"gradgrad", "differences", "jvp"} & set(case.skips)  # steps, and what is given up to a phase
    return kind not in ("composite", "none", "refused", "zero") and not rough


def flat_tangents(case, values, tangents):
    return tensors_of(list(rules.tangent(case.op, values, tangents).values()))


def assert_near(ours, theirs):
    """To the accuracy of differences of numbers of such a size."""
    if theirs.size:
        assert abs(ours - theirs).max() <= 1e-4 * (1 + abs(theirs).max()), (ours, theirs)
    count()


def assert_second_tangents(case, values, tangents, other):
    """Tangents of tangents, and gradients of tangents, against differences of tangents."""
    ends = [
        flat_tangents(case, values | {n: shifted(values[n], other[n], s) for n in other}, tangents)
        for s in (STEP, -STEP)
    ]
    expected = [array((a - b) / (2 * STEP)) for a, b in zip(*ends, strict=True)]
    names = list(other)
    spread = [len(tensors_of([other[n]])) for n in names]

    def run(*flat):
        found, rest = {}, list(flat)
        for n, k in zip(names, spread, strict=True):
            found[n] = rest[:k] if isinstance(values[n], (list, tuple)) else rest[0]
            rest = rest[k:]
        return tuple(flat_tangents(case, values | found, tangents))

    primals = tensors_of([values[n] for n in names])
    moves = tensors_of([other[n] for n in names])
    _, second = rushlight.func.jvp(run, tuple(primals), tuple(moves))
    for ours, theirs in zip(second, expected, strict=True):
        assert_near(array(ours), theirs)
    leaves = [t.detach().requires_grad_() for t in primals]
    found = [(t.real if t.is_complex() else t).sum() for t in run(*leaves) if t.requires_grad]
    product = 0.0
    if found:
        grads = rushlight.autograd.grad(sum(found), leaves, allow_unused=True)
        pairs = [(g, t) for g, t in zip(grads, moves, strict=True) if g is not None]
        product = sum(array((g.conj() * t).sum()).real for g, t in pairs)
    assert_near(np.asarray(product), np.asarray(sum(e.sum().real for e in expected)))


@over(has_smooth_tangents, mode="jvp twice", among=every_op)
def test_tangents_have_derivatives(case):
    names, _ = table_rules.differentiable(case.op)
    dtype = "float64" if "float64" in case.dtypes else "complex128"
    for text in case.samples if dtype in case.dtypes else ():
        values = sample(case, dtype, text)
        first, second = (sample(case, dtype, text, more) for more in ("tangent", "second"))
        first, second = ({n: finite(v[n]) for n in names if n in v} for v in (first, second))
        chosen = [n for n in names if is_differentiable(values.get(n))]
        chosen = [n for n in chosen if has_gradient(case, values, {n: first[n]})]
        size = sum(t.numel() for n in chosen for t in tensors_of([values[n]]))
        if chosen and 0 < size <= 100:
            tangents, other = ({n: v[n] for n in chosen} for v in (first, second))
            try:
                assert_second_tangents(case, values, tangents, other)
            except NotImplementedError:
                count()  # the op's backward has no derivative


# ---- batches ----


# What vmap refuses, as PyTorch does or for its reasons: values decide on sizes or on what is done, numbers of the host
# are wanted, or the answer is told by how memory lies.
REFUSED = {
    "argwhere", "index_fill", "nonzero_numpy", "nonzero_static", "pdist", "tensor_split.tensor_indices_or_sections",
    "_foreach_addcmul.Tensor", "_foreach_addcdiv.Tensor", "repeat_interleave.self_Tensor", "narrow.Tensor",
    "embedding_bag", "_embedding_bag", "_embedding_bag_forward_only", "embedding_bag.padding_idx", "_bags_of_embeddings", "_rows_of_embedding",
    "ctc_loss.Tensor", "lstm.data", "gru.data", "rnn_tanh.data", "rnn_relu.data",
    "histogram.bin_ct", "histogramdd", "histogramdd.int_bins", "embedding_renorm_", "where.single", "repeat_interleave.Tensor", "scaled_dot_product_attention",
    "as_strided_", "resize_", "resize_as_", "divide_", "_amp_update_scale_",
}  # fmt: skip
# Arguments that these refuse alone.
REFUSED_TEXT = "|".join(
    ["Batch norm got a batched tensor", "differ in number", "inplace arithmetic"]
)


def has_batches(case):
    kinds = {rule.kind for rule in table_rules.batch(case.op).values()}
    tensors = all(r.type.base == "Tensor" for r in case.op.results) and case.op.results
    return (
        tensors
        and case.op.tensors
        and case.key not in REFUSED
        and kinds.isdisjoint({"refused", "random", "random_like"})
    )


def stacked(values, place):
    """Slices side by side in some dimension."""
    if isinstance(values[0], (list, tuple)):
        return [stacked(v, place) for v in zip(*values, strict=True)]
    if not isinstance(values[0], rushlight.Tensor):
        return values[0]
    return rushlight.stack(list(values), min(place, values[0].dim()))


def assert_batches(case, each, names):
    """For arguments of these names, in each place that a batch dimension may have."""
    rank = max(t.dim() for n in names for t in tensors_of([each[0][n]]))
    for place in range(rank + 1):
        values = each[0] | {n: stacked([v[n] for v in each], place) for n in names}
        try:
            expected = rules.slices(case.op, values, names, place, BATCH)
        except RuntimeError as error:
            # A view that memory of such strides does not have, masks of unequal count.
            assert place > 0 or "equal size" in str(error), error
            continue
        try:
            found = rules.by_vmap(case.op, values, names, place)
        except RuntimeError as error:
            if re.search(REFUSED_TEXT, str(error)) is None:
                raise
            continue
        for ours, theirs in zip(tensors_of([found]), tensors_of([expected]), strict=True):
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
            if theirs.numel():
                assert_same(ours, theirs, 1e-10)
            count()


@over(has_batches, mode="batch", among=every_op)
def test_batches(case):
    dtype = "float64" if "float64" in case.dtypes else case.dtypes[0]
    for text in case.samples:
        each = [sample(case, dtype, text, str(i)) for i in range(BATCH)]
        present = [a.name for a in case.op.tensors if tensors_of([each[0][a.name]])]
        choices = {frozenset(present), *(frozenset({n}) for n in present)} - {frozenset()}
        for names in sorted(choices, key=sorted):
            if not case.op.inplace_only or "self" in names:
                assert_batches(case, each, sorted(names))


# ---- the lists ----


def test_few_ops_are_without_a_rule():
    ops = table.load()
    twice = [op.symbol for op in ops if table_rules.tangent(op).kind == "twice"]
    slices = [
        op.symbol for op in ops if any(r.kind == "slices" for r in table_rules.batch(op).values())
    ]
    assert len(twice) <= 13, twice
    assert len(slices) <= 28, slices


def test_rules_are_well_formed():
    table_rules.report(table.load())


# ---- autocast ----


def is_cast(case):
    return bool(table_rules.autocast(case.op))


def widen(t):
    return t.float() if t.dtype == rushlight.bfloat16 else t


def floats_of(value):
    return [t for t in tensors_of(value) if t.dtype.is_floating_point]


@over(is_cast, mode="autocast", among=every_op)
def test_autocast(case):
    """Results of "lower" have 16 bits; those of "float32" and "promote" are those of widened inputs.

    On the CPU, calls under autocast are those on arguments cast by hand.
    """
    for device, rule in table_rules.autocast(case.op).items():
        for text in case.samples:
            single, lower = sample(case, "float32", text), sample(case, "bfloat16", text)
            if rule == "refused" or not floats_of(list(single.values())):
                continue
            for values in (single, lower) if device == "cpu" else ():
                expected = rules.call(case.op, rules.cast(case.op, values))
                with rushlight.autocast("cpu", dtype=rushlight.bfloat16):
                    assert_same(rules.call(case.op, values), expected)
            if rule == "lower":
                found = rules.call(case.op, rules.cast(case.op, single, device))
                assert all(t.dtype == rushlight.bfloat16 for t in floats_of([found])[:1])
            widened = {n: rules.mapped(widen, v) for n, v in lower.items()}
            if rule == "float32":
                found = rules.call(case.op, rules.cast(case.op, lower, device))
                assert_same(found, rules.call(case.op, widened))
            first, *rest = [n for n, v in lower.items() if floats_of([v])]
            if rule == "promote" and rest:
                mixed = lower | {first: widened[first]}
                found = rules.call(case.op, rules.cast(case.op, mixed, device))
                assert_same(found, rules.call(case.op, widened))
            count()
