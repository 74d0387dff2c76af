"""Samples of ops on lists of tensors, made from the overloads that the table has."""

from gen import table

_LISTS = {
    "tensors": ("[x(3, 4), x(2), x()]", "[x(2, 5).T]"),
    "positive": ("[pos(3, 4), pos(2), pos()]", "[pos(2, 5).T]"),
    "inside": ("[unit(3, 4), unit(2), unit()]", "[unit(2, 5).T]"),
}
# Where functions are defined; all others take any number.
_DOMAINS = dict.fromkeys(("acos", "asin"), "inside") | dict.fromkeys(
    ("log", "log10", "log1p", "log2", "sqrt", "rsqrt", "reciprocal", "lgamma", "pow", "div"), "positive"
)
_NUMBERS = ("[0.5, 2.0, 1.5]", "[0.5]")
# What stands for an argument, beside each of the two lists.
_VALUES = {
    "Tensor[]": _LISTS["positive"],
    "Scalar[]": _NUMBERS,
    "Scalar": ("0.5", "2.0"),
    "Tensor": ("m.tensor(0.5, dtype=dtype)", "m.tensor(2.0, dtype=dtype)"),
    "bool": ("False", "True"),
}


def _samples(op):
    name = op.name.removeprefix("_foreach_").rstrip("_")
    lists = _LISTS[_DOMAINS.get(name, "tensors")]
    calls = []
    for i, first in enumerate(lists):
        wanted = [a.type for a in op.args[1:] if a.default is None]
        given = [_VALUES[t.base + "[]" * t.is_list][i] for t in wanted]
        calls.append(", ".join([first, *given]))
    return calls


_OPS = {op.text.partition("(")[0]: op for op in table.load() if op.family == "foreach"}
_OWN = {
    "_foreach_mm": ["[x(2, 3), x(1, 2)], [x(3, 4), x(2, 2)]"],
    "_foreach_pow.ScalarAndTensor": ["2.0, [x(3, 4), x()]"],
    "_foreach_addcmul.Tensor": ["[x(3), x()], [x(3), x()], [pos(3), pos()], m.tensor([0.5, 2.0], dtype=dtype, device='cpu')"],
}
_OWN["_foreach_addcmul_.Tensor"] = _OWN["_foreach_addcdiv.Tensor"] = _OWN["_foreach_addcdiv_.Tensor"] = _OWN["_foreach_addcmul.Tensor"]
_OWN["_foreach_copy_"] = ["[x(3, 4), x()], [x(4), x()]"]
SAMPLES = {name: _OWN.get(name) or _samples(op) for name, op in _OPS.items()}
ERRORS = {
    "_foreach_exp": [("[]", RuntimeError, "the list must have at least one tensor")],
    "_foreach_add.List": [("[x(2)], [x(2), x(2)]", RuntimeError, "all lists must have as many tensors, but have 1 and 2")],
    "_foreach_mul.ScalarList": [("[x(2)], [1.0, 2.0]", RuntimeError, "the scalar list must have same number of elements")],
    "_foreach_div.Tensor": [("[x(2)], m.ones(2)", RuntimeError, "a number is expected to be 0 dim, but the tensor has shape \\[2\\]")],
}
SKIPS = {("_foreach_norm.Scalar", "complex numbers"): "an order is real"}
SKIPS |= {(f"_foreach_{name}.Tensor", "meta"): "the numbers are looked at" for name in ("addcmul", "addcdiv")}
