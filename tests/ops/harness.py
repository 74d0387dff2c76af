"""What the table-driven tests share: sample inputs by description, calls in every form, comparisons that are counted.

A sample is the text of a call's arguments, e.g. `"x(3, 4), dim=1"`. It is evaluated with makers of random inputs that
are equal for every module and every run: `x` values of the tested dtype, `pos` positive ones, `unit` between -0.9 and
0.9, `distinct` without ties, `ints` int64 indices below `high`, `mask` booleans. Families list samples by op, with
overload if there is one, in tests/ops/<family>.py (those met mostly inside others in more.py):

    SAMPLES = {"cumsum": ["x(3, 4), 0", "x(), 0"]}
    DTYPES = {"cumsum": "real"}                 # default: floats
    REFERENCES = {"cumsum": "np.cumsum(self, dim, dtype)"}  # over NumPy and SciPy; references.py says with what names
    LOOSER = {"gru.input": 10}                  # times the usual tolerance, where an op rounds again and again
    ERRORS = {"cumsum": [("x(2, 3), 5", IndexError, "Dimension out of range")]}
    NO_GRADIENT = {"argsort"}                   # composites whose results have none; others say so in the table
    SKIPS = {("cumsum", "meta"): "why"}         # strict: counted, and given a reason

An op without samples gets some where its schema says enough: see `_automatic`.
"""

import ast
import contextlib
import functools
import importlib.util
import inspect
import os
import zlib
from dataclasses import dataclass, field

import numpy as np
import pytest

from gen import table
from gen.registry import overloads_of_form
from tests.ops import more

# Where the suite runs; conftest.py skips what the device has no kernel for.
DEVICE = os.environ.get("RUSHLIGHT_TEST_DEVICE", "cpu")

FAMILIES = sorted({op.family for op in table.load()})

DTYPES = {
    "floats": ["float32", "float64"],
    "floating": ["float32", "float64", "float16", "bfloat16"],
    "complex": ["float32", "float64", "complex64", "complex128"],
    "integers": ["int64", "int32", "int16", "int8", "uint8"],
    "real": ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8"],
    "numbers": [
        *("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8"),
        *("complex64", "complex128"),
    ],
    "bool": ["bool"],
    "float64": ["float64"],
    "float32": ["float32"],
    "complexes": ["complex64", "complex128"],
    "differentiable": ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"],
}
DTYPES["all"] = [*DTYPES["numbers"], "bool"]
DTYPES["signed"] = [d for d in DTYPES["real"] if d != "uint8"]
_SETS = {
    "set_Bool": ["bool"],
    "set_integers": DTYPES["integers"],
    "set_floats": DTYPES["floats"],
    "set_reduced": ["float16", "bfloat16"],
    "set_floating": DTYPES["floating"],
    "set_complexes": ["complex64", "complex128"],
    "set_real": DTYPES["real"],
    "set_numbers": DTYPES["numbers"],
    "set_all": DTYPES["all"],
    "set_stored": DTYPES["all"],
    # Dtypes that kernels are not instantiated for: tests/parity/test_dtypes.py.
    "set_ComplexHalf": [],
    "set_wide_unsigned": [],
    "set_float8": [],
    "set_Float8_e5m2": [],
}


# What hides mistakes among ordinary numbers.
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]


