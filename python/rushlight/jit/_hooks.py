"""Forward hooks of modules as methods of programs."""

from __future__ import annotations

from typing import Any

from rushlight import nn
from rushlight.jit import _functions, _meanings
from rushlight.jit._meanings import unit


def hooks_of(module: nn.Module) -> tuple[list[Any], list[Any]]:
    """The functions before and behind `forward`."""
    return list(module._forward_pre_hooks.values()), list(module._forward_hooks.values())


def compile_hooks(module: nn.Module, owner: Any) -> None:
    """Compiles the hooks of a module, and what calls them around `forward`."""
    before, behind = hooks_of(module)
    if not before and not behind:
        return
    compiled: dict[str, Any] = {}
    for hook in (*before, *behind):
        name = hook.__name__
        if compiled.setdefault(name, hook) is not hook:
            raise RuntimeError(
                f"Hook '{name}' on {type(module).__name__} has at least two different python "
                "definitions: give each a name of its own"
            )
        if not unit.has_method(owner.name, name):
            _functions.compile_method(owner.name, name, hook)
        elif hasattr(type(module), name):
            raise RuntimeError(f"Can't define hook: {name} on class, a method has that name")
    unit.set_hooks(owner.name, [h.__name__ for h in before], [h.__name__ for h in behind])
    rows, _ = unit.signature(f"{owner.name}.forward")
    names = [name for name, _ in rows[1:]]
    lines = [f"  given = ({''.join(name + ', ' for name in names)})"]
    for number, hook in enumerate(before):
        kind = unit.signature(f"{owner.name}.{hook.__name__}")[1]
        called = f"self.{hook.__name__}(given)"
        if kind == "NoneType":
            lines.append(f"  {called}")
        elif kind.startswith("Tuple["):
            lines.append(f"  given = {called}")
        else:
            lines.append(f"  one{number} = {called}")
            lines.append(f"  given = (one{number}, )")
    lines.append("  result = self.forward(*given)")
    for hook in behind:
        kind = unit.signature(f"{owner.name}.{hook.__name__}")[1]
        called = f"self.{hook.__name__}(given, result)"
        lines.append(f"  {called}" if kind == "NoneType" else f"  result = {called}")
    head = ", ".join(f"{name}: {text}" for name, text in rows[1:])
    source = f"def _call_with_hooks(self{', ' if head else ''}{head}):\n"
    source += "\n".join(lines) + "\n  return result\n"
    scope = _meanings.Names()
    unit.compile("_call_with_hooks", source, "", 1, scope, owner.name, "method", None)
