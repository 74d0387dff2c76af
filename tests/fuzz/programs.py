"""Makes the fuzzer's programs: a few tensors and views, then calls of ops of the table, one Python line each.

Half of the calls are samples of tests/ops with some arguments replaced, the others come from the schema alone: so an
op is covered as soon as it stands in the table. A program is a function of its seed. What is no op of the table
(indexing, storages, numpy) has a line in OTHERS, with schema types in braces.
"""

import ast
import keyword
import random
import re

from gen import schema, table
from gen.registry import overloads_of_form
from tests.ops import harness

ALL_DTYPES = harness.DTYPES["all"]
VARIABLES = ("a", "b", "c", "d")
SKIPPED = {"get_num_threads", "set_num_threads"}

# Beside the ops; `{var}` is the name of a variable.
OTHERS = [
    "read({Tensor}[{index}])",
    "{var}.__setitem__({index}, {value})",
    "{var}.__delitem__({index})",
    "{var}.untyped_storage().resize_({int})",
    "{var}.untyped_storage()[{int}]",
    "{var}.set_({var}.untyped_storage(), {int}, {int[]}, {int[]})",
    "{var}.set_({var})",
    "{var}.set_()",
    "setattr({var}, 'data', {Tensor})",
    "setattr({var}, 'grad', {Tensor})",
    "setattr({var}, 'requires_grad', {bool})",
    "{var}.requires_grad_({bool})",
    "read(torch.tensor({any}))",
    "read(torch.tensor({any}, dtype={ScalarType}))",
    "read(torch.as_tensor({any}, dtype={ScalarType}, device={Device}))",
    "read(torch.Tensor({any}))",
    "read(torch.frombuffer(bytearray(range(24)), dtype={ScalarType}, count={int}, offset={int}))",
    "read(torch.from_numpy({Tensor}.numpy()))",
    "{Tensor}.tolist()",
    "{Tensor}.item()",
    "repr({Tensor})",
    "format({Tensor}, '.3f')",
    "bool({Tensor})",
    "int({Tensor})",
    "float({Tensor})",
    "complex({Tensor})",
    "len({Tensor})",
    "list({Tensor})",
    "{value} in {Tensor}",
    "range(9)[{Tensor}]",
    "divmod({Tensor}, {value})",
    "read({Tensor} {operator} {value})",
    "read({value} {operator} {Tensor})",
    "read(torch.autograd.grad({Tensor}, {Tensor}, {Tensor}, allow_unused=True))",
    "{Tensor}.backward({Tensor})",
    "torch.save({Tensor}, __import__('io').BytesIO())",
    "__import__('pickle').loads(__import__('pickle').dumps({Tensor}))",
    "__import__('copy').deepcopy({Tensor})",
    "hash({Tensor})",
    "read({Tensor}.to({any}))",
    "read({Tensor}.type({any}))",
    "read({Tensor}.new_tensor({any}))",
    "{Tensor}.stride({int})",
    "{Tensor}.size({int})",
]

# fmt: off
SIZES = [0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 16, 17, 33]
INTS = [0, 1, 1, 2, 2, 3, 4, 5, 7, -1, -1, -2, -3]
ROUNDS = {"niter"}  # an op works as long as it is told to
EDGE_INTS = [
    *(63, 64, 65, 255, 256, -256, 10**6, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**40),
    *(2**53 + 1, 2**61, 2**62, 2**63 - 1, -(2**63), -(2**62), 2**63, 2**64, -(2**70)),
]
FLOATS = ["0.0", "-0.0", "1.0", "0.5", "0.5", "2.0", "1e-3", "-1.0", "1e-45", "1e300", "-1e300", "inf", "-inf", "nan"]
WILD = [
    *("None", "True", "'mean'", "''", "object()", "[]", "()", "set()", "Ellipsis", "slice(1, 3)", "(lambda: 0)", "1.5", "1j"),
    *("[None]", "[1, 'a']", "b'ab'", "'\\0'", "str().zfill(10000)", "torch.float32", "torch.Tensor", "[[1, 2], [3]]"),
    *("[[[]]]", "torch.Generator()", "torch.device('meta')", "range(3)", "(2**70)", "(-(2**70))"),
    *("iter([1, 2])", "type", "NotImplemented", "[torch.zeros(2), None]", "(1, (2, 3))", "torch.Size([2, 3])"),
    *("torch.tensor(3)", "torch.tensor([1, 2])", "torch.tensor(True)", "torch.tensor(1.5)", "torch.tensor([[1.0]])"),
]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>", "<", "==", "!=", ">="]
DEVICES = ["'cpu'", "'meta'", "'cuda'", "'cpu:3'", "'cuda:99'", "'nonsense'", "torch.device('cpu')", "-1", "0"]
FORMATS = ["torch.contiguous_format", "torch.preserve_format", "torch.channels_last", "torch.channels_last_3d", "None"]
FILLS = ["rand", "rand", "rand", "nan", "big", "zero", "index"]
# fmt: on


