"""What an exported module asks of its arguments before it runs."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor, nn
from rushlight.utils import _pytree as pytree

__all__ = ["GuardsFn", "check_call", "static_guards"]

_PLAIN = (int, float, bool, str, type(None))


class GuardsFn(nn.Module):
    """Raises AssertionError where an argument differs from what was exported.

    Args:
        names: of the arguments, in order.
        guards: conditions on them in Python: "x.size()[0] == 2".
    """

    def __init__(self, names: list[str], guards: list[str]) -> None:
        super().__init__()
        self._names, self._guards = names, guards
        source = f"lambda {', '.join(names)}: ({''.join(f'{g}, ' for g in guards)})"
        self._conditions = eval(compile(source, "<guards of an exported module>", "eval"), {})

    def forward(self, *args: Any) -> None:
        """Check the arguments."""
        try:
            held = self._conditions(*args)
        except (IndexError, AttributeError, TypeError) as error:
            raise AssertionError(f"Guard failed: {self._first_failing(args, error)}") from error
        for guard, fine in zip(self._guards, held, strict=True):
            if not fine:
                raise AssertionError(f"Guard failed: {guard}")

    def _first_failing(self, args: tuple[Any, ...], error: Exception) -> str:
        space = dict(zip(self._names, args, strict=True))
        for guard in self._guards:
            try:
                if not eval(guard, {}, space):
                    return guard
            except (IndexError, AttributeError, TypeError):
                return guard
        return str(error)


def static_guards(name: str, value: Any) -> list[str]:
    """Conditions that an argument is built like `value`, whose sizes are numbers."""
    if isinstance(value, Tensor):
        return [f"{name}.size()[{i}] == {n}" for i, n in enumerate(value.shape)]
    if value is None or isinstance(value, bool):
        return [f"{name} is {value}"]
    return [f"{name} == {value!r}"] if isinstance(value, _PLAIN) else []


def check_call(in_spec: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a call in the order of the spec of all arguments.

    Raises:
        ValueError: arguments are not built like those that were exported.
    """
    _, spec_kwargs = in_spec.children()
    expected = list(spec_kwargs.context or ())
    if set(expected) != set(kwargs):
        raise ValueError(
            f"Ran into a kwarg keyword mismatch: Got the following keywords {list(kwargs)} but "
            f"expected {expected}"
        )
    ordered = {name: kwargs[name] for name in expected}
    _, given = pytree.tree_flatten((args, ordered))
    if given != in_spec:
        raise ValueError(
            "Trying to flatten user inputs with exported input tree spec: \n"
            f"{in_spec}\nbut actually got inputs with tree spec of: \n{given}.\n"
            "Pass as many arguments, in the same containers, as those that were exported."
        )
    return ordered
