"""`testing.assert_allclose` has the tolerances that PyTorch's has."""

import re

import pytest

import rushlight

torch = pytest.importorskip("torch")

DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int32", "bool"]


def allowed(module, *dtypes):
    """The tolerances that the message names; none where equal values are wanted."""
    values = [module.zeros(1), module.ones(1)]
    with pytest.raises(AssertionError) as refusal:
        module.testing.assert_allclose(
            *(v.to(getattr(module, dtype)) for v, dtype in zip(values, dtypes, strict=True))
        )
    return re.findall(r"up to (\S+) allowed", str(refusal.value))


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("dtype", DTYPES)
def test_default_tolerances(dtype):
    assert allowed(rushlight, dtype, dtype) == allowed(torch, dtype, dtype)
    assert allowed(rushlight, dtype, "float16") == allowed(torch, dtype, "float16")
