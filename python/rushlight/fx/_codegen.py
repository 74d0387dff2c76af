"""From a graph to Python: names, and the text of `forward`."""

from __future__ import annotations

import builtins
import enum
import keyword
import math
import re
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import rushlight
from rushlight import _C, Tensor, _ops
from rushlight._sym import SymBool, SymFloat, SymInt
from rushlight.fx import _pytree as fx_pytree
from rushlight.fx.node import Node, _get_qualified_name, _type_repr, map_arg
from rushlight.fx.tensor_type import TensorType
from rushlight.utils import _pytree as pytree
from rushlight.utils._dtype_abbrs import dtype_abbrs

__all__ = ["CodeGen", "PythonCode"]

# What an operator of the module `operator` looks like.
reflectable_magic_methods = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "floordiv": "{} // {}",
    "truediv": "{} / {}",
    "div": "{} / {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "getitem": "{}[{}]",
    "matmul": "{} @ {}",
}
magic_methods = {
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "gt": "{} > {}",
    "le": "{} <= {}",
    "ge": "{} >= {}",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
    **reflectable_magic_methods,
}
inplace_methods = {
    "iadd": "{} += {}",
    "iand": "{} &= {}",
    "ifloordiv": "{} //= {}",
    "ilshift": "{} <<= {}",
    "imod": "{} %= {}",
    "imul": "{} *= {}",
    "imatmul": "{} @= {}",
    "ior": "{} |= {}",
    "ipow": "{} **= {}",
    "irshift": "{} >>= {}",
    "isub": "{} -= {}",
    "itruediv": "{} /= {}",
    "ixor": "{} ^= {}",
    "setitem": "{}[{}] = {}",
}


class _Builtin(NamedTuple):
    """A name that every generated file knows, and how it gets it."""

    import_str: str
    obj: Any


def _torch_import() -> str:
    """How generated files import this package: by PyTorch's name under the alias."""
    return "import torch" if rushlight.__name__ == "torch" else "import rushlight as torch"


def custom_builtins() -> dict[str, _Builtin]:
    """By name, what generated code uses without saying where it is from."""
    package = "torch" if rushlight.__name__ == "torch" else "rushlight"
    return {
        "inf": _Builtin("from math import inf", math.inf),
        "nan": _Builtin("from math import nan", math.nan),
        "NoneType": _Builtin("NoneType = type(None)", type(None)),
        "torch": _Builtin(_torch_import(), rushlight),
        "device": _Builtin(f"from {package} import device", _C.device),
        "fx_pytree": _Builtin(f"import {package}.fx._pytree as fx_pytree", fx_pytree),
        "pytree": _Builtin(f"import {package}.utils._pytree as pytree", pytree),
    }


_RESERVED = {"inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree"}


def _snake_case(s: str) -> str:
    """LayerNorm → layer_norm."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", s).lower()


def _is_magic(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


class Namespace:
    """Gives names that are not taken yet."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A new name that looks like `candidate`; the same again for the same object.

        Args:
            candidate: any text.
            obj: what it is the name of; None means nothing in particular.
        """
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        name = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if name[0].isdigit():
            name = f"_{name}"
        numbered = re.fullmatch(r"(.*)_(\d+)", name, re.DOTALL)
        base, number = (numbered[1], int(numbered[2])) if numbered else (name, 0)
        number = number or self._base_count.get(base, 0)
        while name in self._used_names or self._is_illegal_name(name, obj):
            number += 1
            name = f"{base}_{number}"
        self._used_names.add(name)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = name
        return name

    def _is_illegal_name(self, name: str, obj: Any) -> bool:
        if keyword.iskeyword(name):
            return True
        if hasattr(builtins, name):
            return getattr(builtins, name) is not obj
        if name in _RESERVED:
            return custom_builtins()[name].obj is not obj
        return False

    def _rename_object(self, obj: Any, name: str) -> None:
        self._obj_to_name[obj] = name
        self._used_names.add(name)

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Says what a name that is given already is the name of."""
        self._obj_to_name.setdefault(obj, name)


