"""Gradients of every op beside the two things that they can be held to: what they change by (differences of first
gradients), and what they are in float64."""

import re

import numpy as np

import rushlight
from gen import table
from gen.schema import parts
from tests.ops.harness import Makers, array, count, function_of, over, tensors_of
from tests.ops.test_table import differentiable, has_form, inputs_of

STEP = 1e-6
ROUNDINGS = 40  # of float32, that a gradient may differ by: sums of a sample cancel
# Larger samples say nothing more.
MOST_ELEMENTS = 4000
REFUSAL = "[Dd]erivative|differentiable"


class Given(Makers):
    """Makes a sample of given tensors, in the places of those that require a gradient."""

    def __init__(self, dtype, key, given):
        super().__init__(rushlight, dtype, key, requires_grad=True)
        self.given = iter(given)

    def _tensor(self, array, dtype):
        # What float32 holds, in both dtypes.
        narrow = {"f": "f4", "c": "c8"}.get(array.dtype.kind, array.dtype)
        made = super()._tensor(array.astype(narrow), dtype)
        return next(self.given) if made.requires_grad else made


def function_and_inputs(case, text, dtype):
    """A sample as a function of what requires a gradient, and that; None where it is not one to try."""
    makers = Makers(rushlight, dtype, case.key + text, requires_grad=True)
    makers.arguments(text)
    if not makers.inputs or not 0 < sum(t.numel() for t in makers.inputs) <= MOST_ELEMENTS:
        return None

    def function(*inputs):
        dtype = "float64" if inputs[0].dtype == rushlight.float64 else "float32"
        args, kwargs = Given(dtype, case.key + text, inputs).arguments(text)
        return [
            t
            for t in tensors_of(function_of(rushlight, case.op)(*args, **kwargs))
            if t.requires_grad
        ]

    return function, makers.inputs


def random_like(tensors, rng):
    return [
        rushlight.from_numpy(np.asarray(rng.uniform(-1, 1, t.shape))).to(t.dtype) for t in tensors
    ]


def gradients(function, inputs, seeds, **how):
    return rushlight.autograd.grad(function(*inputs), inputs, seeds, allow_unused=True, **how)


def or_refused(compute, *arguments, **how):
    """What is computed; None where the derivative says that it does not exist."""
    try:
        return compute(*arguments, **how)
    except RuntimeError as error:
        assert re.search(REFUSAL, str(error)), error
        count()
        return None


def total(tensors, weights):
    """The sum of all products, of what is there."""
    found = [(t * w).sum() for t, w in zip(tensors, weights, strict=True) if t is not None]
    return sum(found[1:], found[0]) if found else rushlight.zeros((), dtype=rushlight.float64)


def change_of_gradients(function, inputs, seeds, weights, direction):
    """By differences: how the sum of weighted gradients changes as the inputs move."""
    ends = []
    for step in (STEP, -STEP):
        moved = [
            (t.detach() + step * d).requires_grad_() for t, d in zip(inputs, direction, strict=True)
        ]
        ends.append(total(gradients(function, moved, seeds), weights).item())
    return (ends[0] - ends[1]) / (2 * STEP), max(map(abs, ends))


@over(
    lambda case: differentiable(case) or case.refuses,
    lambda case: "float64" in case.dtypes,
    mode="second",
)
def test_gradients_of_gradients_or_an_error(case):
    """A gradient that depends on the inputs can be differentiated by them, or says that it cannot when it is asked."""
    for text in case.samples:
        found = function_and_inputs(case, text, "float64")
        outputs = found and found[0](*found[1])
        if not outputs:
            continue
        function, inputs = found
        rng = np.random.default_rng(1)
        seeds, weights, direction = (random_like(t, rng) for t in (outputs, inputs, inputs))
        first = or_refused(gradients, function, inputs, seeds, create_graph=True)
        if first is None:
            continue
        sum_of_first = total(first, weights)
        second = [None] * len(inputs)
        if sum_of_first.requires_grad:
            second = or_refused(rushlight.autograd.grad, sum_of_first, inputs, allow_unused=True)
            if second is None:
                continue
        by_differences, size = change_of_gradients(function, inputs, seeds, weights, direction)
        assert abs(total(second, direction).item() - by_differences) <= 1e-5 * (1 + size), text
        count()


