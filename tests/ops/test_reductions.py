"""What must hold of every reduction of the table: of no elements, of one, of parts, along any dimensions, of any layout."""

import math

import pytest

import rushlight
from tests.ops import harness
from tests.ops.harness import DEVICE, function_of, tensors_of

CASES = [case for case in harness.cases().values() if case.op.kernel.kind == "reduction"]
NAMES = [case.key for case in CASES]
CHOOSES = {case.key for case in CASES if case.op.kernel.reduces == "some"}


def dim_of(op):
    return next((a for a in op.args if a.type.meaning == "Dim"), None)


def has(op, name):
    return any(a.name == name for a in op.args)


def along(op, x, dims=None, keepdim=False):
    """The results over dimensions, all where none are given; None where the op does not take these."""
    dim = dim_of(op)
    given = {"keepdim": True} if keepdim and has(op, "keepdim") else {}
    if dims is not None:
        if dim is None or (not dim.type.is_list and len(dims) > 1):
            return None
        given["dim"] = list(dims) if dim.type.is_list else dims[0]
    elif dim is not None and dim.default is None:
        if not dim.type.is_list:
            return None
        given["dim"] = list(range(x.dim()))
    return tensors_of(function_of(rushlight, op)(x, **given))


def numbers(case, dtype, *shape):
    return harness.Makers(rushlight, dtype, case.key).distinct(*shape).to(DEVICE)


def same(found, wanted):
    assert len(found) == len(wanted) > 0
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert rushlight.equal(a, b) or rushlight.allclose(a, b, rtol=0, atol=0, equal_nan=True)


