"""Tracing of statements that a tracer cannot see: assertions and annotations."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import nn
from rushlight.fx._symbolic_trace import Tracer
from rushlight.fx.annotate import annotate
from rushlight.fx.graph import Graph

__all__ = ["AST_Rewriter", "RewritingTracer"]


class AST_Rewriter(ast.NodeTransformer):
    """Rewrites statements as calls: `assert` as `torch._assert`, `x: T = v` as `annotate(v, T)`.

    For an example see `fx.experimental.rewriter.RewritingTracer`.
    """

    def rewrite(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Rewrite the statements of a function; return the function itself if there are none."""
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
        definition = tree.body[0]
        wanted = (ast.Assert, ast.AnnAssign)
        if not isinstance(definition, ast.FunctionDef) or not any(
            isinstance(node, wanted) for node in ast.walk(definition)
        ):
            return fn
        definition.decorator_list = []
        changed = ast.fix_missing_locations(self.visit(tree))
        # What the function knows from around it becomes global to its copy.
        space = {**fn.__globals__, **inspect.getclosurevars(fn).nonlocals}
        space.update(_rewritten_assert=rushlight._assert, _rewritten_annotate=annotate)
        exec(compile(changed, inspect.getfile(fn), "exec"), space)
        made = space[definition.name]
        made.__defaults__, made.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
        return functools.wraps(fn)(made)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        message = node.msg if node.msg is not None else ast.Constant("")
        return ast.copy_location(ast.Expr(_call("_rewritten_assert", node.test, message)), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return node
        value = _call("_rewritten_annotate", node.value, node.annotation)
        return ast.copy_location(ast.Assign([node.target], value), node)


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


class RewritingTracer(Tracer):
    """A tracer that first rewrites the functions and the modules' `forward`.

    Example:
        >>> from rushlight.fx.experimental.rewriter import RewritingTracer
        >>> from rushlight.nn.modules.activation import ReLU
        >>> graph = RewritingTracer().trace(ReLU())
        >>> [node.op for node in graph.nodes]
        ['placeholder', 'call_function', 'output']
    """

    def trace(self, root, concrete_args=None) -> Graph:
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn: Any) -> Any:
    """A module with its parts, or a function, rewritten; the original stays as it is."""
    if not isinstance(fn, nn.Module):
        return AST_Rewriter().rewrite(fn)
    kind = type(fn)
    if not kind.__module__.startswith(("rushlight.nn", "torch.nn")):
        forward = AST_Rewriter().rewrite(kind.forward)
        if forward is not kind.forward:
            space = {"forward": forward, "__module__": kind.__module__}
            kind = type(kind.__name__, (kind,), space)
    made = object.__new__(kind)
    made.__dict__.update(fn.__dict__)
    made.__dict__["_modules"] = {
        name: None if part is None else _rewrite(part) for name, part in fn._modules.items()
    }
    return made
