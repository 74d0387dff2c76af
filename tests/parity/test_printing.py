"""The text of random tensors of every dtype and size under random options, against PyTorch's."""

import math
import random

import pytest

import rushlight

torch = pytest.importorskip("torch")

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def random_shape(rng):
    dims = rng.choice([0, 1, 1, 1, 2, 2, 3, 4])
    large = rng.random() < 0.25
    if large and dims == 1:
        return [rng.choice([999, 1000, 1001, 2000])]
    sizes = [1, 2, 6, 7, 8, 30] if large else [0, 1, 2, 3, 4, 5, 7, 8, 11]
    return [rng.choice(sizes) for _ in range(dims)]


def random_value(rng, dtype, kind):
    """A Python number of the dtype's kind: of one size, of many, whole, or special."""
    if dtype == "bool":
        return rng.random() < 0.5
    if "int" in dtype:
        low = 0 if dtype == "uint8" else -100
        return rng.randint(low, kind["limit"])
    if dtype.startswith("complex"):
        return complex(random_value(rng, "float64", kind), random_value(rng, "float64", kind))
    if rng.random() < kind["special"]:
        return rng.choice([0.0, -0.0, math.inf, -math.inf, math.nan])
    value = rng.gauss(0, 1) * 10 ** rng.uniform(*kind["powers"])
    return float(round(value)) if kind["whole"] else value


def random_tensors(rng):
    """One random tensor, the same in both frameworks."""
    dtype, shape = rng.choice(DTYPES), random_shape(rng)
    kind = {
        "limit": rng.choice([1, 10, 100]),
        "special": rng.choice([0, 0, 0.3]),
        "powers": rng.choice([(0, 0), (0, 3), (-6, 0), (-3, 5), (4, 9)]),
        "whole": rng.random() < 0.3,
    }
    values = [random_value(rng, dtype, kind) for _ in range(math.prod(shape))]
    wide = "complex128" if dtype.startswith("complex") else "float64"
    if dtype == "bool" or "int" in dtype:
        wide = dtype
    gradient = rng.choice(["", "", "", "leaf", "result"])
    made = []
    for m in (torch, rushlight):
        t = m.tensor(values, dtype=getattr(m, wide)).to(getattr(m, dtype)).reshape(shape)
        if gradient and (t.is_floating_point() or t.is_complex()):
            t = t.detach().requires_grad_()
            t = t * 1 if gradient == "result" else t
        made.append(t)
    return made


def random_options(rng):
    if rng.random() < 0.6:
        return {}
    return {
        "precision": rng.choice([None, 0, 1, 2, 6, 10]),
        "threshold": rng.choice([None, 0, 5, 50]),
        "edgeitems": rng.choice([None, 0, 1, 2, 4]),
        "linewidth": rng.choice([None, 10, 40, 120]),
        "sci_mode": rng.choice([None, True, False]),
        "profile": rng.choice([None, None, "short"]),
    }


@pytest.fixture(autouse=True)
def default_options():
    yield
    for m in (torch, rushlight):
        m.set_printoptions(profile="default")


@pytest.mark.parametrize("seed", range(10))
def test_text(seed):
    rng = random.Random(seed)
    for _ in range(100):
        options = random_options(rng)
        for m in (torch, rushlight):
            m.set_printoptions(profile="default")
            m.set_printoptions(**options)
        theirs, ours = random_tensors(rng)
        assert repr(ours).replace("rushlight.", "torch.") == repr(theirs), options
