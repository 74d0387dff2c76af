"""Docstrings are the reference: arguments, examples that print what they say, signatures."""

import ast
import csv
import doctest
import importlib.util
import inspect
import itertools
import os
import pkgutil
import re
import warnings
from collections import Counter
from pathlib import Path

import pytest

import rushlight
from docs import docstrings
from gen import modules, table
from ops.arguments import describe
from rushlight import nn

NAMES = docstrings.public_names()
# What makes a class's arguments those of others: an exception, an enumeration, a named tuple.
PLAIN = (BaseException, tuple)


# Made by nanobind or only by the package: no signature, or arguments that programs do not give.
INNER = {
    "ScriptObject",
    "StorageBase",
    "UntypedStorage",
    "fx.ProxyableClassMeta",
    "distributed.ProcessGroup",
}
INNER |= {"fx.immutable_collections.immutable_dict", "torch_version.TorchVersion"}
INNER |= {"autograd.function.BackwardCFunction"}
INNER |= {f"distributed.{kind}Store" for kind in ("", "File", "Hash", "Prefix", "TCP")}


def is_plain(thing):
    return isinstance(thing, type) and (issubclass(thing, PLAIN) or hasattr(thing, "__members__"))


def layers():
    return {f"nn.{name}": thing for name, thing in vars(nn).items() if name in nn.modules.__all__}


def of(prefix):
    return {name: thing for name, thing in NAMES.items() if name.startswith(prefix)}


def optimizers():
    return {
        f"optim.{n}": t
        for n, t in vars(rushlight.optim).items()
        if n in rushlight.optim.__all__ and isinstance(t, type)
    }


def schedules():
    found = of("optim.lr_scheduler.") | {"optim.swa_utils.SWALR": rushlight.optim.swa_utils.SWALR}
    return {name: thing for name, thing in found.items() if isinstance(thing, type)}


def samplers():
    return {n: t for n, t in of("utils.data.").items() if n.endswith(("Sampler", "DataLoader"))}


def distributions():
    base = rushlight.distributions.Distribution
    found = of("distributions.")
    return {n: t for n, t in found.items() if isinstance(t, type) and issubclass(t, base)}


def transforms():
    found = of("vision.transforms.")
    return {n: t for n, t in found.items() if isinstance(t, type) and not is_plain(t)}


def ops():
    """Functions of the table that are public."""
    spaces = (rushlight, rushlight.linalg, rushlight.fft, rushlight.special, nn.functional)
    builtin = type(rushlight.add)
    return {
        f"{space.__name__}.{name}": thing
        for space in spaces
        for name, thing in vars(space).items()
        if type(thing) is builtin and not re.search(r"^_|_backward$|_step_$", name)
    }


GROUPS = {
    "layers": layers,
    "optimizers": optimizers,
    "schedules": schedules,
    "samplers": samplers,
    "distributions": distributions,
    "transforms": transforms,
    "ops": ops,
}
# What programs use most, by the count of a survey of packages; those that are functions or classes.
USED = os.path.join(os.path.dirname(__file__), "most_used.csv")


def most_used():
    with open(USED) as file:
        paths = [row["name"] for row in csv.DictReader(file)]
    found = {}
    for path in paths:
        try:
            thing = pkgutil.resolve_name(f"rushlight.{path}")  # imports what it lies in
        except (ImportError, AttributeError):
            continue
        if docstrings.is_documented(thing) and not is_plain(thing):
            found[path] = thing
    return found


@pytest.mark.parametrize("group", GROUPS)
def test_arguments_are_described_and_there_is_an_example(group):
    lacking = {name: docstrings.missing(thing) for name, thing in GROUPS[group]().items()}
    assert not {name: lacks for name, lacks in lacking.items() if lacks and name not in INNER}


# Layers whose shapes are those of what they hold, and bases that compute nothing.
WITHOUT_SHAPE = {
    *("Container", "Identity", "Module", "ModuleDict", "ModuleList"),
    *("ParameterDict", "ParameterList", "Sequential", "RNNBase", "RNNCellBase"),
}


def test_layers_say_their_shapes():
    lacking = {n for n, cls in layers().items() if "\nShape: " not in inspect.cleandoc(cls.__doc__)}
    assert {name.removeprefix("nn.") for name in lacking} == WITHOUT_SHAPE


def test_what_is_used_most_is_described():
    lacking = {name: docstrings.missing(thing) for name, thing in most_used().items()}
    assert not {name: lacks for name, lacks in lacking.items() if lacks and name not in INNER}


def test_all_public_names_are_described():
    lacking = {name: lacks for name, thing in NAMES.items() if (lacks := docstrings.missing(thing))}
    assert lacking == {}