def _smaller(text):
    """A sample without large numbers: equal ones stay equal, so that most sizes still fit each other."""
    return re.sub(
        r"(?<![\w.])\d{2,}(?![\w.])",
        lambda m: m[0] if int(m[0]) < 40 else str(3 + int(m[0]) % 19),
        text,
    )


class _Entry:
    """An op, its samples taken apart, and the strings that its samples name."""

    def __init__(self, op, samples, dtypes):
        self.op, self.dtypes = op, dtypes
        self.samples, self.strings = [], ["mean", "sum", "none", "", "nonsense", "reflect", "same"]
        for text in samples:
            call = ast.parse(f"f({_smaller(text)})", mode="eval").body
            parts = [(None, ast.unparse(a)) for a in call.args]
            self.samples.append(parts + [(k.arg, ast.unparse(k.value)) for k in call.keywords])
            for node in ast.walk(call):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    self.strings.append(node.value)
        self.forms = [f for f in ("function", "method", "inplace", "out") if f in op.variants] + [
            "boxed"
        ]
        if op.inplace_only:
            self.forms = ["inplace", "boxed"]


def entries():
    """What is fuzzed: every op of the table, with its samples."""
    cases = harness.cases()
    found = []
    for op in table.load():
        case = cases.get(harness.key_of(op))  # none of ops whose values are what the memory held
        if op.name not in SKIPPED:
            samples, dtypes = (case.samples, case.dtypes) if case else ([], ALL_DTYPES)
            found.append(_Entry(op, samples, dtypes))
    return found