@dataclass
class PythonCode:
    """The source of a function and the globals that it needs.

    Args:
        src: the source.
        globals: what names in it mean.

    For an example see `fx.Graph`.
    """

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None


def _format_target(base: str, target: str) -> str:
    """`base.a.b`; `getattr(base, "0")` for what is no identifier."""
    for part in target.split("."):
        if part.isidentifier() and not keyword.iskeyword(part):
            base = f"{base}.{part}"
        else:
            quoted = f'"{part}"' if re.fullmatch(r"[\w@ -]*", part) else repr(part)
            base = f"getattr({base}, {quoted})"
    return base


def _is_from_torch(obj: Any) -> bool:
    module = getattr(obj, "__module__", None)
    if isinstance(module, str):
        return module.partition(".")[0] in ("rushlight", "torch")
    if isinstance(obj, types.MethodDescriptorType | types.WrapperDescriptorType):
        return issubclass(obj.__objclass__, _C.TensorBase)
    return False


class _PyTreeInfo(NamedTuple):
    """What containers inputs and outputs have to those who call."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class _Writer:
    """Writes the lines of one graph."""

    def __init__(self, root_module: str, namespace: Namespace, verbose: bool = False) -> None:
        self.root_module = root_module
        self.verbose = verbose
        self.namespace = namespace
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.body: list[str] = []
        self.free_vars: list[str] = []
        self.returns = ""
        for name, (_, obj) in custom_builtins().items():
            self.add_global(name, obj)

    def add_global(self, hint: str, obj: Any, own: bool = False) -> str:
        """The name by which code says an object; for torch's, where it is, unless it needs one of
        its own.
        """
        if not own and _is_from_torch(obj) and obj is not _C.device:
            return _get_qualified_name(obj)
        name = self.namespace.create_name(hint.replace(".", "_"), obj)
        self.globals[name] = obj
        return name

    def type(self, kind: Any) -> str:
        """A type, for an annotation."""
        if kind == ():
            return "()"
        if isinstance(kind, TensorType):
            base = self.add_global(_type_repr(TensorType), TensorType)
            sizes = [repr(s) if isinstance(s, int) else self.type(s) for s in kind.__args__]
            return f"{base}[{','.join(sizes) or '()'}]"
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin is not None:
            if origin in (types.UnionType, typing.Union):
                hint, origin = "typing_Union", typing.Union
            else:
                hint = _type_repr(origin)
            base = self.add_global(hint, origin)
            parts = [
                "[" + ", ".join(map(self.type, part)) + "]"
                if isinstance(part, list)
                else self.type(part)
                for part in inner
            ]
            return f"{base}[{','.join(parts)}]" if parts else base
        if kind is Ellipsis:
            return "..."
        if isinstance(kind, str):
            return repr(kind)
        return self.add_global(_type_repr(kind), kind)

    def value(self, arg: Any) -> str:
        """An argument."""
        if isinstance(arg, tuple):
            if hasattr(arg, "_fields"):
                name = self.add_global(_type_repr(type(arg)), type(arg))
                return f"{name}({', '.join(map(self.value, arg))})"
            body = ", ".join(map(self.value, arg))
            return f"({body},)" if len(arg) == 1 else f"({body})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.value, arg))}]"
        if isinstance(arg, dict):
            pairs = (f"{self.value(k)}: {self.value(v)}" for k, v in arg.items())
            return "{" + ", ".join(pairs) + "}"
        if isinstance(arg, slice):
            return f"slice({', '.join(map(self.value, (arg.start, arg.stop, arg.step)))})"
        if isinstance(arg, enum.Enum):
            return f"{self.add_global(_type_repr(type(arg)), type(arg))}.{arg.name}"
        if isinstance(arg, _ops.OpOverload | _ops.OpOverloadPacket):
            return _get_qualified_name(arg)
        if isinstance(arg, type) or (callable(arg) and hasattr(arg, "__name__")):
            return self.add_global(_get_qualified_name(arg), arg)
        return repr(arg)

    def arguments(self, args: Any, kwargs: Any) -> str:
        """The text between the parentheses of a call."""
        keywords = (f"{name} = {self.value(value)}" for name, value in kwargs.items())
        return ", ".join([*map(self.value, args), *keywords])

    def node(self, node: Node) -> str:
        """The statement of a node."""
        name = repr(node)
        kind = f" : {self.type(node.type)}" if node.type is not None else ""
        if self.verbose and not kind:
            kind = _type_annotation(node.meta.get("val"))
        if node.op == "placeholder":
            default = f" = {self.value(node.args[0])}" if node.args else ""
            self.free_vars.append(f"{node.target}{kind}{default}")
            raw = node.target.replace("*", "")
            return f"{name} = {raw}\n" if raw != name else ""
        if node.op == "call_method":
            first, *others = node.args
            call = _format_target(self.value(first), node.target)
            return f"{name}{kind} = {call}({self.arguments(others, node.kwargs)})"
        if node.op == "call_function":
            return self.function(node, name, kind)
        if node.op == "call_module":
            call = _format_target(self.root_module, node.target)
            return f"{name}{kind} = {call}({self.arguments(node.args, node.kwargs)})"
        if node.op == "get_attr":
            return f"{name}{kind} = {_format_target(self.root_module, node.target)}"
        if node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.type(node.type)}"
            return ""
        raise NotImplementedError(f"node: {node.op} {node.target}")

    def function(self, node: Node, name: str, kind: str) -> str:
        """The statement of a call of a function."""
        target = node.target
        if getattr(target, "__module__", None) == "_operator" and not node.kwargs:
            values = [self.value(arg) for arg in node.args]
            if target.__name__ in magic_methods:
                return f"{name}{kind} = {magic_methods[target.__name__].format(*values)}"
            if target.__name__ in inplace_methods:
                statement = inplace_methods[target.__name__].format(*values)
                return f"{statement};  {name}{kind} = {values[0]}"
        qualified = _get_qualified_name(target)
        wrapped = bool(node.meta.get("is_wrapped", False))
        text = self.add_global(qualified, target, wrapped)
        attribute = node.args[1] if len(node.args) == 2 else None
        if text == "getattr" and isinstance(attribute, str) and attribute.isidentifier():
            return f"{name}{kind} = {_format_target(self.value(node.args[0]), attribute)}"
        if wrapped:
            self.wrapped.setdefault(text)
        return f"{name}{kind} = {text}({self.arguments(node.args, node.kwargs)})"


def _plain(parameter: str) -> str:
    """The name of a parameter without annotation and default."""
    return re.match(r"[\w*]+", parameter)[0]  # type: ignore[index]


def _type_annotation(value: Any) -> str:
    """An annotation with what is known of a node's value: `: "f32[2, 3]"`."""
    if isinstance(value, Tensor):
        sizes = ", ".join(map(str, value.shape))
        return f': "{dtype_abbrs.get(value.dtype, value.dtype)}[{sizes}]"'
    return f': "Sym({value})"' if isinstance(value, SymInt | SymBool | SymFloat) else ""


