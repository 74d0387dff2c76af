"""Finds what the package takes and never looks at: parameters, attributes, settings, options, arguments of ops.

All of it is read from the sources. `tests/python/test_accepted.py` wants what is found in the tables of `rushlight.foreign`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gen.table import Op, load

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python/rushlight"
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees() -> dict[str, ast.Module]:
    """The modules of the package by their paths below `rushlight`."""
    found = {}
    for file in sorted(PACKAGE.glob("**/*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(
            file.read_text()
        )
    return found


@dataclass
class Seen:
    """What is seen of a module: names of functions that are called, names that are used other than by being called,
    attributes that are read, texts, and the calls themselves."""

    called: set[str]
    used: set[str]
    attributes: set[str]
    texts: set[str]
    calls: list[ast.Call]
    has_settings: bool  # there is a `global`


@cache
def seen(module: str) -> Seen:
    nodes = list(ast.walk(trees()[module]))
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    functions = {id(call.func) for call in calls}
    names = [
        n
        for n in nodes
        if isinstance(n, ast.Name | ast.Attribute) and not isinstance(n.ctx, ast.Store)
    ]
    return Seen(
        {_name_of(call.func) for call in calls},
        {_name_of(n) for n in names if id(n) not in functions},
        {n.attr for n in names if isinstance(n, ast.Attribute)},
        {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)},
        calls,
        any(isinstance(n, ast.Global) for n in nodes),
    )


def _name_of(node: ast.expr) -> str:
    """The last of the names in `a.b.c`."""
    return (
        node.id
        if isinstance(node, ast.Name)
        else node.attr
        if isinstance(node, ast.Attribute)
        else ""
    )


@cache
def everywhere(what: str) -> frozenset[str]:
    """`called`, `used`, `attributes` or `texts` of all modules."""
    return frozenset().union(*(getattr(seen(module), what) for module in trees()))


def functions_in(node: ast.AST, path: str) -> Iterator[tuple[str, FunctionNode]]:
    """The functions of a module and its classes, with their paths; not those inside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from functions_in(child, f"{path}.{child.name}")
        elif isinstance(child, FunctionNode):
            yield f"{path}.{child.name}", child
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from functions_in(child, path)


@cache
def functions() -> dict[str, FunctionNode]:
    return {p.lstrip("."): f for path, tree in trees().items() for p, f in functions_in(tree, path)}


def is_public(name: str) -> bool:
    return not name.startswith("_") or name in ("__init__", "__new__")


def body_of(function: FunctionNode) -> list[ast.stmt]:
    """What a function does beside being described."""
    return [
        s
        for s in function.body
        if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
    ]


def only_refuses(function: FunctionNode) -> bool:
    """Whether all that a function does is to raise, or to be overridden."""
    body = body_of(function)
    return all(isinstance(statement, ast.Raise) for statement in body) and bool(body)


def decorators(function: FunctionNode) -> set[str]:
    return {ast.unparse(d).partition("(")[0].rpartition(".")[2] for d in function.decorator_list}


# ---- parameters ----


def parameters(function: FunctionNode) -> list[str]:
    a = function.args
    named = [arg.arg for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if arg]
    return named[1:] if named[:1] in (["self"], ["cls"]) else named


def reads(node: ast.AST) -> Counter[str]:
    """The names that are read, and how often."""
    return Counter(
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    )


def unread(function: FunctionNode) -> list[str]:
    """The parameters that a function's body never looks at."""
    names = {n.id for s in function.body for n in ast.walk(s) if isinstance(n, ast.Name)}
    return [] if "locals" in names else [p for p in parameters(function) if p not in names]


def unread_parameters() -> Iterator[tuple[str, str]]:
    """(path, parameter) of public functions."""
    for path, function in functions().items():
        called_by_python = path.startswith("as_torch.")  # its import system
        if (
            is_public(path.rpartition(".")[2])
            and not only_refuses(function)
            and not called_by_python
        ):
            yield from ((path, name) for name in unread(function))