def test_arguments_of_the_table_are_described():
    """Every argument of an op or a module has its phrase in ops/arguments.py."""
    rows = [(op.name, op.family, a.name) for op in table.load() for a in op.args]
    rows += [(m.name, m.family, a.name) for m in modules.load() for a in m.args]
    words = {"self": "input", "options": "dtype"}
    public = [row for row in rows if not row[0].startswith("_") and "backward" not in row[0]]
    assert not [row for row in public if not describe(*row[:2], words.get(row[2], row[2]))]


def test_no_line_stands_twice():
    package, twice = Path(rushlight.__file__).parent, []
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                text = ast.get_docstring(node) or ""
                pairs = itertools.pairwise(line.strip() for line in text.splitlines())
                twice += [(file.name, a) for a, b in pairs if a == b and re.match(r"\w.{12}", a)]
                blocks = Counter(re.split(r"\n\s*\n", text.split("Example")[0]))
                twice += [(file.name, block) for block, n in blocks.items() if n > 1]
    assert not twice


# What other programs call: a compiler's, a parser's, a visitor's; and one that is C's.
CALLBACKS = {
    "Node.setScope",
    "BuildExtension.build_extension",
    "AST_Rewriter.visit_AnnAssign",
    "AST_Rewriter.visit_Assert",
    *(f"Flickr8kParser.handle_{part}" for part in ("data", "endtag", "starttag")),
}


def methods():
    """The public methods and properties that classes of the reference, or their bases, define."""
    for thing in filter(inspect.isclass, NAMES.values()):
        for base in thing.__mro__:
            if base.__module__.startswith("rushlight"):
                for name, value in vars(base).items():
                    if not name.startswith("_") and (
                        isinstance(value, property) or inspect.isroutine(value)
                    ):
                        yield f"{base.__qualname__.rpartition('.<locals>.')[2]}.{name}", base, name


def test_methods_have_a_text():
    """Their own, or that of the base which says what they do."""
    found = {path: inspect.getdoc(getattr(base, name)) for path, base, name in methods()}
    lacking = {path for path, text in found.items() if not text}
    assert lacking == CALLBACKS & found.keys()
    assert len(found) > 2500
    builtin = {inspect.getdoc(kind) for kind in (bool, int, float, str, dict, list, tuple)}
    assert not {path for path, text in found.items() if text in builtin}  # of a base's value
    of_base = {inspect.getdoc(nn.Module.forward)}  # what it says is of no layer
    assert not {path for path, text in found.items() if text in of_base} - {"Module.forward"}


def test_prose_has_single_spaces():
    texts = {name: docstrings.parse(thing.__doc__ or "") for name, thing in NAMES.items()}
    double = [(n, k) for n, said in texts.items() for k, t in said.args.items() if "  " in t]
    assert not double


def can_run(text):
    """Whether what an example needs is there: an engine of process groups, the package onnx."""
    if "init_process_group" in text and not rushlight.distributed.is_gloo_available():
        return False
    return "torch.onnx" not in text or importlib.util.find_spec("onnx") is not None


def test_examples_print_what_they_say():
    """All of the package, in one process; as in a fresh interpreter each time."""
    runner = doctest.DocTestRunner(
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS, verbose=False
    )
    parser, failures, seen = doctest.DocTestParser(), [], set()
    things = {
        **NAMES,
        **{f"Tensor.{n}": getattr(rushlight.Tensor, n) for n in dir(rushlight.Tensor)},
    }
    for group in GROUPS.values():
        things |= group()
    state = rushlight.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, thing in things.items():
            text = docstrings.example(thing)
            if not text or text in seen or not can_run(text):
                continue
            seen.add(text)
            test = parser.get_doctest(text, {"torch": rushlight}, name, None, None)
            said = []
            runner.run(test, out=said.append)
            if said:
                failures.append("".join(said))
    rushlight.set_rng_state(state)
    assert len(seen) > 1700
    assert not failures, "\n".join(failures)


def test_every_call_has_a_signature():
    without = [
        name
        for name, thing in NAMES.items()
        if docstrings.signature(thing) is None and not is_plain(thing) and name not in INNER
    ]
    assert without == []


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_name_their_arguments(layer):
    found = inspect.signature(layer).parameters
    assert list(found)[:3] == ["input_size", "hidden_size", "num_layers"]
    assert "args" not in found
    assert layer(input_size=2, hidden_size=3, batch_first=True)(rushlight.zeros(1, 4, 2))[
        0
    ].shape == (1, 4, 3)
    with pytest.raises(TypeError, match="unexpected keyword"):
        layer(2, 3, depth=1)


def test_signatures_of_ops_agree_with_calls():
    """A call by the names of a signature's arguments is not refused for a name."""
    for name, function in ops().items():
        found = docstrings.signature(function)
        assert found is not None, name
        keywords = {p.name: object() for p in found.parameters.values() if p.kind is p.KEYWORD_ONLY}
        places = [object() for p in found.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        try:  # objects are no arguments: what matters is whether their names are refused
            function(*places, **keywords)
        except Exception as error:
            assert "unexpected keyword" not in str(error), (name, str(error))