class CodeGen:
    """Writes the Python of a graph; a subclass may change how values come in and go out.

    Example:
        >>> graph = torch.fx.symbolic_trace(lambda x: x + 2).graph
        >>> print(graph.python_code("self").src.strip())
        def forward(self, x):
            add = x + 2;  x = None
            return add
    """

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line with `def`, and what comes before the first step."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, *, repr_fn: Callable[[Any], str] = repr) -> str:
        """The line with `return`."""
        return f"return {repr_fn(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """From what callers pass to the values of the inputs."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """From the value of the output to what callers get."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the lines of this class use."""
        return []

    def _gen_python_code(
        self, nodes: Any, root_module: str, namespace: Namespace, *, verbose: bool = False
    ) -> PythonCode:
        writer = _Writer(root_module, namespace, verbose)
        for name, value in self.additional_globals():
            writer.add_global(name, value)
        # A value is dropped behind the step that uses it last.
        last_uses: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(nodes):

            def note(used: Node, user: Node = node) -> Node:
                if used not in seen:
                    seen.add(used)
                    last_uses.setdefault(user, []).append(used)
                return used

            map_arg(node.args, note)
            map_arg(node.kwargs, note)
        body, lines, previous = [], {}, None
        for node in nodes:
            if verbose:
                trace = node.stack_trace if node.op not in ("placeholder", "output") else None
                if trace and trace != previous:
                    body.append(_summary(trace))
                    previous = trace
            text = writer.node(node)
            if node.op == "output":
                text = self.generate_output(node.args[0], repr_fn=writer.value)
            if text:
                lines[len(body)] = node
                body.append(
                    text if node.op == "placeholder" else text + self._drop(node, last_uses)
                )
        if not body:
            body.append("pass\n")
        if self._body_transformer is not None:
            body = self._body_transformer(body)
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
        head = self.gen_fn_def(writer.free_vars, writer.returns)
        code = "".join(body).lstrip("\n")
        code = "\n".join("    " + line for line in code.split("\n"))
        source = f"\n{wraps}\n\n{head}\n{code}" if wraps else f"\n\n\n{head}\n{code}"
        return PythonCode(source, writer.globals)

    @staticmethod
    def _drop(node: Node, last_uses: dict[Node, list[Node]]) -> str:
        """What ends the line of a node: names that nobody needs any more become None."""
        if node.op in ("placeholder", "output"):
            return "\n"
        dropped = [*last_uses.get(node, [])]
        if not node.users:
            dropped.append(node)
        names = " = ".join([repr(n) for n in dropped] + ["None"])
        return f";  {names}\n" if dropped else "\n"


