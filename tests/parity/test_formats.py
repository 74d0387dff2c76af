"""Memory formats: which one a tensor has, and what conversions to one give, strides and aliasing as PyTorch's."""

import pytest

import rushlight

torch = pytest.importorskip("torch")

SHAPES = [
    (2, 3, 4, 5),
    (1, 3, 4, 4),
    (2, 1, 4, 4),
    (2, 3, 1, 1),
    (2, 3, 1, 4),
    (2, 1, 4, 1),
    (1, 1, 1, 1),
    (0, 3, 4, 4),
    (2, 0, 4, 4),
    (2, 3, 4, 5, 2),
    (2, 1, 2, 3, 4),
    (2, 3, 1, 1, 1),
    (3, 4),
]
FORMATS = ["contiguous_format", "channels_last", "channels_last_3d"]


def tensors(m, shape):
    yield m.empty(shape)
    yield m.empty(shape).transpose(0, 1)
    yield m.empty((*shape[:-1], 2 * shape[-1]))[..., ::2]
    if len(shape) > 3:
        yield m.empty(
            shape, memory_format=m.channels_last if len(shape) == 4 else m.channels_last_3d
        )


def facts(m, shape):
    for t in tensors(m, shape):
        yield t.stride(), m.empty_like(t).stride(), t.clone().stride()
        for name in FORMATS:
            format = getattr(m, name)
            yield t.is_contiguous(memory_format=format)
            for call in (t.contiguous, t.to, t.clone):
                try:
                    result = call(memory_format=format)
                except RuntimeError as error:
                    assert "required rank" in str(error)
                    yield name, call.__name__, "refused"
                else:
                    yield name, call.__name__, result.stride(), result is t


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_formats(shape):
    assert list(facts(rushlight, shape)) == list(facts(torch, shape))
