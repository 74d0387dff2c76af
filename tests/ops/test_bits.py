"""Bits do not depend on the number of threads, nor change from run to run: for every op of the table, with gradients.

Samples are enlarged (all sizes of their tensors by one factor) where the op still takes them, so that the work is cut
into several chunks; those that it does not take run as they are.
"""

import math

import pytest

import rushlight
from gen import table
from tests.ops import harness, more
from tests.ops.harness import Makers, array, function_of, tensors_of

ELEMENTS = 75_000  # of the largest input of an enlarged sample: three chunks of most loops
MOST_BYTES = 8_000_000  # that an enlarged sample may leave
OPS = {more.key_of(op): op for op in table.load()}
SAMPLES = more.samples()
WITHOUT_GRADIENT = {c.key for c in harness.cases() if "backward" in c.skips}


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


def callable_of(op):
    function = function_of(rushlight, op)
    if function is not None:
        return function
    return getattr(getattr(rushlight.ops.aten, op.name), op.overload or "default")


def fresh(value):
    """Copies of all tensors, leaves as before."""
    if isinstance(value, rushlight.Tensor):
        return value.detach().clone(memory_format=rushlight.preserve_format).requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(fresh(v) for v in value)
    return value


def outcome(op, args, kwargs, threads):
    """All that a call leaves: results, gradients of what required them, arguments that it wrote to, other values."""
    rushlight.set_num_threads(threads)
    rushlight.manual_seed(5)
    args, kwargs = fresh(args), {k: fresh(v) for k, v in kwargs.items()}
    result = callable_of(op)(*args, **kwargs)
    outputs = [t for t in tensors_of(result) if t.requires_grad]
    inputs = [t for t in tensors_of([*args, *kwargs.values()]) if t.requires_grad and t.is_leaf]
    found = [*tensors_of(result), *tensors_of([*args, *kwargs.values()])]
    if outputs and inputs and more.key_of(op) not in WITHOUT_GRADIENT:
        ones = [rushlight.ones_like(t) for t in outputs]
        found += [g for g in rushlight.autograd.grad(outputs, inputs, ones, allow_unused=True) if g is not None]
    values = [v for v in (result if isinstance(result, tuple) else (result,)) if isinstance(v, (bool, int, float))]
    return [array(t).tobytes() for t in found], values


def in_place(op):
    return op.inplace_only or any(a.type.written for a in op.args)


def arguments(key, text, dtype, factor):
    grad = not in_place(OPS[key])
    return LargeMakers(rushlight, dtype, key + text, requires_grad=grad, factor=factor).arguments(text)


def bytes_left(key, text, dtype, factor):
    left, _ = outcome(OPS[key], *arguments(key, text, dtype, factor), threads=1)
    return max(1, sum(map(len, left)))


def enlarged(key, text, dtype):
    """(arguments, whether they are large): of the enlarged sample if the op takes it."""
    args, kwargs = arguments(key, text, dtype, 1)
    largest = max(tensors_of([*args, *kwargs.values()]), key=lambda t: t.numel(), default=None)
    if largest is None or not 1 < largest.numel() < ELEMENTS:
        return (args, kwargs), largest is None or largest.numel() >= ELEMENTS
    factor = int((ELEMENTS / largest.numel()) ** (1 / largest.dim()))
    try:
        # Results may grow as a power of the factor (combinations, products of all pairs): as far as MOST_BYTES.
        small = bytes_left(key, text, dtype, 1)
        power = math.log(bytes_left(key, text, dtype, 3) / small, 3)
        factor = min(factor, int((MOST_BYTES / small) ** (1 / max(power, 0.1))))
        if factor > 1:
            bytes_left(key, text, dtype, factor)
            return arguments(key, text, dtype, factor), True
    except (RuntimeError, ValueError, IndexError):
        pass  # sizes that the sample also has as numbers
    return (args, kwargs), False


@pytest.mark.parametrize("key", [k for k in OPS if k in SAMPLES])
def test_bits_do_not_depend_on_threads(key):
    texts, dtypes = SAMPLES[key]
    before = rushlight.get_num_threads()
    try:
        # Two samples, large ones if there are any among the first.
        chosen = [(text, *enlarged(key, text, dtypes[0])) for text in texts[:4]]
        for text, (args, kwargs), _ in sorted(chosen, key=lambda c: not c[2])[:2]:
            expected = outcome(OPS[key], args, kwargs, threads=1)
            for threads in (2, 3, 5, 1):
                assert outcome(OPS[key], args, kwargs, threads) == expected, (text, threads)
    finally:
        rushlight.set_num_threads(before)


def test_every_op_has_samples():
    missing = sorted(set(OPS) - set(SAMPLES) - set(more.WITHOUT))
    assert not missing, f"add samples of these to tests/ops/<family>.py: {missing}"
    assert not [k for k in more.WITHOUT if k in SAMPLES or k not in OPS]
    assert not [k for k in more.SAMPLES if k in OPS and k in {c.key for c in harness.cases() if c.samples}]
