"""`GraphModule`: a module whose `forward` is written from a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import rushlight
from rushlight import Tensor, nn
from rushlight._lazy import later
from rushlight.fx._codegen import PythonCode, _PyTreeCodeGen, custom_builtins
from rushlight.fx.graph import Graph

_symbolic_trace = later("rushlight.fx._symbolic_trace")

__all__ = ["GraphModule", "reduce_graph_module"]

_numbers = itertools.count()
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


def _compile(src: str, space: dict[str, Any], note: str | None = None) -> dict[str, Any]:
    """Runs source text; tracebacks and `inspect` find its lines."""
    space = dict(space)
    key = f"<eval_with_key>.{next(_numbers)}" + (f" from {note}" if note else "")
    linecache.cache[key] = (len(src), None, src.splitlines(keepends=True), key)
    exec(compile(src, key, "exec", dont_inherit=True), space)  # annotations are values
    return space


def _forward_from_src(src: str, space: dict[str, Any], note: str | None = None) -> Callable:
    return _method_from_src("forward", src, space, note)


def _method_from_src(
    method_name: str, src: str, space: dict[str, Any], note: str | None = None
) -> Callable:
    return _compile(src, space, note)[method_name]


def _format_import_block(globals: dict[str, Any]) -> str:
    """The imports that give a file the globals of generated code."""
    known = custom_builtins()
    lines = set()
    for name, obj in globals.items():
        if name in known:
            lines.add(known[name].import_str)
            continue
        module = getattr(obj, "__module__", None) or "builtins"
        own = getattr(obj, "__qualname__", getattr(obj, "__name__", getattr(obj, "_name", None)))
        if own is None or "<" in own:
            raise RuntimeError(f"generated code uses {obj!r}, which no file can import")
        first, _, rest = own.partition(".")
        if rest:
            lines.add(f"from {module} import {first} as _{name}\n{name} = _{name}.{rest}")
        else:
            lines.add(f"from {module} import {own} as {name}")
    return "\n".join(sorted(lines))


# ---- attributes by dotted names ----


def _get_attr(model: Any, attr_name: str) -> Any:
    for part in attr_name.split("."):
        model = getattr(model, part)
    return model


def _has_attr(model: Any, attr_name: str) -> bool:
    try:
        _get_attr(model, attr_name)
    except AttributeError:
        return False
    return True


def _standing(module: Any, path: str) -> Iterator[Any]:
    """What has the beginnings of a dotted name, the shortest first, as far as something has."""
    for part in path.split("."):
        module = getattr(module, part, None)
        if module is None:
            return
        yield module


def _parent_of(to_module: nn.Module, path: str) -> tuple[nn.Module, str]:
    """The module that an attribute goes into; those on the way are made."""
    *way, field = path.split(".")
    for part in way:
        inner = getattr(to_module, part, None)
        if inner is None:
            inner = nn.Module()
            setattr(to_module, part, inner)
        to_module = inner
    return to_module, field


def _assign_attr(from_obj: Any, to_module: nn.Module, target: str) -> None:
    """Sets an attribute by a dotted name; plain tensors become buffers."""
    module, field = _parent_of(to_module, target)
    if isinstance(from_obj, Tensor) and not isinstance(from_obj, nn.Parameter):
        module.register_buffer(field, from_obj)
    else:
        setattr(module, field, from_obj)


def _copy_attr(from_module: nn.Module, to_module: nn.Module, target: str) -> None:
    """Gives one module what another has under a dotted name."""
    *way, field = target.split(".")
    source = _get_attr(from_module, ".".join(way)) if way else from_module
    value = getattr(source, field)
    module, field = _parent_of(to_module, target)
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        persistent = field not in source._non_persistent_buffers_set
        module.register_buffer(field, value, persistent=persistent)
    else:
        setattr(module, field, value)


def _del_attr(model: nn.Module, target: str) -> None:
    parent, _, field = target.rpartition(".")
    delattr(_get_attr(model, parent) if parent else model, field)


# ---- pickling ----


class _CodeOnlyModule(nn.Module):
    """A module that has attributes and generated code, but no graph: it is traced to get one."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def reduce_graph_module(body: dict[str, Any], import_block: str) -> nn.Module:
    """Rebuild a module from its attributes and code; pickles call it.

    Args:
        body: the attributes, among them the code.
        import_block: the imports that the code needs.

    For an example see `fx.GraphModule`.
    """
    code = body.get("_code") or body["code"]
    forward = _forward_from_src(import_block + "\n" + code, {})
    return _deserialize(forward, body)


