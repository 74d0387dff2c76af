"""Writes into tensors whose elements share a place: refused, warned of or done, as in PyTorch."""

import warnings

import pytest

import rushlight
from tests.ops.harness import Makers, cases

torch = pytest.importorskip("torch")

CASES = cases()
NAMES = sorted({case.op.inplace_name for case in CASES.values() if "inplace" in case.op.variants})
# PyTorch writes these all the same; which of several values stays is chance there.
REFUSED_HERE = {
    "addmv_",
    "baddbmm_",
    "conj_physical_",
    "index_fill_",
    "masked_fill_",
    "threshold_",
    "tril_",
    "triu_",
}


def outcome(lib, case, key, text):
    """What becomes of one call; None where it is not about an expanded tensor."""
    args, kwargs = Makers(lib, case.dtypes[0], key + text).arguments(text)
    x = args[0] if args else None
    if not isinstance(x, lib.Tensor) or x.dim() == 0 or x.shape[-1] < 2 or x.numel() == 0:
        return None
    places = (lib.Tensor, lib.nn.functional, lib)
    function = next(
        (f for place in places if (f := getattr(place, case.op.inplace_name, None))), None
    )
    if function is None:
        return None
    args[0] = x[..., :1].clone().expand(x.shape)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            function(*args, **kwargs)
        except Exception as error:
            return "refused" if "single memory location" in str(error) else None
    return "warned" if any("expanded" in str(w.message) for w in caught) else "done"


@pytest.mark.parametrize("name", NAMES)
def test_in_place(name):
    for key, case in CASES.items():
        if case.op.inplace_name != name or "inplace" not in case.op.variants:
            continue
        for text in case.samples:
            theirs = outcome(torch, case, key, text)
            ours = outcome(rushlight, case, key, text)
            if None not in (theirs, ours) and not (name in REFUSED_HERE and ours == "refused"):
                assert ours == theirs, text


SETS = [
    "t[:2] = 5.0",
    "t[:1] = 5.0",
    "t[0] = 5.0",
    "t[...] = 5.0",
    "t[None] = 5.0",
    "t[::2] = 5.0",
    "t[:2] = m.tensor(1.0)",
    "t[:2] = m.tensor([1.0])",
    "t[:2] = m.tensor([1.0, 2.0])",
    "t[m.tensor([True, False, True, False])] = 5.0",
    "t[m.tensor([0, 2])] = m.tensor([1.0, 2.0])",
    "t[[0, 2]] = 5.0",
    "rows[:, 0] = 5.0",
    "rows[:, 0] = m.tensor([1.0, 2.0, 3.0])",
    "rows[0] = 5.0",
    "rows[0, 1:2] = 5.0",
    "rows[m.tensor([True, False, True])] = 5.0",
    "t.fill_(2.0)",
    "t.zero_()",
    "t[:2].fill_(2.0)",
    "t.copy_(m.ones(4))",
    "t += 1",
    "m.nn.init.normal_(t)",
    "m.nn.init.constant_(t, 2.0)",
    "m._foreach_add_([t], 1.0)",
    "m._foreach_zero_([t])",
    "m.nn.functional.dropout(t, 0.5, True, True)",
    "m.add(t.clone(), 1, out=t)",
]


@pytest.mark.parametrize("line", SETS)
def test_items_and_functions(line):
    def run(m):
        t, rows = m.zeros(1).expand(4), m.zeros(3, 1).expand(3, 4)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                exec(line, {"m": m, "t": t, "rows": rows})
                what = "warned" if any("expanded" in str(w.message) for w in caught) else "done"
            except RuntimeError as error:
                assert "more than one element of the written-to tensor" in str(error)
                what = "refused"
        return what, t.tolist(), rows.tolist()

    assert run(rushlight) == run(torch)
