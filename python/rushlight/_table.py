"""`ops`: the ops of the table by name, wherever the extension keeps them.

`rushlight.add` is `ops.add`; `ops` also has those that are public in `nn.functional` only or not
at all (`ops.adam_step_`).
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from rushlight import _C

ops: Any = SimpleNamespace(**vars(_C._wrapped) | vars(_C.ops) | vars(_C._nn))


def namespace(prefix: str) -> dict[str, Callable[..., Any]]:
    """The ops whose names begin with `linalg_` or the like, by the rest of the name."""
    found = sorted(vars(_C.ops).items())
    return {n.removeprefix(prefix): f for n, f in found if n.startswith(prefix)}