def _deserialize(forward: Callable, body: dict[str, Any]) -> nn.Module:
    class Code(_CodeOnlyModule):
        pass

    body = dict(body)
    tracer_cls = body.pop("_tracer_cls", None) or _symbolic_trace.Tracer
    extras = body.pop("_tracer_extras", None) or {}
    name = body.pop("_graphmodule_cls_name", "GraphModule")
    codegen = body.pop("_graphmodule_codegen", None)
    kept = {k: v for k, v in body.items() if k not in ("_code", "_graph")}
    Code.forward = forward
    module = Code(kept)

    base: Any = tracer_cls

    class KeepModules(base):
        # The code calls what were leaves, nothing else.
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return True

    tracer = KeepModules(**extras)
    if isinstance(codegen, _PyTreeCodeGen):
        # Its `forward` takes containers apart; the names of the leaves are in the code.
        graph = _trace_leaves(tracer, module, codegen)
    else:
        graph = tracer.trace(module)
    graph._tracer_cls = tracer_cls
    if codegen is not None:
        graph.set_codegen(codegen)
    result = _make_graph_module(module, graph, class_name=name)
    for key, value in kept.items():
        if not hasattr(result, key):
            setattr(result, key, value)
    return result


def _trace_leaves(tracer: Any, module: nn.Module, codegen: _PyTreeCodeGen) -> Graph:
    """Traces generated code that takes its arguments apart: from the leaves on."""
    names = [name for name in codegen.pytree_info.orig_args if name != "self"]
    spec = codegen.pytree_info.in_spec
    values = rushlight.utils._pytree.tree_unflatten([_symbolic_trace.PH] * spec.num_leaves, spec)
    given = {
        name.partition(" :")[0].partition(" =")[0]: v for name, v in zip(names, values, strict=True)
    }
    return tracer.trace(module, concrete_args=given)


# ---- the module ----


class _WrappedCall:
    """Calls a module; where generated code raises, its lines are shown."""

    def __init__(self, cls: type, cls_call: Any) -> None:
        self.cls = cls
        self.cls_call = cls_call

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)  # type: ignore[misc]
        except Exception as error:
            self._show(error)
            raise

    @staticmethod
    def _show(error: Exception) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if frame.filename.startswith("<eval_with_key>")]
        if not ours or getattr(error, "_fx_shown", False):
            return
        frame = ours[-1]
        lines = linecache.getlines(frame.filename)
        number = frame.lineno or 1
        shown = lines[max(0, number - 3) : number]
        mark = "~" * max(map(len, shown), default=0) + " <--- HERE\n"
        text = "".join([*shown, mark, *lines[number : number + 2]])
        try:
            error._fx_shown = True  # type: ignore[attr-defined]
        except AttributeError:
            return
        print(
            f"\nCall using an FX-traced Module, line {number} of its graph's code:\n{text}",
            file=sys.stderr,
        )