def close(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape
        tolerance = {2: 2e-2, 4: 1e-4, 8: 1e-4}.get(a.element_size(), 1e-6)
        wide = rushlight.complex128 if a.is_complex() else rushlight.float64
        assert rushlight.allclose(
            a.to(wide), b.to(wide), rtol=tolerance, atol=tolerance, equal_nan=True
        )


@pytest.fixture(params=range(len(CASES)), ids=NAMES)
def case(request):
    return CASES[request.param]


def each_dims(op):
    return [
        dims
        for dims in ((0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2))
        if along(op, rushlight.ones(2, 2, 2), dims) is not None
    ]


def test_negative_dimensions_are_counted_from_the_end(case):
    for dtype in case.dtypes:
        x = numbers(case, dtype, 3, 4, 5)
        for dims in each_dims(case.op):
            same(along(case.op, x, [d - 3 for d in dims]), along(case.op, x, dims))


def test_keepdim_keeps_ones(case):
    if not has(case.op, "keepdim"):
        return
    for dtype in case.dtypes:
        x = numbers(case, dtype, 3, 4, 5)
        for dims in each_dims(case.op):
            shape = [1 if d in dims else n for d, n in enumerate(x.shape)]
            plain = along(case.op, x, dims)
            same(along(case.op, x, dims, keepdim=True), [t.reshape(shape) for t in plain])


def test_several_dimensions_are_as_one(case):
    for dtype in case.dtypes:
        x = numbers(case, dtype, 3, 4, 5)
        for dims in each_dims(case.op):
            kept = [d for d in range(3) if d not in dims]
            flat = x.permute(*kept, *dims).reshape(*[x.shape[d] for d in kept], -1)
            close(along(case.op, x, dims), along(case.op, flat, [len(kept)]))
            if len(dims) == 3:
                close(along(case.op, x), along(case.op, x, dims))


def test_layouts_have_equal_values(case):
    for dtype in case.dtypes:
        x = numbers(case, dtype, 6, 7, 9)
        other = [
            x.transpose(0, 2).contiguous().transpose(0, 2),
            rushlight.stack([x, x], -1)[..., 0],
        ]
        for dims in [None, *each_dims(case.op)]:
            wanted = along(case.op, x, dims)
            for y in other if wanted is not None else []:
                assert not y.is_contiguous()
                close(along(case.op, y, dims), wanted)


def test_results_do_not_depend_on_their_place(case):
    """Neither on how many there are: `finish` of a formula may not round otherwise in vectors (`calls`)."""
    if dim_of(case.op) is None:
        return
    for dtype in case.dtypes:
        x = numbers(case, dtype, 37, 150)
        alone = [along(case.op, x[i : i + 1], [1]) for i in range(len(x))]
        same(along(case.op, x, [1]), [rushlight.cat(parts) for parts in zip(*alone, strict=True)])


def test_a_single_number(case):
    for dtype in case.dtypes:
        x = numbers(case, dtype, 1)
        wanted = along(case.op, x) or along(case.op, x, [0])
        found = along(case.op, x[0]) or along(case.op, x[0], [0])
        same(found, [t.reshape(()) for t in wanted])


def test_no_elements(case):
    """A reduction that chooses refuses; any other gives the same for one part of nothing as for many."""
    for dtype in case.dtypes:
        x = numbers(case, dtype, 3, 4)[:, :0]
        if case.key in CHOOSES:
            for dims in (None, [1]):
                with pytest.raises(
                    (IndexError, RuntimeError), match="reduction dim|empty dimension"
                ):
                    if along(case.op, x, dims) is None:
                        raise IndexError("reduction dim: not taken")
        else:
            one, many = along(case.op, x), along(case.op, x, [1])
            same(many, [t.expand(3) for t in one])
        if dim_of(case.op) is not None:  # no results are no error
            assert all(t.numel() == 0 for t in along(case.op, x, [0]))


def test_the_identity_changes_nothing(case):
    """Of the formula: sums of zeros, products of ones, extremes of the extreme, found where tiles end."""
    value = {
        "sum": 0,
        "nansum": 0,
        "prod": 1,
        "any": 0,
        "all": 1,
        "count_nonzero": 0,
        "amax": -math.inf,
        "amin": math.inf,
    }
    if case.key not in value:
        return
    for dtype in [d for d in case.dtypes if math.isfinite(value[case.key]) or "float" in d]:
        for n in (1, 5, 33, 300, 2049, 70_000):
            x = rushlight.full(
                (n,), value[case.key], dtype=getattr(rushlight, dtype), device=DEVICE
            )
            assert along(case.op, x)[0].item() == value[case.key]


def test_parts_are_merged(case):
    """A long row is cut into leaves, chunks and parts for threads: the result is that of its elements in any shape."""
    for dtype in case.dtypes:
        part = numbers(case, dtype, 4, 8)
        x = (
            part.reshape(1, 32).expand(2200, 32).reshape(-1)
        )  # 70400 elements, all of which are among the first 32
        if case.key in CHOOSES:
            wanted = along(case.op, part.reshape(-1)) or along(case.op, part.reshape(-1), [0])
            same(along(case.op, x) or along(case.op, x, [0]), wanted)
        elif dtype == "float64" and case.key != "prod":
            rows = along(case.op, x.reshape(2200, 32).t().contiguous().reshape(-1))
            close(along(case.op, x), rows)


def test_bits_on_any_number_of_threads(case):
    before = rushlight.get_num_threads()
    try:
        for dtype in case.dtypes:
            x = numbers(case, dtype, 5, 8).repeat(41, 50)  # 82000 elements
            for dims in [None, *each_dims(case.op)[:2]]:
                found = []
                for threads in (1, 2, 3, 5):
                    rushlight.set_num_threads(threads)
                    found.append(along(case.op, x, dims))
                for other in found[1:] if found[0] is not None else []:
                    same(other, found[0])
    finally:
        rushlight.set_num_threads(before)


CONVERTING = [
    pytest.param(case, id=case.key)
    for case in harness.cases().values()
    if case.op.kernel.kind in ("reduction", "rows") and has(case.op, "dtype") and not case.writes
]
STORED = ["uint16", "uint32", "uint64", "complex32", "float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("case", CONVERTING)
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_a_dtype_converts_what_is_only_stored(case):
    """`dtype=` is what is computed with, whatever the elements are stored as."""
    function = function_of(rushlight, case.op)
    given = {"dim": 1} if dim_of(case.op) is not None else {}
    for stored in STORED:
        x = rushlight.tensor([[1.0, 2, 0], [2, 1, 1]]).to(getattr(rushlight, stored)).to(DEVICE)
        for dtype in (rushlight.float32, rushlight.float64):
            if case.op.name == "linalg_vector_norm" and stored == "complex32":
                continue  # a norm of complex numbers is none of their real parts
            expected = tensors_of(function(x.to(dtype), **given, dtype=dtype))
            for found, wanted in zip(tensors_of(function(x, **given, dtype=dtype)), expected, strict=True):
                assert found.dtype == wanted.dtype and rushlight.equal(found, wanted), stored