def _summary(trace: str) -> str:
    """A comment with the last place of a stack trace."""
    lines = [line.strip() for line in trace.strip().splitlines()]
    places = [i for i, line in enumerate(lines) if line.startswith("File ")]
    if not places:
        return ""
    match = re.match(r'File "(.*)", line (\d+), in (.*)', lines[places[-1]])
    code = lines[places[-1] + 1] if places[-1] + 1 < len(lines) else ""
    place = f"{match[1]}:{match[2]} in {match[3]}" if match else lines[places[-1]]
    return f"\n# File: {place}, code: {code}\n"


class _PyTreeCodeGen(CodeGen):
    """Callers pass and get containers; the graph has their leaves."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return fx_pytree.tree_flatten_spec(inputs, self.pytree_info.in_spec)

    def process_outputs(self, out: Any) -> Any:
        spec = self.pytree_info.out_spec
        if spec is None:
            return out
        return pytree.tree_unflatten(out if isinstance(out, list | tuple) else [out], spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The original arguments, and a line that takes them apart."""
        names = self.pytree_info.orig_args
        head = ["self"] if names[:1] != ["self"] else []
        text = super().gen_fn_def(head + names, maybe_return_annotation)
        if not free_vars:
            return text
        plain = [_plain(name) for name in free_vars if name != "self"]
        passed = ", ".join(name for name in names if name != "self")
        spec = "self._in_spec"
        return f"{text}\n    {', '.join(plain)}, = fx_pytree.tree_flatten_spec([{passed}], {spec})"

    def generate_output(self, output_args: Any, *, repr_fn: Callable[[Any], str] = repr) -> str:
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args, repr_fn=repr_fn)
        return f"return pytree.tree_unflatten({repr_fn(output_args)}, self._out_spec)"


# Names by which programs look for these.
_Namespace = Namespace
