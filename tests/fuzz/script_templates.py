"""What random programs of TorchScript are made of, by type: expressions, literals, changes in place.

<int> stands for an expression of the type, <n> for the name that changes, k for a name of a comprehension. All of it
compiles in PyTorch, and computes the same there and as Python: no `and` of numbers, no power of integers, no `round`.
"""

EXPRESSIONS = {
    "int": (
        ["(<int> + <int>)", "(<int> - <int>)", "(<int> * <int>) % 1009", "-<int>", "abs(<int>)"]
        + ["<int> // (abs(<int>) % 5 + 1)", "<int> % (abs(<int>) % 7 + 1)", "len(<List[int]>)"]
        + ["min(<int>, <int>)", "max(<int>, <int>)", "int(<bool>)", "(<int> if <bool> else <int>)"]
        + ["<Tensor>.size(1)", "<Tensor>.dim()", "len(<str>)", "<str>.find('a')", "(<int> & <int>)"]
        + ["(<int> | 5)", "(<int> ^ 3)", "<Tuple[int, float]>[0]", "len(<Dict[str, int]>)"]
        + ["<Dict[str, int]>.get('a', <int>)", "sum(<List[int]>)", "<Tensor>.shape[0]"]
        + [
            "sum([len(k) for k in <List[List[int]]>])",
            "<Pair>.first",
            "<Mode>.value",
            "<str>.count('a')",
        ]
        + ["(<int> << 2)", "(<int> >> 1)", "int(<Tensor>.argmax())"]
        + ["math.floor(<float>)", "int(<float>)", "<Tensor>.numel()", "ord('b')"]
    ),
    "float": (
        [
            "(<float> + <float>)",
            "(<float> - <float>)",
            "(<float> * 0.5)",
            "float(<int>)",
            "-<float>",
        ]
        + ["min(<float>, <float>)", "max(<float>, <float>)", "abs(<float>)", "(<int> * 0.25)"]
        + [
            "float(<Tensor>.sum())",
            "(<float> / 2)",
            "(<int> / (abs(<int>) + 1))",
            "(<float> + <int>)",
        ]
        + ["(<float> if <bool> else <float>)", "<Tuple[int, float]>[1]", "float(<bool>)"]
        + ["<Dict[int, float]>.get(<int>, <float>)", "(<float> ** 2)", "float(<Tensor>[1].mean())"]
        + [
            "math.sqrt(abs(<float>))",
            "float(<Tensor>[0, 1])",
            "(<float> // 0.5)",
            "(<int> % 1.5)",
        ]
    ),
    "bool": (
        ["<int> < <int>", "<int> == <int>", "<int> != <int>", "<float> >= <float>", "(not <bool>)"]
        + ["(<bool> and <bool>)", "(<bool> or <bool>)", "<str> == <str>", "<int> in <List[int]>"]
        + [
            "'a' in <str>",
            "'a' in <Dict[str, int]>",
            "bool(<Tensor>.sum() > <float>)",
            "0 < <int> < 6",
        ]
        + [
            "<Optional[int]> is None",
            "<str> in <List[str]>",
            "bool(<int>)",
            "<List[int]> == <List[int]>",
        ]
        + ["<Mode> == Mode.A", "<Mode> != <Mode>", "<int> in <Dict[int, float]>"]
        + [
            "isinstance(<Optional[int]>, int)",
            "<Optional[Tensor]> is not None",
            "bool((<Tensor> > 0).all())",
        ]
        + [
            "len(<List[Tensor]>) > 1",
            "<str>.startswith('a')",
            "<int> not in [1, 2, 3]",
            "<str> < <str>",
        ]
    ),
    "str": (
        ["(<str> + <str>)", "str(<int>)", "<str>.upper()", "<str>[1:]", "<str>.replace('a', 'bb')"]
        + [
            "'{}-{}'.format(<int>, <str>)",
            "f'{<int>}_{<int>}'",
            "'.'.join(<List[str]>)",
            "<str>[:2]",
        ]
        + ["<Pair>.second", "<Mode>.name", "<str>.lower()", "<str>.rjust(4, '.')"]
        + [
            "(<str> if <bool> else <str>)",
            "<str>.strip('b')",
            "('%d:%s' % (<int>, <str>))",
            "<str>[::-1]",
        ]
    ),
    "Tensor": (
        [
            "(<Tensor> + <Tensor>)",
            "(<Tensor> - <Tensor>)",
            "(<Tensor> * <Tensor>)",
            "<Tensor>.flip(0)",
        ]
        + ["(<Tensor> + <int>)", "(<int> - <Tensor>)", "(<Tensor> * 0.5)", "torch.relu(<Tensor>)"]
        + ["-<Tensor>", "<Tensor>.abs()", "torch.clamp(<Tensor>, -4.0, 4.0)", "<Tensor>.clone()"]
        + [
            "torch.where(<Tensor> > <Tensor>, <Tensor>, <Tensor>)",
            "torch.stack([<Tensor>, <Tensor>])[1]",
        ]
        + [
            "torch.cat([<Tensor>, <Tensor>], 1)[:, 1:4]",
            "<Tensor>.t().reshape(2, 3)",
            "(<Tensor> + <Tensor>[0])",
        ]
        + [
            "torch.max(<Tensor>, <Tensor>)",
            "(<Tensor> + <Tensor>.sum(1, keepdim=True))",
            "torch.ones(2, 3)",
        ]
        + ["torch.full([2, 3], <float>)", "torch.zeros_like(<Tensor>)", "<Tuple[Tensor, int]>[0]"]
        + [
            "torch.arange(6).view(2, 3).float()",
            "(<Tensor> if <bool> else <Tensor>)",
            "<Tensor>[[1, 0]]",
        ]
        + [
            "<Tensor>.long().float()",
            "<Tensor>.masked_fill(<Tensor> > 1, <float>)",
            "<Tensor>.double().float()",
        ]
        + ["<Tensor>.new_zeros([2, 3])", "(<Tensor> > <float>).float()", "F.relu(<Tensor>)"]
    ),
    "List[int]": (
        ["[<int>, <int>]", "[<int>]", "[(k * 2 + <int>) % 97 for k in range(abs(<int>) % 5)]"]
        + ["[k + <int> for k in <List[int]>]", "(<List[int]> + <List[int]>)", "<List[int]>[1:]"]
        + ["sorted(<List[int]>)", "list(range(abs(<int>) % 4))"]
        + [
            "<List[int]>[::-1]",
            "(<List[int]> * 2)",
            "<List[int]>.copy()",
            "list(<Dict[str, int]>.values())",
        ]
        + ["[len(k) for k in <List[str]>]", "[k if k > 0 else <int> for k in <List[int]>]"]
    ),
    "List[float]": ["[<float>, <float>]", "[k * 0.5 for k in <List[float]>]", "<List[float]>[:1]"],
    "List[str]": (
        [
            "[<str>, <str>]",
            "[k + 'x' for k in <List[str]>]",
            "<str>.split('b')",
            "sorted(<List[str]>)",
        ]
        + ["list(<Dict[str, int]>.keys())"]
    ),
    "List[Tensor]": (
        ["[<Tensor>, <Tensor>]", "[k + <int> for k in <List[Tensor]>]", "[<Tensor>]"]
        + ["list(torch.stack([<Tensor>, <Tensor>]).unbind(0))", "<List[Tensor]>[:2]"]
    ),
    "List[List[int]]": [
        "[<List[int]>, [<int>]]",
        "[[k, <int>] for k in <List[int]>]",
        "<List[List[int]]>[:2]",
    ],
    "Dict[int, float]": ["{<int>: <float>}", "{k: k * 0.5 for k in <List[int]>}"],
    "Pair": [
        "Pair(<int>, <str>)",
        "Pair(second=<str>, first=<int>)",
        "(<Pair> if <bool> else <Pair>)",
    ],
    "Mode": ["(Mode.A if <bool> else Mode.B)"],
    "Dict[str, int]": (
        ["{'a': <int>, <str>: <int>}", "{k: <int> for k in <List[str]>}", "{'b': <int>}"]
        + ["<Dict[str, int]>.copy()"]
    ),
    "Optional[int]": ["(<int> if <bool> else None)"],
    "Optional[Tensor]": ["(<Tensor> if <bool> else None)"],
    "Tuple[int, float]": ["(<int>, <float>)"],
    "Tuple[Tensor, int]": ["(<Tensor>, <int>)"],
}
LITERALS = {
    "int": ["0", "1", "2", "3", "7", "-2"],
    "float": ["0.0", "0.5", "1.25", "-2.0", "3.0"],
    "bool": ["True", "False"],
    "str": ["'a'", "'bc'", "''", "'xab'"],
    "Tensor": ["torch.ones(2, 3)", "torch.zeros(2, 3)"],
    "List[int]": ["[1, 2, 3]", "[5]"],
    "List[float]": ["[0.5, 1.5]"],
    "List[str]": ["['a', 'b']"],
    "List[Tensor]": ["[torch.ones(2, 3)]"],
    "Dict[str, int]": ["{'a': 1, 'c': 2}"],
    "List[List[int]]": ["[[1], [2, 3]]"],
    "Dict[int, float]": ["{1: 0.5}"],
    "Pair": ["Pair(1, 'p')"],
    "Mode": ["Mode.A", "Mode.B"],
    "Optional[int]": ["None"],
    "Optional[Tensor]": ["None"],
    "Tuple[int, float]": ["(1, 0.5)"],
    "Tuple[Tensor, int]": ["(torch.ones(2, 3), 2)"],
}
# Changes of a name of the type, in place.
CHANGES = {
    "int": ["<n> += <int>", "<n> -= <int>"],
    "float": ["<n> += <float>", "<n> *= 0.5"],
    "str": ["<n> += <str>"],
    "Tensor": [
        "<n> += <Tensor>",
        "<n>.add_(<int>)",
        "<n>[0] = <float>",
        "<n>[:, 1] += <int>",
        "<n>.mul_(0.5)",
    ],
    "List[int]": (
        [
            "<n>.append(<int>)",
            "<n>.extend(<List[int]>)",
            "<n>.insert(0, <int>)",
            "<n>.reverse()",
            "<n>.sort()",
        ]
        + ["<n> += [<int>]", "if len(<n>) > 0: <n>[0] = <int>", "if len(<n>) > 1: <n>.pop()"]
        + ["if len(<n>) > 0: <n>[-1] += <int>", "if len(<n>) > 2: del <n>[1]"]
    ),
    "List[float]": ["<n>.append(<float>)", "if len(<n>) > 0: <n>[0] = <float>"],
    "List[str]": ["<n>.append(<str>)", "<n>.extend(<List[str]>)"],
    "List[Tensor]": [
        "<n>.append(<Tensor>)",
        "if len(<n>) > 0: <n>[0] = <Tensor>",
        "if len(<n>) > 0: <n>[0] += 1",
    ],
    "List[List[int]]": ["<n>.append(<List[int]>)", "if len(<n>) > 0: <n>[0].append(<int>)"],
    "Dict[int, float]": ["<n>[<int>] = <float>", "if 1 in <n>: <n>[1] *= 0.5"],
    "Dict[str, int]": (
        [
            "<n>['a'] = <int>",
            "<n>[<str>] = <int>",
            "if 'a' in <n>: <n>['a'] += <int>",
            "<n>.update({'z': <int>})",
        ]
        + [
            "if 'a' in <n>: del <n>['a']",
            "<n>.setdefault('q', <int>)",
            "if 'z' in <n>: <n>.pop('z')",
        ]
    ),
}
# What bounds a value that a loop computes from itself.
BOUNDS = {
    "int": "(<e>) % 1009",
    "float": "max(min(<e>, 64.0), -64.0)",
    "str": "(<e>)[:12]",
    "Tensor": "torch.clamp(<e>, -64.0, 64.0)",
    "List[int]": "(<e>)[:6]",
    "List[float]": "(<e>)[:6]",
    "List[str]": "[k[:6] for k in (<e>)[:4]]",
    "List[Tensor]": "(<e>)[:4]",
    "List[List[int]]": "[k[:3] for k in (<e>)[:3]]",
}
TYPES = list(LITERALS)
RESULTS = [
    kind for kind in TYPES if kind != "Mode"
]  # members of enums have a class of their own there
# What every program begins with.
HEAD = """
import enum
import math
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

class Pair(NamedTuple):
    first: int
    second: str

class Mode(enum.Enum):
    A = 1
    B = 2

class Scale(torch.nn.Module):
    def __init__(self, by: float):
        super().__init__()
        self.by = by

    def forward(self, x):
        return x * self.by

    def moved(self, x, n: int):
        return self.forward(x) + n if n > 0 else x

def kind_of(x: Any) -> str:
    if isinstance(x, str):
        return x
    if torch.jit.isinstance(x, List[int]):
        return 'numbers'
    if isinstance(x, int):
        return str(x + 1)
    return 'other'

def of_union(x: Union[int, str, List[int]]) -> int:
    if isinstance(x, int):
        return x
    elif isinstance(x, str):
        return len(x)
    return len(x) + 7
"""
# The functions of that text: how they are called, what they take, what they give.
KNOWN = [
    *(("kind_of({})", [kind], "str") for kind in ("int", "str", "float", "Pair")),
    *(("of_union({})", [kind], "int") for kind in ("int", "str", "List[int]")),
]
# The same of the modules within one.
PARTS = [
    ("self.parts[1]({})", ["Tensor"], "Tensor"),
    ("self.parts[0].moved({}, {})", ["Tensor", "int"], "Tensor"),
    ("self.table_of_parts['b']({})", ["Tensor"], "Tensor"),
]
# Attributes of modules, and what expressions may do with them.
SLOTS = (
    ["self.parts = torch.nn.ModuleList([Scale(0.5), torch.nn.ReLU(), Scale(2.0)])"]
    + ["self.table_of_parts = torch.nn.ModuleDict({'a': torch.nn.ReLU(), 'b': Scale(0.5)})"]
    + [
        "self.weight = torch.nn.Parameter(torch.ones(2, 3) * 0.5, requires_grad=False)",
        "self.n = 3",
    ]
    + ["self.register_buffer('state', torch.ones(2, 3))", "self.items: List[int] = [1, 2]"]
    + ["self.table: Dict[str, int] = {'a': 1}", "self.scale = 0.5", "self.word = 'ab'"]
)
FIELDS = [
    ("self.weight", ("Tensor", False)),
    ("self.n", ("int", True)),
    ("self.state", ("Tensor", True)),
    ("self.items", ("List[int]", True)),
    ("self.table", ("Dict[str, int]", True)),
    ("self.scale", ("float", True)),
    ("self.word", ("str", True)),
]
