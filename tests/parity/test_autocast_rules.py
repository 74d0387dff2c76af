"""The dtypes of results under autocast on the CPU: what the table's rules give, and what PyTorch has."""

import pytest

import rushlight
from gen import rules as table_rules
from tests.ops import rules
from tests.ops.harness import Makers, bound, count, function_of, name_of, over, tensors_of

torch = pytest.importorskip("torch")


def has_own_rule(case):
    """Whether autocast meets the op itself, not what it is made of, and PyTorch has it."""
    whole = case.op.kind != "composite" or table_rules.autocast(case.op)
    return whole and function_of(torch, case.op) is not None and "float32" in case.dtypes


def dtypes(value):
    return [name_of(t.dtype) for t in tensors_of(value)]


@over(has_own_rule, mode="parity")
@pytest.mark.filterwarnings("ignore")
def test_dtypes_under_autocast(case):
    for dtype in ("float32", "bfloat16"):
        for text in case.samples:
            args, kwargs = Makers(torch, dtype, case.key + text).arguments(text)
            try:
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    expected = dtypes(function_of(torch, case.op)(*args, **kwargs))
            except (RuntimeError, TypeError, ValueError):
                continue
            args, kwargs = Makers(rushlight, dtype, case.key + text).arguments(text)
            values = bound(case.op, args, kwargs)
            given = rules.cast(case.op, values)
            try:
                found = dtypes(rules.call(case.op, given))
            except RuntimeError:
                # It refuses these numbers, whether there is autocast or not.
                assert given is values, text
                continue
            assert found[:1] == expected[:1], f"{dtype}: {text}"
            count()