class Maker:
    """Makes one program."""

    def __init__(self, seed, index, table_entries):
        self.rng = random.Random(f"{seed}:{index}")
        self.entries = table_entries
        self.shape = self.new_shape()
        self.entry = None

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, values):
        return values[int(self.rng.random() * len(values))]

    # ---- values by schema type ----

    def new_shape(self):
        ndim = (
            self.pick([0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6])
            if not self.chance(0.01)
            else self.pick([9, 25, 63, 64])
        )
        if ndim > 6:
            return tuple(self.pick([1, 1, 1, 1, 2]) if d < 8 else 1 for d in range(ndim))
        limit, shape = 3000, []
        for _ in range(ndim):
            size = self.pick(SIZES)
            shape.append(size if size <= limit else 1)
            limit //= max(shape[-1], 1)
        return tuple(shape)

    def related_shape(self):
        """The program's shape, what broadcasts with it, or another one."""
        shape, r = self.shape, self.rng.random()
        if r < 0.35 or not shape:
            return shape
        d = self.rng.randrange(len(shape))
        if r < 0.5:
            return shape[:d] + (1,) + shape[d + 1 :]
        if r < 0.6:
            return shape[d:]
        if r < 0.7:
            return shape[:d] + shape[d + 1 :]
        if r < 0.8:
            return shape[::-1]
        return self.new_shape()

    def dtype_name(self):
        return (
            self.pick(ALL_DTYPES)
            if self.chance(0.4)
            else self.pick(["float32", "float64", "int64", "bool"])
        )

    def tensor(self):
        if self.chance(0.35):
            return self.variable_view()
        shape = self.related_shape()
        dtype = "dtype" if self.chance(0.6) else f"torch.{self.dtype_name()}"
        r = self.rng.random()
        if r < 0.03:
            sizes = [
                self.pick([0, 1, 3, 2**20, 2**31, 2**40]) for _ in range(self.rng.randrange(4))
            ]
            return f"torch.empty({sizes}, dtype={dtype}, device='meta')"
        if r < 0.05:
            return f"torch.empty({list(shape)}, dtype={dtype}, device='meta')"
        if r < 0.08:
            return self.pick(
                ["torch.tensor(2)", "torch.tensor(1.5)", "torch.tensor([])", "torch.tensor([0, 1])"]
            )
        fill = self.pick(FILLS)
        return self.layout(f"filled({shape}, {dtype}, '{fill}')", shape)

    def layout(self, text, shape):
        """Mostly as it is; else a view of it."""
        r = self.rng.random()
        ndim = len(shape)
        if r < 0.6:
            return text
        if r < 0.68 and ndim >= 2:
            return f"{text}.transpose({self.rng.randrange(ndim)}, {self.rng.randrange(ndim)})"
        if r < 0.76 and ndim >= 1:
            start, step = self.rng.randrange(3), self.pick([1, 2, 3])
            return f"{text}.repeat({[1] * (ndim - 1) + [2]})[..., {start}::{step}]"
        if r < 0.82:
            return f"{text}[..., None].expand({[*shape, self.pick([0, 1, 2, 3])]})"
        if r < 0.86 and ndim == 4:
            return f"{text}.to(memory_format=torch.channels_last)"
        if r < 0.9:
            return f"{text}.as_strided({self.int_list()}, {self.int_list()}, {self.integer()})"
        if r < 0.93:
            return f"{text}.detach()"
        if r < 0.96:
            return (
                f"{text}.view({self.pick(['-1', 'dtype', 'torch.uint8', 'torch.int64', '1, -1'])})"
            )
        return f"{text}.to('meta')"

    def variable_view(self):
        """A variable, or a view of it: what overlaps with others."""
        name = self.pick(VARIABLES)
        r = self.rng.random()
        if r < 0.55:
            return name
        if r < 0.85:
            return name + self.pick(
                [
                    "[1:]",
                    "[:-1]",
                    "[:0]",
                    "[0]",
                    "[..., 1:]",
                    "[..., :-1]",
                    "[..., ::2]",
                    "[None]",
                    "[-1:]",
                    ".view(-1)",
                ]
            )
        if r < 0.95:
            return name + self.pick(
                [".t()", ".mT", ".T", ".detach()", ".squeeze()", ".flatten()", ".conj()", ".real"]
            )
        return f"{name}.as_strided({self.int_list()}, {self.int_list()}, {self.integer()})"

    def integer(self, name=""):
        if self.chance(0.02):
            return self.pick(WILD)
        if self.chance(0.06) and name not in ROUNDS:
            return f"({self.pick(EDGE_INTS)})"
        if "dim" in name or "axis" in name:
            n = max(len(self.shape), 1)
            return str(
                self.rng.randrange(
                    -n - (1 if self.chance(0.1) else 0), n + (1 if self.chance(0.1) else 0)
                )
            )
        return str(self.pick(INTS))

    def int_list(self, name="", size=None):
        r = self.rng.random()
        if r < 0.2:
            return str(list(self.related_shape()))
        if r < 0.25:
            return self.integer(name)
        n = size if size and self.chance(0.8) else self.pick([0, 1, 1, 2, 2, 3, 3, 4, 5, 6])
        if self.chance(0.005):
            n = self.pick([64, 65, 200])
        return f"[{', '.join(self.integer(name) for _ in range(n))}]"

    def index(self):
        one = [
            *(
                "0",
                "-1",
                "1",
                "None",
                "...",
                "slice(None)",
                "slice(1, None)",
                "slice(None, None, 2)",
                "slice(0)",
            ),
            *(
                "slice(None, None, -1)",
                "slice(5, 2)",
                "slice(-(2**63), 2**62)",
                "True",
                "False",
                "2**62",
                "1.5",
                "'a'",
            ),
        ]
        parts = []
        for _ in range(self.pick([1, 1, 2, 2, 3, 4])):
            r = self.rng.random()
            if r < 0.7:
                text = self.pick(one)
            elif r < 0.85:
                text = f"torch.tensor({[self.pick([0, 0, 1, -1, 2]) for _ in range(self.rng.randrange(4))]})"
            elif r < 0.95:
                text = self.pick(
                    ["[0, 1]", "[[0], [1]]", "[True, False]", "[]", "range(2)", "a > 0", "mask(3)"]
                )
            else:
                text = self.tensor()
            parts.append(text)
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def scalar(self):
        r = self.rng.random()
        if r < 0.4:
            return f"({self.pick(INTS)})"
        if r < 0.75:
            return f"({self.pick(FLOATS)})"
        if r < 0.85:
            return self.pick(["True", "1j", "(1-2j)", "complex(nan, inf)", "False"])
        return f"({self.pick(EDGE_INTS)})"

    def value(self, t, name=""):
        """The text of a value of a schema type, mostly."""
        if self.chance(0.03):
            return self.pick(WILD)
        if t.optional and self.chance(0.3):
            return "None"
        base = t.base
        if base == "Tensor":
            if t.number and self.chance(0.3):
                return self.scalar()
            if t.is_list:
                some = [self.tensor() for _ in range(self.pick([0, 1, 2, 2, 3]))]
                return f"[{', '.join('None' if t.element_optional and self.chance(0.3) else s for s in some)}]"
            return self.tensor()
        if base == "int":
            return self.int_list(name, t.size) if t.is_list else self.integer(name)
        if t.is_list:
            made = [self.value(schema.Type(base)) for _ in range(self.rng.randrange(4))]
            return f"[{', '.join(made)}]"
        if base in ("Scalar", "float"):
            return self.scalar() if base == "Scalar" or self.chance(0.1) else self.pick(FLOATS)
        if base == "bool":
            return self.pick(["True", "False"])
        if base == "str":
            return repr(self.pick(self.entry.strings if self.entry else ["mean", ""]))
        if base == "ScalarType":
            return "dtype" if self.chance(0.3) else f"torch.{self.pick(ALL_DTYPES)}"
        if base == "Device":
            return self.pick(DEVICES)
        if base == "MemoryFormat":
            return self.pick(FORMATS)
        if base == "Generator":
            return self.pick(
                ["None", "None", "torch.Generator()", "torch.Generator().manual_seed(3)"]
            )
        if base == "Layout":
            return self.pick(["torch.strided", "None", "'strided'"])
        raise AssertionError(
            f"no values for the schema type {base}: add them to tests/fuzz/programs.py"
        )

    # ---- calls ----

    def arguments(self):
        """(keyword or None, text) of the arguments of one call of the entry."""
        entry, op = self.entry, self.entry.op
        made = []
        if entry.samples and self.chance(0.6):
            made = list(self.pick(entry.samples))
            for _ in range(self.pick([0, 1, 1, 1, 2, 2, 3])):
                if not made:
                    break
                i = self.rng.randrange(len(made))
                name = made[i][0]
                arg = self.argument(op, name if name else i)
                made[i] = (name, self.pick(WILD) if arg is None else self.replaced(arg, made[i][1]))
        else:
            for a in op.args:
                if a.type.base == "options":
                    made += self.options()
                elif a.default is None or self.chance(0.5):
                    by_name = a.keyword_only or any(k for k, _ in made) or self.chance(0.05)
                    made.append((a.name if by_name else None, self.value(a.type, a.name)))
                elif not a.keyword_only and not any(k for k, _ in made):
                    if self.chance(0.7):
                        break
                    made.append((a.name, self.value(a.type, a.name)))  # names from here on
        if self.chance(0.01):
            name = self.pick(["dim", "dtype", "nonsense", "input", "axis"])
            if name not in {k for k, _ in made}:
                made.append((name, self.pick(WILD)))
        # Positional arguments may not follow keywords.
        return [p for p in made if p[0] is None] + [p for p in made if p[0] is not None]

    def argument(self, op, place):
        if isinstance(place, int):
            return op.args[place] if place < len(op.args) else None
        return next((a for a in op.args if a.name == place), None)

    def replaced(self, arg, text):
        if arg.type.base == "options":
            return self.pick(WILD)
        if arg.type.is_tensor and self.chance(
            0.4
        ):  # the sample's own tensor in another layout or dtype
            suffix = [
                *(
                    "[..., :0]",
                    "[..., ::2]",
                    "[1:]",
                    "[None]",
                    ".t()",
                    ".squeeze()",
                    ".transpose(0, -1)",
                    ".detach()",
                ),
                *(
                    ".to('meta')",
                    ".unsqueeze(-1)",
                    ".expand(2, *[-1] * 2)",
                    ".flatten()",
                    ".view(-1)[1:]",
                ),
                *(
                    f".to(torch.{self.pick(ALL_DTYPES)})",
                    f".to(torch.{self.pick(ALL_DTYPES)})",
                    ".conj()",
                    ".contiguous()",
                ),
            ]
            return f"({text}){self.pick(suffix)}"
        return self.value(arg.type, arg.name)

    def options(self):
        made = []
        if self.chance(0.5):
            made.append(("dtype", f"torch.{self.pick(ALL_DTYPES)}"))
        if self.chance(0.2):
            made.append(("device", self.pick(DEVICES)))
        if self.chance(0.1):
            made.append(("requires_grad", "True"))
        if self.chance(0.05):
            made.append(("layout", self.pick(["torch.strided", "'x'"])))
        if self.chance(0.05):
            made.append(("pin_memory", "True"))
        return made

    def out(self):
        n = len(self.entry.op.results)
        made = [
            self.pick(
                [
                    "torch.empty(0)",
                    "torch.empty(0, dtype=dtype)",
                    self.tensor(),
                    self.variable_view(),
                ]
            )
            for _ in range(n)
        ]
        if self.chance(0.03):
            return self.pick(WILD)
        return made[0] if n == 1 else f"({', '.join(made)},)"

    def call(self):
        """One call of an op, as text."""
        self.entry = self.pick(self.entries)
        op = self.entry.op
        form = self.pick(self.entry.forms)
        args = self.arguments()
        named = lambda k, v: f"**{{{k!r}: {v}}}" if keyword.iskeyword(k) else f"{k}={v}"
        spelt = lambda pairs: ", ".join(named(k, v) if k else v for k, v in pairs)
        receiver = op.receiver
        if form in ("method", "inplace") and receiver >= 0:
            if receiver < len(args) and args[receiver][0] is None:
                target = args.pop(receiver)[1]
            else:
                target = self.tensor()
            name = op.name + ("_" if form == "inplace" and not op.inplace_only else "")
            if "method" in op.variants:
                text = f"({target}).{name}({spelt(args)})"
            else:
                text = f"ops.{name}({spelt([(None, target), *args])})"
        elif form == "boxed":
            overload = (
                self.pick(
                    overloads_of_form(op, "inplace" if op.inplace_only else "functional")
                ).overload
                or "default"
            )
            positional = [p for p in args if p[0] is None or p[0] in {a.name for a in op.args}]
            space = "rushlight" if op.own else "aten"
            place = f"torch.ops.{space}.{op.name}.{overload}"
            if keyword.iskeyword(overload):
                place = f"getattr(torch.ops.{space}.{op.name}, {overload!r})"
            text = f"{place}({spelt(positional)})"
        else:
            if form == "out":
                args = [p for p in args if p[0] != "out"] + [("out", self.out())]
            text = f"ops.{op.name}({spelt(args)})"
        if self.chance(0.2):
            return f"{self.pick(VARIABLES)} = read({text})"
        return f"backward({text})" if self.grad else f"read({text})"

    def other(self):
        """One line of OTHERS."""
        self.entry = None
        text = self.pick(OTHERS)
        while "{" in text and "}" in text:
            before, _, rest = text.partition("{")
            kind, _, after = rest.partition("}")
            made = {
                "var": lambda: self.pick(VARIABLES),
                "index": self.index,
                "any": lambda: (
                    self.pick(WILD)
                    if self.chance(0.6)
                    else self.pick([self.tensor(), self.scalar(), self.int_list()])
                ),
                "value": lambda: self.tensor() if self.chance(0.5) else self.scalar(),
                "operator": lambda: self.pick(OPERATORS),
            }.get(kind, lambda kind=kind: self.value(schema.parse_type(kind)))()
            text = before + made.replace("{}", "dict()") + after
        return text

    def lines(self):
        self.grad = self.chance(0.35)
        if self.grad:
            dtype = self.pick(["float32", "float64", "float64", "complex128", "float16"])
        else:
            dtype = self.pick(ALL_DTYPES) if self.chance(0.5) else "float32"
        made = [
            f"dtype = start('{dtype}', {self.rng.randrange(1 << 31)}{', True' if self.grad else ''})"
        ]
        made.append(f"a = filled({self.shape}, dtype)")
        made.append("b = c = d = a")
        for name in ("b", "c", "d"):
            if self.chance(0.5):
                made.append(f"{name} = {self.tensor()}")
        for _ in range(8):
            made.append(self.other() if self.chance(0.12) else self.call())
        if self.chance(0.3):
            made.append("read((a, b, c, d))")
        return made


NAMES = "tests.fuzz.names"  # what programs import
ALSO_ALLOWED = ()
SETUP = 2  # lines that a program opens with and that are no calls


def program(seed, index, table_entries):
    """The lines of program `index` of a seed."""
    return Maker(seed, index, table_entries).lines()