def unread_private_parameters() -> Iterator[tuple[str, str]]:
    """(path, parameter) of functions that only the package calls, and by their names.

    Of several functions of one name, as methods of classes, one has to read it.
    """
    by_name: dict[str, list[tuple[str, FunctionNode]]] = {}
    for path, function in functions().items():
        by_name.setdefault(path.rpartition(".")[2], []).append((path, function))
    for name, found in by_name.items():
        decorated = any(decorators(f) - {"staticmethod", "classmethod"} for _, f in found)
        private = name.startswith("_") and not name.startswith("__")
        if not private or decorated or name in everywhere("used") | everywhere("texts"):
            continue
        shared = set.intersection(*({p for p in unread(f) if p[0] != "_"} for _, f in found))
        for path, function in found:
            if not only_refuses(function):
                yield from ((path, p) for p in parameters(function) if p in shared)


# ---- functions that do nothing ----


def does_nothing(function: FunctionNode) -> bool:
    """Whether a function is empty or gives the same constant whatever happens."""
    if decorators(function) & {"overload", "abstractmethod", "property"}:
        return False
    match body_of(function):
        case [] | [ast.Pass()] | [ast.Return(value=None | ast.Constant())]:
            return True
        case [ast.Expr(value=ast.Yield(value=None | ast.Constant()))]:  # a context manager
            return True
        case [ast.Return(value=ast.List() | ast.Dict() | ast.Tuple() as value)]:
            return not list(ast.iter_child_nodes(value))[:-1]
    return False


def idle_functions() -> Iterator[str]:
    """The public functions that do nothing, and the managers whose `with` does nothing."""
    for path, function in functions().items():
        space, _, name = path.rpartition(".")
        if is_public(name) and name != "__init__" and does_nothing(function):
            yield path
        if name == "__exit__" and does_nothing(function) and is_public(space.rpartition(".")[2]):
            enter = functions().get(f"{space}.__enter__")
            if enter is not None and does_nothing(enter):
                yield f"{space}.__init__"


# ---- what is stored ----


def _classes_in(node: ast.AST, path: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield f"{path}.{child.name}", child
            yield from _classes_in(child, f"{path}.{child.name}")
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from _classes_in(child, path)


@cache
def _classes() -> list[tuple[str, str, ast.ClassDef]]:
    """(module, path, class) of all classes; not those inside functions."""
    return [
        (m, path.lstrip("."), node)
        for m, tree in trees().items()
        for path, node in _classes_in(tree, m)
    ]


def _bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}


@cache
def _attributes_read(module: str) -> frozenset[str]:
    """The attributes that a module reads, as such or by a name in a text."""
    texts = seen(module).texts
    named = {
        name
        for text in texts
        for name in ([text] if text.isidentifier() else re.findall(r"{(\w+)", text))
    }
    return frozenset(seen(module).attributes | named)


@cache
def _inheritance() -> list[tuple[str, str, set[str]]]:
    """(module, name, names of bases) of all classes."""
    return [(module, node.name, _bases(node)) for module, _, node in _classes()]


def _modules_of_family(module: str, name: str) -> set[str]:
    """Where a class, what it inherits from and what inherits from it are defined, and the private
    modules beside it, which do its work.
    """
    classes = _inheritance()
    names = {known for _, known, _ in classes} - {"Module"}
    above, below = {name}, {name}
    while True:
        more_above = {
            b for _, known, bases in classes if known in above for b in bases & names
        } - above
        more_below = {known for _, known, bases in classes if bases & below} - below
        if not more_above | more_below:
            break
        above, below = above | more_above, below | more_below
    package = module.rpartition(".")[0]
    beside = {m for m in trees() if package and m.startswith(f"{package}._")}
    return {module} | beside | {path for path, known, _ in classes if known in above | below}


def _stores(function: FunctionNode) -> Iterator[tuple[str, ast.expr]]:
    """(attribute of self, value) of a function's assignments."""
    for n in ast.walk(function):
        if not isinstance(n, ast.Assign | ast.AnnAssign) or n.value is None:
            continue
        pairs: list[tuple[ast.expr, ast.expr]] = []
        for target in n.targets if isinstance(n, ast.Assign) else [n.target]:
            both = isinstance(target, ast.Tuple) and isinstance(n.value, ast.Tuple)
            pairs += zip(target.elts, n.value.elts, strict=False) if both else [(target, n.value)]
        for target, value in pairs:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                yield target.attr, value


