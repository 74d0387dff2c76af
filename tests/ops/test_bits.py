"""Bits do not depend on the number of threads, nor change from run to run: for every op of the table, with gradients.

Samples are enlarged (all sizes of their tensors by one factor) where the op still takes them, so that the work is cut
into several chunks; those that it does not take run as they are.
"""

import math

import pytest

import rushlight
from tests.ops import harness
from tests.ops.harness import Makers, array, function_of, tensors_of

ELEMENTS = 75_000  # of the largest input of an enlarged sample: three chunks of most loops
MOST_BYTES = 8_000_000  # that an enlarged sample may leave
CASES = harness.cases()


class LargeMakers(Makers):
    """Multiplies every size above 1."""

    def __init__(self, *args, factor=1, **kwargs):
        super().__init__(*args, **kwargs)
        self.factor = factor

    def _sizes(self, shape):
        return tuple(n * self.factor if n > 1 else n for n in shape)

    def x(self, *shape, **kwargs):
        return super().x(*self._sizes(shape), **kwargs)

    def distinct(self, *shape):
        return super().distinct(*self._sizes(shape))

    def ints(self, *shape, **kwargs):
        return super().ints(*self._sizes(shape), **kwargs)

    def mask(self, *shape):
        return super().mask(*self._sizes(shape))


def mapped(change, value):
    """The same with all tensors changed."""
    if isinstance(value, rushlight.Tensor):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(mapped(change, v) for v in value)
    return value


def fresh(value):
    """Copies of all tensors, leaves as before."""

    def copy(t):
        return (
            t.detach()
            .clone(memory_format=rushlight.preserve_format)
            .requires_grad_(t.requires_grad)
        )

    return mapped(copy, value)


def same(value):
    return value


def outcome(case, args, kwargs, threads, before=same, after=same):
    """All that a call leaves: results, gradients of what required them, arguments that it wrote to, other values.

    Arguments are what `before` makes of tensors, and results what `after` makes of them.
    """
    rushlight.set_num_threads(threads)
    rushlight.manual_seed(5)
    leaves, more = fresh(args), {k: fresh(v) for k, v in kwargs.items()}
    args, kwargs = mapped(before, leaves), {k: mapped(before, v) for k, v in more.items()}
    result = mapped(after, function_of(rushlight, case.op)(*args, **kwargs))
    outputs = [t for t in tensors_of(result) if t.requires_grad]
    inputs = [t for t in tensors_of([*leaves, *more.values()]) if t.requires_grad and t.is_leaf]
    found = [*tensors_of(result), *tensors_of([*args, *kwargs.values()])]
    if outputs and inputs and "backward" not in case.skips and not case.refuses:
        ones = [rushlight.ones_like(t) for t in outputs]
        found += [
            g
            for g in rushlight.autograd.grad(outputs, inputs, ones, allow_unused=True)
            if g is not None
        ]
    values = [
        v
        for v in (result if isinstance(result, tuple) else (result,))
        if isinstance(v, (bool, int, float))
    ]
    return [array(t).tobytes() for t in found], values


def arguments(case, text, factor):
    makers = LargeMakers(
        rushlight, case.dtypes[0], case.key + text, requires_grad=not case.writes, factor=factor
    )
    return makers.arguments(text)


def bytes_left(case, text, factor):
    left, _ = outcome(case, *arguments(case, text, factor), threads=1)
    return max(1, sum(map(len, left)))


def enlarged(case, text):
    """(arguments, whether they are large): of the enlarged sample if the op takes it."""
    args, kwargs = arguments(case, text, 1)
    largest = max(tensors_of([*args, *kwargs.values()]), key=lambda t: t.numel(), default=None)
    if largest is None or not 1 < largest.numel() < ELEMENTS:
        return (args, kwargs), largest is None or largest.numel() >= ELEMENTS
    factor = int((ELEMENTS / largest.numel()) ** (1 / largest.dim()))
    try:
        # Results may grow as a power of the factor (combinations, products of all pairs): as far as MOST_BYTES.
        small = bytes_left(case, text, 1)
        power = math.log(bytes_left(case, text, 3) / small, 3)
        factor = min(factor, int((MOST_BYTES / small) ** (1 / max(power, 0.1))))
        if factor > 1:
            bytes_left(case, text, factor)
            return arguments(case, text, factor), True
    except (RuntimeError, ValueError, IndexError):
        pass  # sizes that the sample also has as numbers
    return (args, kwargs), False


@pytest.mark.parametrize("case", [pytest.param(c, id=key) for key, c in CASES.items()])
def test_bits_do_not_depend_on_threads(case):
    before = rushlight.get_num_threads()
    try:
        # Two samples, large ones if there are any among the first.
        chosen = [(text, *enlarged(case, text)) for text in case.samples[:4]]
        for text, (args, kwargs), _ in sorted(chosen, key=lambda c: not c[2])[:2]:
            expected = outcome(case, args, kwargs, threads=1)
            for threads in (2, 3, 5, 1):
                assert outcome(case, args, kwargs, threads) == expected, (text, threads)
    finally:
        rushlight.set_num_threads(before)


def step(t):
    """The same values, computed by pointwise steps where there are such of its dtype."""
    if (
        t.is_sparse
        or t.layout != rushlight.strided
        or t.is_quantized
        or not (t.is_floating_point() or t.is_complex())
    ):
        return t
    return (t * 2) * 0.5


@pytest.mark.parametrize("case", [pytest.param(c, id=key) for key, c in CASES.items()])
def test_bits_do_not_depend_on_compile(case):
    """An op between pointwise ones, run as it is written and in a region where those are computed together."""
    before = rushlight.get_num_threads()
    compiled = rushlight.compile(outcome)
    try:
        chosen = [(text, *enlarged(case, text)) for text in case.samples[:4]]
        for text, (args, kwargs), _ in sorted(chosen, key=lambda c: not c[2])[:2]:
            expected = outcome(case, args, kwargs, 1, step, step)
            for threads in (1, 2, 3, 5):
                found = compiled(case, args, kwargs, threads, step, step)
                assert found == expected, (text, threads)
    finally:
        rushlight.set_num_threads(before)


def test_every_op_has_samples():
    missing = sorted(key for key, case in CASES.items() if not case.samples)
    assert not missing, f"add samples of these to tests/ops/<family>.py: {missing}"
    assert {
        harness.key_of(op) for op in harness.table.load()
    } == CASES.keys() | harness.without().keys()