def test_fused_gradients_belong_to_the_graph():
    """They are differentiable, or say that nobody has written it: "none" would cut the graph without a word."""
    fused = [
        op
        for op in table.load()
        if op.kind == "kernel" and re.search("_(backward|grad|gradients)$", op.name)
    ]
    assert len(fused) > 40 and [op.name for op in fused if op.grad == "none"] == []


def doubled(t):
    return t.detach().to(rushlight.complex128 if t.is_complex() else rushlight.float64)


@over(differentiable, lambda case: {"float32", "float64"} <= set(case.dtypes), mode="float32 grad")
def test_gradients_in_float32_are_those_in_float64(case):
    """To a few roundings of the largest element, or of what is about as large as inputs and seeds are."""
    for text in case.samples:
        found = function_and_inputs(case, text, "float32")
        outputs = found and found[0](*found[1])
        if not outputs:
            continue
        function, inputs = found
        seeds = random_like(outputs, np.random.default_rng(1))
        wide = [doubled(t).requires_grad_() for t in inputs]
        expected = or_refused(gradients, function, wide, [doubled(s) for s in seeds])
        if expected is None:
            continue
        for ours, theirs in zip(gradients(function, inputs, seeds), expected, strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                theirs = array(theirs)
                scale = np.nanmax(np.abs(theirs), initial=1)
                tolerance = ROUNDINGS * case.looser * 2**-24 * scale
                np.testing.assert_allclose(
                    array(ours), theirs, rtol=0, atol=tolerance, err_msg=text
                )
                count()


# Ops that vmap refuses, each with a message that says so; and what differs from slice to slice in size.
NOT_MAPPED = "at least one tensor|vmap: (?!inplace arithmetic)|batched tensor|differ in (size|number)|data-dependent"


def mapped_or_refused(compute, *arguments):
    try:
        return compute(*arguments)
    except (RuntimeError, NotImplementedError) as error:
        assert re.search(f"{NOT_MAPPED}|{REFUSAL}|does not support it", str(error)), error
        count()
        return None


def small_function(case, text):
    """The function of a small sample, its inputs, and two seeds for each result; None where there is none."""
    found = function_and_inputs(case, text, "float64")
    if not found or sum(t.numel() for t in found[1]) > 60:
        return None
    outputs = found[0](*found[1])
    if not outputs or sum(t.numel() for t in outputs) > 200:
        return None
    rng = np.random.default_rng(2)
    return *found, [
        rushlight.stack(s) for s in zip(*(random_like(outputs, rng) for _ in range(2)), strict=True)
    ]


def close(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            rushlight.testing.assert_close(a, b, rtol=1e-7, atol=1e-9, equal_nan=True)


@over(differentiable, lambda case: "float64" in case.dtypes, mode="batched grad")
def test_batches_of_gradients(case):
    """Backward of several gradients at once is backward of each."""
    for text in case.samples:
        found = small_function(case, text)
        if found is None:
            continue
        function, inputs, seeds = found
        each = [or_refused(gradients, function, inputs, [s[i] for s in seeds]) for i in range(2)]
        if each[0] is None:
            continue
        batch = mapped_or_refused(lambda: gradients(function, inputs, seeds, is_grads_batched=True))  # noqa: B023
        if batch is not None:
            close(
                batch,
                [
                    None if a is None else rushlight.stack([a, b])
                    for a, b in zip(*each, strict=True)
                ],
            )
            count()


def pulled_back(function, seeds):
    """The gradients of a function of the inputs, as such a function."""

    def run(*inputs):
        return [
            g
            for g in rushlight.func.vjp(lambda *x: tuple(function(*x)), *inputs)[1](tuple(seeds))
            if g is not None
        ]

    return run


def of_both(results):
    """Two lists of tensors as one, each pair a batch."""
    return [rushlight.stack(pair) for pair in zip(*results, strict=True)]


@over(differentiable, lambda case: "float64" in case.dtypes, mode="nested")
def test_hessians_of_batches(case):
    """Tangents along a batch of directions of a batch of gradients: what `hessian` of several results computes."""
    jvp, vmap = rushlight.func.jvp, rushlight.vmap
    for text in case.samples:
        found = small_function(case, text)
        if found is None:
            continue
        function, leaves, seeds = found
        inputs = tuple(t.detach() for t in leaves)
        rng = np.random.default_rng(3)
        directions = of_both([random_like(inputs, rng) for _ in range(2)])

        def one(i, j, function=function, inputs=inputs, seeds=seeds, directions=directions):
            pulled = pulled_back(function, [s[j] for s in seeds])
            return jvp(pulled, inputs, tuple(d[i] for d in directions))[1]

        def all_at_once(*along, function=function, inputs=inputs, seeds=seeds):
            return jvp(
                lambda *x: vmap(lambda *s: pulled_back(function, s)(*x))(*seeds), inputs, along
            )[1]

        if mapped_or_refused(one, 0, 0) is None:
            continue
        batch = mapped_or_refused(vmap(all_at_once), *directions)
        if batch is not None:
            close(batch, of_both([of_both([one(i, j) for j in range(2)]) for i in range(2)]))
            count()


@over(differentiable, lambda case: "float64" in case.dtypes, mode="nested")
def test_tangents_within_batches(case):
    """Tangents along a batch of directions, of a function that makes a batch of its inputs."""
    jvp, vmap = rushlight.func.jvp, rushlight.vmap
    ones = rushlight.ones(2, dtype=rushlight.float64)
    for text in case.samples:
        found = small_function(case, text)
        if found is None:
            continue
        function, inputs, _ = (
            found  # which require gradients, so that what depends on them is known
        )
        rng = np.random.default_rng(4)
        directions = of_both([random_like(inputs, rng) for _ in range(2)])

        def one(i, function=function, inputs=inputs, directions=directions):
            tangents = jvp(
                lambda *x: tuple(function(*x)), tuple(inputs), tuple(d[i] for d in directions)
            )[1]
            return [rushlight.stack([t, t]) for t in tangents]

        def all_at_once(*along, function=function, inputs=inputs):
            def each(*x):
                return vmap(lambda scale: tuple(function(*(t * scale for t in x))))(ones)

            return jvp(each, tuple(inputs), along)[1]

        if mapped_or_refused(one, 0) is None:
            continue
        batch = mapped_or_refused(vmap(all_at_once), *directions)
        if batch is not None:
            close(batch, of_both([one(0), one(1)]))
            count()


def by_self(case):
    return any("self" in parts(names) for names in case.op.grad or ())


@over(has_form("inplace"), by_self, lambda case: "float64" in case.dtypes, mode="inplace")
def test_writes_within_batches(case):
    """The gradient of each of a batch, through an op in place on what was computed of it."""
    grad, vmap = rushlight.func.grad, rushlight.vmap
    for text in case.samples:
        (target, *rest), kwargs = inputs_of(case, "float64", text)
        if not isinstance(target, rushlight.Tensor) or not 0 < target.numel() <= MOST_ELEMENTS:
            continue

        def written(x, rest=rest, kwargs=kwargs):
            y = x * 1
            space = rushlight.ops.rushlight if case.op.own else rushlight.ops.aten
            getattr(space, case.op.inplace_name)(y, *rest, **kwargs)
            return y.sum()

        batch = rushlight.stack([target, target * 0.5])
        try:
            each = [grad(written)(x) for x in batch]
        except RuntimeError as error:  # of another size, or without a derivative
            if re.search(REFUSAL, str(error)):
                count()
            continue
        found = mapped_or_refused(vmap(grad(written)), batch)
        if found is not None:
            close([found], [rushlight.stack(each)])
            count()


def takes_numbers(case):
    return any(a.type.number for a in case.op.args)


@over(differentiable, takes_numbers, lambda case: "float64" in case.dtypes, mode="number")
def test_gradients_beside_numbers(case):
    """A number has all its digits in the gradients of other arguments: as a tensor of float64 has."""
    for place, arg in enumerate(case.op.args):
        if not arg.type.number:
            continue

        def gradients_with(number, place=place):
            leaves = {}
            for i, a in enumerate(case.op.args):
                if i != place and a in case.op.tensors:
                    x = rushlight.tensor([0.2, 0.9, 1.7], dtype=rushlight.float64) * (1 + 0.1 * i)
                    leaves[a.name] = x.requires_grad_()
            out = function_of(rushlight, case.op)(**leaves, **{case.op.args[place].name: number})
            return rushlight.autograd.grad(
                out.sum(), list(leaves.values()), allow_unused=True, materialize_grads=True
            )

        try:
            expected = gradients_with(rushlight.tensor(0.7, dtype=rushlight.float64))
        except (RuntimeError, NotImplementedError) as error:
            assert re.search(REFUSAL, str(error)), error
            count()
            continue
        for found, wanted in zip(gradients_with(0.7), expected, strict=True):
            rushlight.testing.assert_close(found, wanted, rtol=1e-13, atol=1e-14)
            count()