def stored_and_unread() -> Iterator[tuple[str, str]]:
    """(path, parameter) of what a class keeps of its arguments as attributes, which nobody reads."""
    for module, path, node in _classes():
        for function in node.body:
            if not isinstance(function, FunctionNode) or function.name != "__init__":
                continue
            times, known = reads(function), parameters(function)
            for attribute, value in _stores(function):
                only_here = [
                    p for p, count in reads(value).items() if p in known and count == times[p]
                ]
                if only_here and attribute not in _attributes_read(module):
                    family = _modules_of_family(module, node.name)
                    if not any(attribute in _attributes_read(m) for m in family):
                        yield from ((f"{path}.__init__", p) for p in only_here)


def unread_settings() -> Iterator[str]:
    """The functions that set what only a function tells again, which nobody in the package calls."""
    for module, tree in trees().items():
        if not seen(module).has_settings:
            continue
        own = dict(functions_in(tree, module))
        setters = {
            n: p
            for p, f in own.items()
            for g in ast.walk(f)
            if isinstance(g, ast.Global)
            for n in g.names
        }
        for name, setter in setters.items():
            readers = [f for p, f in own.items() if p != setter and reads(f)[name]]
            tell = all(
                len(body_of(f)) == 1 and isinstance(body_of(f)[0], ast.Return) for f in readers
            )
            asked = any(f.name in everywhere("called") for f in readers)
            worked_with = f"{name}." in ast.unparse(own[setter])
            if tell and not asked and not worked_with and is_public(setter.rpartition(".")[2]):
                yield setter.lstrip(".")


@cache
def fields() -> dict[str, set[str]]:
    """The fields of dataclasses that hold what a program asks for."""
    found = {}
    for _, path, node in _classes():
        is_dataclass = any("dataclass" in ast.unparse(d) for d in node.decorator_list)
        if is_dataclass and re.search("(Options|Config|Offload|Policy|Spec)$", node.name):
            names = {ast.unparse(s.target) for s in node.body if isinstance(s, ast.AnnAssign)}
            found[f"{path}.__init__"] = names
    return found


def unread_fields() -> Iterator[tuple[str, str]]:
    """(path, field) of those dataclasses."""
    read = frozenset().union(*(_attributes_read(module) for module in trees()))
    yield from (
        (path, name) for path, names in fields().items() for name in names if name not in read
    )


# ---- options of command lines ----


@cache
def options() -> dict[str, set[str]]:
    """The options that programs of the package take, by their modules."""
    found: dict[str, set[str]] = {}
    for module in trees():
        for call in seen(module).calls:
            if _name_of(call.func) in ("add_argument", "option"):
                texts = [a.value for a in call.args if isinstance(a, ast.Constant)]
                long = [
                    text.lstrip("-")
                    for text in texts
                    if isinstance(text, str) and len(text.lstrip("-")) > 1
                ]
                found.setdefault(module, set()).update(long[:1])
    return found


def unread_options() -> Iterator[tuple[str, str]]:
    """(module, option) of those whose value is not read."""
    for module, names in options().items():
        read = seen(module).attributes
        yield from ((module, name) for name in names if name.replace("-", "_") not in read)


# ---- arguments of ops ----

_SOURCES = ("src/ops", "src/cpu", "src/core")


def _parts(text: str) -> list[str]:
    """What stands between commas outside brackets."""
    found, depth = [""], 0
    for c in text:
        depth += (c in "(<[{") - (c in ")>]}")
        if c == "," and depth == 0:
            found.append("")
        else:
            found[-1] += c
    return [part.strip() for part in found if part.strip()]


