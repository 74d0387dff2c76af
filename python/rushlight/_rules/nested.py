"""The way of a call with nested tensors: which rule it has, by its name and the table's kinds."""

from __future__ import annotations

import rushlight
from rushlight import Tensor
from rushlight._rules import kinds

__all__: list[str] = []

# Questions and settings, which concern the tensor itself.
_PLAIN = {"__get__", "__set__", "__delete__"}


def find_nested(args, kwargs):
    """The nested tensors among arguments and in lists of them."""
    found = []
    for value in (*args, *kwargs.values()):
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, Tensor) and item.is_nested:
                found.append(item)
    return found


def is_jagged(t) -> bool:
    """Whether a nested tensor has the jagged layout."""
    return hasattr(t, "_ragged_idx")


def _layout(nested, name):
    """The module with the rules of these nested tensors."""
    kinds = {is_jagged(t) for t in nested}
    if len(kinds) == 2:
        raise RuntimeError(f"{name}(): nested tensors of the jagged and strided layouts do not mix")
    if kinds == {True}:
        from rushlight._rules.jagged_layers import layout
    else:
        from rushlight._rules.strided_layers import layout
    return layout


def call(func, args, kwargs):
    """A call above autograd: what the rules do is recorded."""
    name = getattr(func, "__name__", "")
    if name in _PLAIN:
        attribute = getattr(func.__self__, "__name__", "")
        if name == "__get__":
            made = _layout(args[:1], attribute).attribute(attribute, args[0])
            if made is not NotImplemented:
                return made
        return _plainly(func, args, kwargs)
    nested = find_nested(args, kwargs)
    if not nested:
        return _plainly(func, args, kwargs)
    layout = _layout(nested, name)
    rule = layout.RULES.get(name)
    if rule is not None:
        made = rule(func, *args, **kwargs)
        if kinds.is_view(name):
            for t in made if isinstance(made, tuple) else (made,):
                _remember(t, nested[0], layout)
        return made
    if name.endswith("_") and not name.startswith("__"):
        return _plainly(func, args, kwargs)  # recorded as it stands; `dispatch` does it
    if kinds.is_elementwise(name) and not kwargs.get("inplace"):
        return layout.elementwise(func, args, kwargs)
    if kinds.is_op(name):
        made = _along_dims(layout, func, name, args, kwargs)
        if made is not NotImplemented:
            return made
    made = _plainly(func, args, kwargs)
    if made is NotImplemented and name in ("__eq__", "__ne__"):  # nothing that it goes with
        return (args[0] is args[1]) == (name == "__eq__")
    return made


def _along_dims(layout, *call):
    """What an op makes that the layout handles by where its dims are, if it does."""
    along = getattr(layout, "call_along_dims", None)
    return NotImplemented if along is None else along(*call)


def _remember(made, t, layout):
    """A view of a nested tensor knows its root."""
    if made is t or getattr(made, "_root", t) is not None:
        return
    memories = {layout.memory(each).untyped_storage()._cdata for each in (made, t)}
    if len(memories) == 1:
        made._root = t if t._root is None else t._root


def _plainly(func, args, kwargs):
    with rushlight._C.DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def _with_tensors(func, args, like):
    """Numbers that stand for tensors, as 0-d tensors that do not promote what they meet."""
    wanted = zip(args, func._schema.arguments, strict=False)
    if all(isinstance(a, Tensor) or w.type != "Tensor" for a, w in wanted):
        return args
    wanted = zip(args, func._schema.arguments, strict=False)
    return tuple(
        _number(a, like) if w.type == "Tensor" and not isinstance(a, Tensor) else a
        for a, w in wanted
    )


def _number(number, like):
    real = isinstance(number, float) and like.dtype.is_floating_point
    return rushlight.tensor(number, dtype=like.dtype if real else None, device=like.device)


def _update(func, args, kwargs, layout):
    """A step of an optimiser, which takes lists: of parameters, gradients, states."""

    def flat(value):
        return [layout.memory(t) if t.is_nested else t for t in value] if value else value

    lists = [a if isinstance(a, (list, tuple)) and a else () for a in args]
    for row in zip(*(a for a in lists if len(a) == len(args[0])), strict=True):
        layout.same_places(func, [t for t in row if t.is_nested])
    func(*(flat(a) if isinstance(a, (list, tuple)) else a for a in args), **kwargs)


def dispatch(func, args, kwargs):
    """A call below autograd.

    Derivatives of the table hold for what acts on elements; anything else is for calls that are not
    recorded.
    """
    name = func.overloadpacket.__name__
    nested = find_nested(args, kwargs)
    layout = _layout(nested, name)
    recorded = any(t.requires_grad for t in nested)
    args = _with_tensors(func, args, nested[0])
    if name.endswith("_") and isinstance(args[0], (list, tuple)):
        return _update(func, args, kwargs, layout)
    if name.endswith("_") and kinds.is_op(name):
        return layout.in_place(func, name, args, kwargs)
    elementwise = kinds.is_elementwise(name)
    if elementwise:
        return layout.elementwise(func, args, kwargs)
    rule = layout.RULES.get(name)
    if rule is not None and (name in layout.SAFE or not recorded):
        return rule(func, *args, **kwargs)
    if not recorded:
        made = _along_dims(layout, func, name, args, kwargs)
        if made is not NotImplemented:
            return made
    raise NotImplementedError(f"{func}: nested tensors of this layout have no rule for it")
