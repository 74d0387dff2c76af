"""What tests of traces share: programs that are traced, and whether results are the same."""

import io
import warnings

import rushlight as torch
from rushlight import jit


def flat(thing):
    """The tensors in a result."""
    if isinstance(thing, torch.Tensor):
        return [thing]
    items = thing.values() if isinstance(thing, dict) else thing
    return [tensor for item in items for tensor in flat(item)]


def same(one, other):
    """Whether two results have the same bits and containers."""
    assert len(flat(one)) == len(flat(other))
    for a, b in zip(flat(one), flat(other), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)


def traced(f, *inputs, **options):
    """The program, of which nothing was told."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", jit.TracerWarning)
        return jit.trace(f, inputs, **options)


def saved_and_loaded(program):
    """A program from the archive of another."""
    return jit.load(io.BytesIO(program.save_to_buffer()))