@cache
def _definitions() -> dict[str, list[tuple[str, list[str]]]]:
    """(folder, parameters) of all functions that are defined in C++, by their names."""
    found: dict[str, list[tuple[str, list[str]]]] = {}
    for folder in _SOURCES:
        for file in sorted((ROOT / folder).glob("**/*")):
            if file.suffix not in (".cpp", ".h", ".inc"):
                continue
            text = re.sub(r"//[^\n]*", "", file.read_text())
            for m in re.finditer(r"(?:^|[\s:&*>])(\w+)\(", text):
                end, depth = m.end(), 1
                while depth and end < len(text):
                    depth += (text[end] == "(") - (text[end] == ")")
                    end += 1
                if re.match(r"\s*(\\\n\s*)?\{", text[end:]):
                    inside = text[m.end() : end - 1].replace("\\\n", " ")
                    found.setdefault(m[1], []).append((folder, _parts(inside)))
    return found


def _is_nameless(parameter: str) -> bool:
    """Whether a parameter in C++ has no name, as those have to that are not used (-Wunused-parameter)."""
    text = re.sub(r"\s*=.*|\bconst\b", "", parameter)
    while "<" in (text := re.sub(r"<[^<>]*>", "", previous := text)) and text != previous:
        pass
    words = re.findall(r"\w+|&|\*|::", text)
    return (
        "/*" in parameter
        or len(words) == 1
        or (bool(words) and words[-1] in "&*")
        or "::" in words[-2:]
    )


def _words(*texts: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", " ".join(texts)))


def _rule(name: str) -> str:
    """An optimiser's rule, and what all rules share."""
    text = (ROOT / "src/kernels/optim.h").read_text() + (ROOT / "src/kernels/steps.h").read_text()
    others = re.compile(rf"^struct (?!{name} ).*?^}};", re.M | re.S)
    return others.sub("", text)


def _used(op: Op) -> set[str] | None:
    """The arguments that the implementation of an op looks at; None where it is written by a macro."""
    derivatives = _words(*op.grad.values()) if isinstance(op.grad, dict) else set()
    if op.body:
        return _words(op.body)
    if op.kernel.kind == "step":  # the rule declares all of them
        rule = _rule(op.kernel.formulas[0].name)
        words = Counter(re.findall(r"\w+", rule))
        return {a.name for a in op.args if a in op.tensors or words[a.name] > 1}
    texts = [*op.kernel.check, *op.kernel.gives]
    formulas = op.formulas if op.kernel.kind == "pointwise" else op.kernel.formulas
    for formula in formulas:
        texts += [*formula.attributes, formula.when]
    derivatives |= _words(*texts)
    if op.kernel.kind in ("reduction", "rows"):  # the generator makes shapes of these
        derivatives |= {a.name for a in op.args if a.type.meaning == "Dim" or a.name == "keepdim"}
    if formulas:
        return derivatives | {a.name for a in op.tensors}
    found = [(f, d) for f, d in _definitions().get(op.symbol, []) if len(d) >= len(op.args)]
    kernels = (
        {"src/cpu", "src/ops"}
        if op.kernel.place == "anywhere" or op.kind != "kernel"
        else {"src/cpu"}
    )
    if not kernels & {folder for folder, _ in found}:
        return None
    for _, definition in found:  # kernels have their outputs in front
        last = definition[len(definition) - len(op.args) :]
        derivatives |= {a.name for a, p in zip(op.args, last, strict=True) if not _is_nameless(p)}
    return derivatives


def op_parameters() -> dict[str, set[str]]:
    """The names of ops with those of their arguments."""
    found: dict[str, set[str]] = {}
    for op in load():
        found.setdefault(op.name, set()).update(a.name for a in op.args)
    return found


def seen_ops() -> list[Op]:
    """The ops whose implementation is found."""
    return [op for op in load() if _used(op) is not None]


def unread_op_parameters() -> Iterator[tuple[str, str]]:
    """(op, argument) of what no function that implements an op looks at."""
    for op in load():
        used = _used(op)
        if used is not None:
            names = [a.name for a in op.args if a.name not in ("self", "options")]
            yield from dict.fromkeys((op.name, name) for name in names if name not in used)
