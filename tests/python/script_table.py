"""The table of constructs of TorchScript's language reference: `script_expressions.py` and `script_statements.py`."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Table:
    """Functions, or classes of modules, as programs, each with the arguments that it is called with.

    Args:
        rows: they compile in PyTorch and here, and give what Python gives.
        beyond_rows: they compile here alone.
        refusals: with the words of the error in the place of arguments.
    """

    rows: list[Any] = field(default_factory=list)
    beyond_rows: list[Any] = field(default_factory=list)
    refusals: list[Any] = field(default_factory=list)

    def row(self, *arguments, to=None):
        def add(function):
            (self.rows if to is None else to).append((function, arguments))
            return function

        return add

    def beyond(self, *arguments):
        return self.row(*arguments, to=self.beyond_rows)

    def refused(self, words):
        return self.row(words, to=self.refusals)