class GraphModule(nn.Module):
    """A module made of a graph and of the attributes that the graph uses.

    Args:
        root: the module that modules and attributes of the graph are taken from, or a dict of
            them by dotted names.
        graph: the graph; change it in place and call `recompile`.
        class_name: the name of the module's class.
        args, kwargs: those of the constructor: `root`, `graph` and `class_name`.

    Example:
        >>> torch.fx.symbolic_trace(lambda x: x + 1)(torch.tensor([1]))
        tensor([2])
    """

    def __new__(cls, *args: Any, **kwargs: Any):
        # Each has a class of its own, because each has a `forward` of its own.
        own = next(c for c in cls.__mro__ if not vars(c).get("_is_own_class", False))
        impl: Any = type("GraphModuleImpl", (own,), {"_is_own_class": True, "__module__": __name__})
        return super().__new__(impl)

    def __init__(
        self,
        root: nn.Module | dict[str, Any],
        graph: Graph,
        class_name: str = "GraphModule",
    ) -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        self.__class__.__qualname__ = class_name
        targets = [n for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            for node in targets:
                _copy_attr(root, self, node.target)
        elif isinstance(root, dict):
            for node in targets:
                if node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not "
                        "provided in ``root``!"
                    )
            # Modules before what is inside of them.
            for target in sorted(
                dict.fromkeys(n.target for n in targets), key=lambda t: t.count(".")
            ):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {type(root)} passed for root!")
        self.meta: dict[str, Any] = {}
        kept = getattr(root, "meta", None)
        if isinstance(kept, dict):
            self.meta.update(kept)
        self._tracer_cls = None
        cls = graph._tracer_cls
        if cls is not None and "<locals>" not in cls.__qualname__:
            self._tracer_cls = cls
        self._tracer_extras = graph._tracer_extras
        self.graph = graph

    # A class attribute so that `self._code` is there before the first `recompile`.
    _code: str | None = None

    @property
    def graph(self) -> Graph:
        """The graph; setting another graph recompiles the module."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The Python code of `forward`."""
        if self._code is None:
            raise RuntimeError("Code has not been generated")
        return self._code

    def recompile(self) -> PythonCode:
        """Write `forward` again, after changes to the graph."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        code = self._graph.python_code(root_module="self")
        self.__dict__["_code"] = code.src
        self._lineno_map = code._lineno_map
        cls: Any = type(self)
        cls.forward = _forward_from_src(code.src, code.globals)
        own_call = vars(cls).get("__call__")
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, own_call)

            def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
                return cls._wrapped_call(self, *args, **kwargs)

            cls.__call__ = call_wrapped
        return code

    def _recompile_submodules(self) -> list[PythonCode]:
        return [m.recompile() for m in self.modules() if isinstance(m, GraphModule)]

    # ---- submodules ----

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Add a module under a dotted name; False if the path leads through something else."""
        way = target.rpartition(".")[0]
        free = all(isinstance(inner, nn.Module) for inner in _standing(self, way))
        if free:
            owner, field = _parent_of(self, target)
            owner.add_module(field, m)
        return free

    def delete_submodule(self, target: str) -> bool:
        """Remove the module under a dotted name; False if there is none."""
        way = [self, *_standing(self, target)]
        whole = len(way) == target.count(".") + 2
        found = whole and all(isinstance(part, nn.Module) for part in way)
        if found:
            delattr(way[-2], target.rpartition(".")[2])
        return found

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that the graph neither calls nor reads."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = node.target.split(".")
            used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
            if node.op == "call_module":
                try:
                    inner = self.get_submodule(node.target)
                except AttributeError:
                    continue
                used.update(f"{node.target}.{name}" for name, _ in inner.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name]:
            if name not in used:
                self.delete_submodule(name)

    # ---- copies and files ----

    def _state_for_copies(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        graph = state.pop("_graph")
        state["_graphmodule_cls_name"] = type(self).__name__
        if isinstance(graph._codegen, _PyTreeCodeGen):
            state["_graphmodule_codegen"] = graph._codegen
        state.pop("_lineno_map", None)
        return state

    def __reduce__(self):
        code = self._graph.python_code(root_module="self")
        return reduce_graph_module, (self._state_for_copies(), _format_import_block(code.globals))

    def _deepcopy_init(self) -> Callable[..., Any]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        result: Any = type(self).__new__(type(self))
        memo[id(self)] = result
        state = {k: v for k, v in self.__dict__.items() if k != "_graph"}
        holder = nn.Module()
        holder.__dict__.update(copy.deepcopy(state, memo))
        nn.Module.__init__(result)
        result.__dict__.update(holder.__dict__)
        type(result).__name__ = type(result).__qualname__ = type(self).__name__
        result.graph = copy.deepcopy(self._graph, memo)
        result.graph._tracer_cls = self._graph._tracer_cls
        return result

    def __copy__(self) -> GraphModule:
        result = _make_graph_module(self, self.graph.__deepcopy__(), type(self).__name__)
        result.meta = getattr(self, "meta", {})
        return result

    def to_folder(self, folder: str | Path, module_name: str = "FxModule") -> None:
        """Write a folder that can be imported: code, and the tensors and modules beside it.

        Args:
            folder: made if it is not there.
            module_name: the name of the class.
        """
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        rushlight.save(self.state_dict(), folder / "state_dict.pt")
        code = self._graph.python_code(root_module="self")
        tab = "    "
        lines = [_format_import_block(code.globals), "from pathlib import Path"]
        if "torch" not in code.globals:
            lines.append(custom_builtins()["torch"].import_str)
        lines += ["", f"class {module_name}(torch.nn.Module):", f"{tab}def __init__(self):"]
        lines.append(f"{tab * 2}super().__init__()")
        lines.append(f"{tab * 2}folder = Path(__file__).parent")
        for name, module in self.named_children():
            rushlight.save(module, folder / f"{name}.pt")
            lines.append(
                f"{tab * 2}self.{name} = torch.load(folder / '{name}.pt', weights_only=False)"
            )
        for name, buffer in self._buffers.items():
            if buffer is not None:
                made = f"torch.empty({list(buffer.shape)}, dtype={buffer.dtype})"
                lines.append(f"{tab * 2}self.register_buffer('{name}', {made})")
        for name, parameter in self._parameters.items():
            if parameter is not None:
                made = f"torch.empty({list(parameter.shape)}, dtype={parameter.dtype})"
                lines.append(f"{tab * 2}self.{name} = torch.nn.Parameter({made})")
        lines.append(f"{tab * 2}self.load_state_dict(torch.load(folder / 'state_dict.pt'))")
        lines += [tab + line for line in code.src.strip("\n").split("\n")]
        (folder / "module.py").write_text("\n".join(lines) + "\n")
        (folder / "__init__.py").write_text("from .module import *\n")

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        **options: Any,
    ) -> str:
        """Print the code of this module and of its graph modules.

        Args:
            print_output: print it, too.
            include_stride: has no effect.
            include_device: has no effect.
            colored: has no effect.
            options: has no effect.
        """
        code = self._graph.python_code(root_module="self", verbose=True).src.strip("\n")
        body = "\n".join("    " + line if line.strip() else "" for line in code.split("\n"))
        text = f"class {type(self).__name__}(torch.nn.Module):\n{body.rstrip()}\n"
        for child in self.children():
            if isinstance(child, GraphModule):
                inner = child.print_readable(print_output=False)
                text += (
                    "\n" + "\n".join("    " + line for line in inner.rstrip().split("\n")) + "\n"
                )
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        return "\n".join([super().__str__(), self.code, "# print_readable() shows more"])

    def _register_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self.graph._replace_hooks.append(f)

    def _register_create_node_hook(self, f: Callable[..., Any]) -> None:
        self.graph._create_hooks.append(f)

    def _register_erase_node_hook(self, f: Callable[..., Any]) -> None:
        self.graph._erase_hooks.append(f)


_kind: type[GraphModule] = GraphModule  # what is made where nothing is said


def _make_graph_module(*args: Any, graph_module_cls: Any = None, **kwargs: Any) -> GraphModule:
    """A GraphModule, lazy if that is asked for (`_lazy_graph_module`), or one of another class."""
    return (_kind if graph_module_cls is None else graph_module_cls)(*args, **kwargs)
