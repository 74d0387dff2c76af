"""Every registered schema is PyTorch's: names, overloads, the arguments' order, types and defaults."""

import re

import pytest

torch = pytest.importorskip("torch")

from rushlight import _ops  # noqa: E402

# What differs, and why: patterns over "name.overload". Each must be needed.
DIFFERENT = {
    r".*_backward(_data)?(\..*)?": "backward ops are our own: fused differently, with other saved values",
}
# Overloads of PyTorch's that are not here, of ops that are.
ABSENT = {
    r"_native_batch_norm_legit\.out": "writes arguments and results in one overload",
    r"_ctc_loss(_backward)?\.Tensor(_out)?": "lengths are read before the op: the composite converts tensors of them",
    r"copy_\.(Tensor|int|float)": "TorchScript's own overloads of copy_",
    r"einsum\.sublist": "takes any number of arguments, which schemas here do not",
    r"(eq|ne)\.Tensor_list": "TorchScript's comparison of lists",
    r"index\.list_Tensor": "TorchScript's list.index",
    r"sort\.Tensor": "TorchScript's list.sort",
    r"split": "TorchScript's own overload of split",
    r"to\.prim_\w+": "TorchScript's own overloads of to",
    r"index(_put_?)?\.(Tensor_)?hacked_twin": "TorchScript's twins without None among the indices",
    r"normal\.out": "the out= form of an op that is only reached through normal_",
    r"unsafe_split(_with_sizes)?\.(Tensor_)?out": "out= that is a list",
    r"(split(_with_sizes)?|unbind)_copy\.((Tensor|int)_)?out": "out= that is a list",
    r"segment_reduce\.out": "PyTorch's function takes no out= either",
    r"_foreach_\w+\.(\w+_)?out": "out= that is a list",
    r".*_backward(_data)?\..*": "backward ops are our own",
    r"(sparse_sampled_addmm|hspmm|sspaddmm|sparse_mask)\.out": "sparse results are made, not written into what is given",
    r"_sparse_mm\.reduce": "sums alone",
}


def normal(schema):
    """A schema's text with what is written in several ways written in one."""
    text = schema.removeprefix("aten::").replace("SymInt", "int").replace(" -> *)", ")")
    arguments, _, results = text.rpartition(" -> ")
    # Results here may have names where PyTorch's have none, and one number stands for a list of it.
    results = re.sub(r"(Tensor(?:\(\w!?\))?(?:\[\])?|\w+) \w+", r"\1", results)
    arguments = re.sub(r"=\[(-?\d+)(?:, \1)*\]", r"=\1", arguments)
    return (
        re.sub(r"=(-?[\d.]+(?:e-?\d+)?)", lambda m: f"={float(m[1])!r}", arguments)
        + " -> "
        + results
    )


def native(schema):
    """Whether a schema is that of an op on tensors: not TorchScript's numbers, lists, named dimensions."""
    text = str(schema)
    made = "Tensor" in text.rpartition("->")[2]
    return (
        "Dimname" not in text
        and "Dict(" not in text
        and ("Tensor" in text.partition("->")[0] or made)
    )


def rows(schemas):
    return {(s.name.removeprefix("aten::"), s.overload_name): normal(str(s)) for s in schemas}


THEIRS = rows(
    s for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::") and native(s)
)
OURS = rows(s for s in _ops.all_schemas() if s.name.startswith("aten::"))


def shown(key):
    return ".".join(filter(None, key))


def excused(key, table):
    return any(re.fullmatch(pattern, shown(key)) for pattern in table)


def test_every_schema_is_pytorchs():
    wrong = [
        f"{OURS[key]}\n  PyTorch: {THEIRS.get(key, 'none')}"
        for key in OURS
        if OURS[key] != THEIRS.get(key) and not excused(key, DIFFERENT)
    ]
    assert len(OURS) > 1600
    assert not wrong, "\n".join(wrong)


def test_no_overload_is_absent():
    names = {name for name, _ in OURS}
    absent = [
        THEIRS[k] for k in THEIRS if k[0] in names and k not in OURS and not excused(k, ABSENT)
    ]
    assert not absent, "\n".join(absent)


def test_each_excuse_is_needed():
    assert len(DIFFERENT) + len(ABSENT) <= 40
    for pattern in DIFFERENT:
        assert any(re.fullmatch(pattern, shown(k)) and OURS[k] != THEIRS.get(k) for k in OURS), (
            pattern
        )
    for pattern in ABSENT:
        assert any(re.fullmatch(pattern, shown(k)) and k not in OURS for k in THEIRS), pattern


def test_private_ops_are_not_atens():
    for schema in _ops.all_schemas():
        if schema.name.startswith("rushlight::"):
            name = schema.name.removeprefix("rushlight::")
            assert name not in {n for n, _ in THEIRS}, name