class Makers:
    """Makes the inputs of one sample for one module and dtype.

    `special` puts zeros, ones, infinities and NaN among floating-point numbers, `repeated` draws one index again and again.
    """

    def __init__(self, module, dtype, key, requires_grad=False, layout="contiguous", special=False, repeated=False):
        self.module, self.dtype, self.layout, self.special, self.repeated = module, dtype, layout, special, repeated
        self.device = DEVICE if module.__name__ == "rushlight" else "cpu"
        self.requires_grad = requires_grad
        self.rng = np.random.default_rng(zlib.crc32(key.encode()))
        self.inputs = []  # differentiable ones, in order

    def _tensor(self, array, dtype):
        source = np.ascontiguousarray(array)
        t = self.module.from_numpy(source.copy() if source.ndim else source.reshape(1).copy()).reshape(array.shape)
        t = t.to(getattr(self.module, dtype)).to(self.device)
        if self.layout == "strided" and t.dim() > 0:  # every second element of a longer tensor
            wide = self.module.zeros([*t.shape[:-1], 2 * t.shape[-1]], dtype=t.dtype, device=t.device)
            wide[..., ::2] = t
            t = wide[..., ::2]
        if self.layout == "transposed" and t.dim() > 1:
            t = t.transpose(0, 1).contiguous().transpose(0, 1)
        if self.layout == "channels_last" and t.dim() in (4, 5):
            t = t.to(memory_format=self.module.channels_last if t.dim() == 4 else self.module.channels_last_3d)
        if self.layout == "bytes" and dtype == "bool":  # true is any byte but 0, as memory of other dtypes has it
            t = (t.view(self.module.uint8) * 190).view(self.module.bool)
        if self.requires_grad and dtype in ("float32", "float64", "complex64", "complex128"):
            t = t.detach().requires_grad_()
            self.inputs.append(t)
        return t

    @contextlib.contextmanager
    def _no_grad(self):
        before, self.requires_grad = self.requires_grad, False
        yield
        self.requires_grad = before

    def _draw(self, shape, low, high):
        if "complex" in self.dtype:
            return self.rng.uniform(low, high, shape) + 1j * self.rng.uniform(low, high, shape)
        if self.dtype == "bool":
            return self.rng.random(shape) < 0.5
        if "int" in self.dtype:
            low = max(int(np.floor(low)), 0) if self.dtype == "uint8" else int(np.floor(low))
            return self.rng.integers(low, max(int(np.ceil(high)), low + 1), shape, endpoint=True)
        found = self.rng.uniform(low, high, shape)
        return np.where(self.rng.random(shape) < 0.6, self.rng.choice(SPECIAL, shape), found) if self.special else found

    def x(self, *shape, low=-2.0, high=2.0):
        return self._tensor(np.asarray(self._draw(shape, low, high)), self.dtype)

    def pos(self, *shape):
        return self.x(*shape, low=0.2 if "int" not in self.dtype else 1, high=3.0)

    def const(self, *shape):
        """Positive numbers that no gradient is asked of (weights of classes)."""
        with self._no_grad():
            return self.pos(*shape)

    def weights(self, *shape):
        """Positive real numbers of the tested precision, that no gradient is asked of."""
        real = {"complex64": "float32", "complex128": "float64"}.get(self.dtype, self.dtype)
        with self._no_grad():
            return self._tensor(self.rng.uniform(0.2, 3.0, shape), real)

    def unit(self, *shape):
        return self.x(*shape, low=-0.9, high=0.9)

    def distinct(self, *shape):
        n = int(np.prod(shape))
        values = self.rng.permutation(n).reshape(shape)
        if self.dtype == "bool":
            return self.x(*shape)
        return self._tensor(values - (0 if self.dtype == "uint8" else n // 2), self.dtype)

    def regular(self, *shape, seen_as=None):
        """Square matrices far from singular, perhaps in another shape."""
        n = shape[-1]
        made = np.asarray(self._draw(shape, -1, 1)) + 2 * n * np.eye(n)
        return self._tensor(made.reshape(seen_as or shape), self.dtype)

    def spd(self, *shape):
        """Hermitian positive-definite matrices."""
        a = np.asarray(self._draw(shape, -1, 1))
        return self._tensor(a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(shape[-1]), self.dtype)

    def ints(self, *shape, high, low=0):
        high = low + 1 if self.repeated else high
        return self._tensor(np.asarray(self.rng.integers(low, high, shape)), "int64")

    def mask(self, *shape):
        return self._tensor(np.asarray(self.rng.random(shape) < 0.5), "bool")

    def same(self, *values, dtype=None):
        """A 1-d tensor of exactly these values."""
        return self._tensor(np.asarray(values), dtype or self.dtype)

    def arguments(self, text):
        names = {n: getattr(self, n) for n in ("x", "pos", "const", "unit", "distinct", "ints", "mask", "same", "regular", "spd", "weights")}
        names |= {"m": self.module, "dtype": getattr(self.module, self.dtype), "inf": float("inf"), "nan": float("nan")}
        return eval(f"(lambda *a, **k: (list(a), k))({text})", names)


@dataclass
class Case:
    """One op with what its family says of it."""

    op: table.Op
    base: table.Op | None = None  # of an in-place name without its own samples: the function that it follows
    samples: list = field(default_factory=list)
    dtypes: list = field(default_factory=list)
    reference: str | None = None
    looser: float = 1.0
    errors: list = field(default_factory=list)
    gradient: bool = True
    skips: dict = field(default_factory=dict)

    @property
    def key(self):
        return key_of(self.op)

    @property
    def refuses(self):
        """Whether all that the op says of its derivative is that it has none."""
        grad = self.op.grad
        return isinstance(grad, dict) and all(text.startswith("no_derivative(") for text in grad.values())

    @property
    def writes(self):
        """Whether a call changes its arguments."""
        return self.op.inplace_only or any(a.type.written for a in self.op.args)


def key_of(op):
    return f"{op.name}.{op.overload}" if op.overload else op.name


def boxed_of(module, op, form=None):
    """A call of an op in boxed form: of the widest of its overloads that takes the arguments."""
    packet = getattr(module.ops.rushlight if op.own else module.ops.aten, op.name)
    form = form or ("inplace" if op.inplace_only else "functional")
    found = sorted(overloads_of_form(op, form), key=lambda o: -len(o.args))
    names = [o.overload or "default" for o in found]

    def call(*args, **kwargs):
        for overload in map(packet.__getattr__, names[:-1]):
            try:
                overload._values(args, kwargs)
            except RuntimeError:  # they do not fit
                continue
            with contextlib.suppress(TypeError):
                return overload(*args, **kwargs)
        return getattr(packet, names[-1])(*args, **kwargs)

    return call


def function_of(module, op):
    """The Python callable of an op, with the op's own order of arguments; for PyTorch the public one of that name."""
    own, ours = module._C, module.__name__ == "rushlight"
    if "varargs" in op.python and not ours and op.args[0].type.base == "Tensor":  # PyTorch's take no list
        function = getattr(module, op.name, None)
        return function and (lambda tensors, **kwargs: function(*tensors, **kwargs))
    if op.functional_name:
        return getattr(module.nn.functional, op.functional_name)
    first = (own.ops, own._nn) if ours else (own._nn,) if "nn" in op.python else ()
    if ours and "wrapped" in op.python and not says_the_same(getattr(module, op.name), op):
        first = (own._wrapped,)
    for place in (*first, module, module.nn.functional):
        if "function" in op.variants and hasattr(place, op.name):
            return getattr(place, op.name)
    for name in ("linalg", "fft", "special"):
        if op.name.startswith(name + "_") and hasattr(getattr(module, name), op.name.removeprefix(name + "_")):
            return getattr(getattr(module, name), op.name.removeprefix(name + "_"))
    if "method" in op.variants and (hasattr(module.Tensor, op.name) or ours):
        return lambda *args, **kwargs: getattr(args[0], op.name)(*args[1:], **kwargs)
    return boxed_of(module, op) if ours else None


def says_the_same(function, op):
    """Whether a function of the package that stands before an op takes what the op does, under its names."""
    names = inspect.signature(function.__wrapped__).parameters
    return all(a.name in names or a.name == "self" for a in op.args if a.default is None)


def default_of(arg):
    """The value of an argument that is not given."""
    try:
        return ast.literal_eval(arg.default or "None")
    except ValueError:  # the name of a memory format
        return arg.default


def bound(op, args, kwargs):
    """The arguments of a call by their names in the schema."""
    names = [a.name for a in op.args]
    given = dict(zip(names, args, strict=False)) | kwargs
    return {a.name: default_of(a) for a in op.args} | {"dtype": None} | given


def _automatic(op):
    """Samples of a pointwise op, and of a composite of tensors alone, that their families do not list."""
    inputs = [a for a in op.args if a.type.base == "Tensor"]
    pointwise = op.kernel.kind == "pointwise"
    if op.kind == "composite":
        inputs = [a for a in inputs if not a.type.optional and not a.type.is_list]
    elif not pointwise:
        return []
    if not 0 < len(inputs) <= 3 or any(a.default is None for a in op.args if a not in inputs):
        return []
    shapes = [["x(3, 4)"] * len(inputs), ["x()"] * len(inputs), ["x(0, 2)"] * len(inputs), ["x(37)"] * len(inputs)]
    if len(inputs) > 1 and pointwise:
        shapes += [["x(3, 4)", *["x(4)"] * (len(inputs) - 1)], ["x(3, 1)", *["x(1, 4)"] * (len(inputs) - 1)]]
        shapes += [["x(3)", *["2"] * (len(inputs) - 1)]] if all(a.type.number for a in inputs[1:]) else []
    return [", ".join(s) for s in shapes]


def _said(family):
    """What the file of a family says, more.py behind it."""
    name = f"tests.ops.{family}"
    own = importlib.import_module(name) if importlib.util.find_spec(name) else None
    said = {n: getattr(own, n, {}) for n in ("SAMPLES", "DTYPES", "REFERENCES", "LOOSER", "ERRORS", "NO_GRADIENT", "SKIPS")}
    for n in ("SAMPLES", "DTYPES"):
        said[n] = getattr(more, n) | said[n]
    return said


def _case(op, said, found):
    key = key_of(op)
    case = Case(op, samples=said["SAMPLES"].get(key) or _automatic(op))
    named = said["DTYPES"].get(key)
    if named:
        case.dtypes = DTYPES[named]
    elif op.kernel.kind == "pointwise":
        case.dtypes = [d for s in op.kernel.dtypes for d in _SETS[s]]
    else:
        case.dtypes = DTYPES["floats"]
    base = found.get(key.replace("_.", ".", 1) if op.overload else key[:-1]) if op.inplace_only else None
    if base and key not in said["SAMPLES"]:  # `foo_` takes what `foo` has
        case.base, case.samples, case.dtypes = base.op, base.samples, base.dtypes
    case.reference = said["REFERENCES"].get(key, op.ref)
    case.looser = said["LOOSER"].get(key, 1.0)
    case.errors = said["ERRORS"].get(key, [])
    case.gradient = key not in said["NO_GRADIENT"]
    case.skips = {mode: why for (k, mode), why in said["SKIPS"].items() if k == key}
    return case


def without():
    """Ops without samples: key → the reason."""
    sparse = "samples make no sparse tensors: tests/python/test_sparse.py, tests/parity/test_sparse.py"
    return more.WITHOUT | {key_of(op): sparse for op in table.load() if op.family == "sparse"}


@functools.cache
def cases():
    """Every op of the table, by its key, in-place names behind the ops that they follow."""
    found = {}
    said = {family: _said(family) for family in FAMILIES}
    for op in sorted(table.load(), key=lambda op: op.inplace_only):
        if key_of(op) not in without():
            found[key_of(op)] = _case(op, said[op.family], found)
    return found


def repeatable():
    """The cases whose results are the same at each call."""
    return [case for case in cases().values() if case.op.family != "random"]


MODES = set()  # which an op may be excused from


def over(*conditions, mode=None, among=lambda case: not case.writes):
    """Runs a test over the ops for which all conditions hold, and fails it for those of which it compares nothing."""
    MODES.add(mode)
    chosen = [
        pytest.param(c, id=c.key, marks=[pytest.mark.skip(reason=c.skips[mode])] if mode in c.skips else [])
        for c in repeatable()
        if all(holds(c) for holds in (among, *conditions))
    ]

    def decorate(test):
        @pytest.mark.parametrize("case", chosen)
        @functools.wraps(test)
        def counted(case):
            before = compared
            test(case)
            assert compared > before, "no sample lets this compare anything"

        return counted

    return decorate


def accepts(module, case, dtype):
    """Whether the first sample runs with this dtype; a refusal is one of PyTorch's exceptions."""
    try:
        args, kwargs = Makers(module, dtype, case.key).arguments(case.samples[0])
        function_of(module, case.op)(*args, **kwargs)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return False
    return True


def tensors_of(value):
    """All tensors in a result, in order."""
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in tensors_of(v)]
    return [value] if hasattr(value, "dtype") and hasattr(value, "numpy") else []


def array(t):
    """A tensor's values as numpy, 16-bit floats widened."""
    t = t.detach().resolve_conj().cpu()
    return (t.float() if name_of(t.dtype) in ("float16", "bfloat16") else t).numpy()


def name_of(dtype):
    return str(dtype).split(".")[-1]


# ---- comparing ----

# A part of the largest magnitude that is compared: a few roundings of the dtype.
TOLERANCE = {"float64": 1e-10, "complex128": 1e-10, "float32": 1e-5, "complex64": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}

compared = 0  # how many elements, since the program began


def count(n=1):
    """Adds to what has been compared; a test of an op that adds nothing fails."""
    global compared
    compared += n


def assert_close(actual, expected, tolerance=0.0):
    """Two arrays agree: in shape, and up to a part of the magnitude of what is expected (in all bits when it is 0)."""
    assert actual.shape == expected.shape
    count(actual.size)
    if not tolerance:
        np.testing.assert_array_equal(actual, expected)
        return
    finite = np.abs(expected[np.isfinite(expected)])
    scale = finite.max() if finite.size else 0.0
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)


def assert_same(actual, expected, tolerance=0.0):
    """Two results agree in structure, shape, dtype and values (bit for bit when tolerance is 0)."""
    a, b = tensors_of(actual), tensors_of(expected)
    assert len(a) == len(b)
    for s, t in zip(a, b, strict=True):
        assert tuple(s.shape) == tuple(t.shape)
        assert name_of(s.dtype) == name_of(t.dtype)
        assert_close(array(s), array(t), tolerance)
    if isinstance(expected, (bool, int, float)):
        assert actual == expected
        count()
