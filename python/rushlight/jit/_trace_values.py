"""Arguments and results of programs that are traced: containers keep their structure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight import _C, Tensor
from rushlight._C import Value
from rushlight.jit._recording import TracingState
from rushlight.utils import _pytree
from rushlight.utils._python_dispatch import wrappers_in

__all__ = ["Inputs", "Outputs"]

_CONTAINER = (
    "the program gives one of this very length or of these keys, whatever its inputs are; a tuple "
    "or a NamedTuple is right, and strict=False says that you know it"
)


# ---- what comes in ----


def _type_of(thing: Any) -> str:
    """The type of an argument, as programs spell it."""
    if isinstance(thing, Tensor):
        return "Tensor"
    if isinstance(thing, tuple):
        return f"Tuple[{', '.join(map(_type_of, thing))}]" if thing else "Tuple[()]"
    if isinstance(thing, list | dict) and thing:
        values = thing if isinstance(thing, list) else list(thing.values())
        kinds = {_type_of(value) for value in values}
        keys = {type(key).__name__ for key in thing} if isinstance(thing, dict) else {"str"}
        if len(kinds) == 1 and len(keys) == 1 and keys <= {"str", "int"}:
            (kind,), (key,) = kinds, keys
            return f"List[{kind}]" if isinstance(thing, list) else f"Dict[{key}, {kind}]"
    raise RuntimeError(
        f"Type '{type(thing).__name__}' cannot be traced. Arguments are tensors, tuples of what "
        "can be an argument, and lists and dicts whose items are of one type; a function around "
        "the program gives it numbers and None"
    )


class Inputs:
    """Arguments for a run that is traced; their tensors are values of the graph."""

    def __init__(self, trace: TracingState) -> None:
        self.trace = trace
        self._seen: set[int] = set()

    def add(self, name: str, thing: Any) -> Any:
        """One more argument; what the program is to get for it."""
        for wrapper in wrappers_in(thing):
            raise RuntimeError(
                f"Arguments of type {type(wrapper).__name__} cannot be traced, for their class "
                "runs their ops: give the tensors that they are made of"
            )
        value = self.trace.graph().addInput(name).setType(_C._parse_type(_type_of(thing)))
        given = _pytree.tree_map_only(Tensor, self._fresh, thing)
        self.trace.spread(value, given)
        return given

    def _fresh(self, tensor: Tensor) -> Tensor:
        """The same tensor twice is two arguments, and none is a tensor of the module."""
        if id(tensor) in self._seen or self.trace.root.path_of(tensor) is not None:
            return _C._unwatched(lambda: tensor.view(tensor.shape))
        self._seen.add(id(tensor))
        return tensor


# ---- what goes out ----


class Outputs:
    """What a program gave, as a value of the graph."""

    def __init__(self, trace: TracingState, strict: bool) -> None:
        self.trace, self.strict = trace, strict

    def value(self, thing: Any) -> Value:
        """The value of a tensor or a container."""
        if isinstance(thing, Tensor):
            return self.trace.value(thing)
        if isinstance(thing, tuple):
            return self.trace.node("prim::TupleConstruct", [self.value(t) for t in thing]).output()
        if isinstance(thing, list) and thing:
            if self.strict:
                self.trace.warn("Encountering a list at the output of the tracer", _CONTAINER)
            return self.trace.node("prim::ListConstruct", [self.value(t) for t in thing]).output()
        if isinstance(thing, dict) and thing:
            return self._dict(thing)
        if thing is None:
            raise RuntimeError(
                "The traced function didn't return any values! What it does beside is no part of "
                "the program"
            )
        raise RuntimeError(
            "Only tensors, lists, tuples of tensors, or dictionaries of tensors can be output from "
            f"a traced program, but got {type(thing).__name__}"
        )

    def _dict(self, thing: dict) -> Value:
        if self.strict:
            raise RuntimeError(f"Encountering a dict at the output of the tracer: {_CONTAINER}")
        kind = _C._parse_type(_type_of(thing))
        flat = [self.value(item) if i else self.trace.value(item) for i, item in _flat(thing)]
        return self.trace.node("prim::DictConstruct", flat).output().setType(kind)


def _flat(thing: dict) -> Iterator[tuple[int, Any]]:
    for pair in thing.items():
        yield from enumerate(pair)
