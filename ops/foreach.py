"""An op on every tensor of lists: results are a list, or the first list is changed.

All are composites, in src/ops/foreach.cpp: the op once for each place of the lists.
"""

from gen.table import composite

_UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor",
    "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)
# Overload → what it takes behind the first list; where a list of numbers could be one of tensors,
# that of tensors comes first.
_ALPHA = {"List": "Tensor[] other, *, Scalar alpha=1", "ScalarList": "Scalar[] scalars",
          "Scalar": "Scalar scalar"}
_PLAIN = _ALPHA | {"List": "Tensor[] other"}
_FUSED = {"Tensor": "Tensor[] tensor1, Tensor[] tensor2, Tensor scalars",
          "ScalarList": "Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars",
          "Scalar": "Tensor[] tensor1, Tensor[] tensor2, Scalar value=1"}
_BINARY = {
    "add": {"List": _ALPHA["List"], "Tensor": "Tensor other, *, Scalar alpha=1", **_ALPHA},
    "sub": _ALPHA,
    "mul": {"List": _PLAIN["List"], "Tensor": "Tensor other", **_PLAIN},
    "div": {"List": _PLAIN["List"], "Tensor": "Tensor other", **_PLAIN},
    "maximum": _PLAIN,
    "minimum": _PLAIN,
    "clamp_max": _PLAIN,
    "clamp_min": _PLAIN,
    "pow": {"List": "Tensor[] exponent", "ScalarList": "Scalar[] exponent",
            "Scalar": "Scalar exponent"},
    "lerp": {"List": "Tensor[] tensors1, Tensor[] weights",
             "ScalarList": "Tensor[] tensors1, Scalar[] weight",
             "Scalar": "Tensor[] tensors1, Scalar weight"},
    "addcmul": _FUSED,
    "addcdiv": _FUSED,
}


def _each(name, arguments="", overload=""):
    """The functional and the in-place form."""
    shown = f"_foreach_{name}"
    more = f", {arguments}" if arguments else ""
    composite(f"{shown}{overload}(Tensor[] self{more}) -> Tensor[]", variants="function",
              doc=f"`{name}` of each tensor of a list.")
    composite(f"{shown}_{overload}(Tensor(a!)[] self{more}) -> ()", variants="function",
              doc=f"`{name}_` of each tensor of a list.")


for _name in _UNARY:
    _each(_name)
for _name, _overloads in _BINARY.items():
    for _overload, _arguments in _overloads.items():
        _each(_name, _arguments, f".{_overload}")
composite("_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]",
          variants="function", doc="A number to the power of each tensor of a list.")
composite("_foreach_zero_(Tensor(a!)[] self) -> ()", variants="function",
          doc="Fills each tensor of a list with 0.")
composite("_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()",
          variants="function", doc="Copies each tensor of a list into that of another.")
composite("_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]",
          variants="function", doc="Copies of the tensors of a list.")
composite("_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]", variants="function",
          doc="The products of the matrices of two lists.")
composite("_foreach_max(Tensor[] self) -> Tensor[]", variants="function",
          doc="The largest element of each tensor of a list.")
composite("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
          variants="function", doc="`linalg.vector_norm` of each tensor of a list.")
composite("_foreach_powsum.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
          variants="function", doc="The sum of |x|^ord over each tensor of a list.")
