"""What calls of distributed programs share: checks, settings, and who waits for their works."""

from __future__ import annotations

import contextlib
from typing import Any

import rushlight
from rushlight.distributed._kinds import ReduceOp
from rushlight.distributed._process_group import Work
from rushlight.distributed._world import (
    GroupMember,
    _get_default_group,
    get_group_rank,
)

# The works that a coalescing manager has to wait for, innermost last.
_managers: list[list[Any]] = []
# The engines that put calls together now.
_grouping: set[Any] = set()


def _check_tensor(value, name):
    if not isinstance(value, rushlight.Tensor):
        raise TypeError(
            f"Invalid function argument: `{name}` is expected to be a Tensor, but got {type(value)}"
        )


def _check_list(value, name):
    if not isinstance(value, list) or not all(isinstance(t, rushlight.Tensor) for t in value):
        raise TypeError(
            f"Invalid function argument: `{name}` is expected to be a list of tensors, but got "
            f"{type(value)}"
        )


def _element(tensor):
    """Complex numbers travel as pairs of real ones."""
    return tensor.dtype.to_real() if tensor.is_complex() else tensor.dtype


def _check_same(*tensors):
    first, *rest = [
        t for part in tensors for t in ([part] if isinstance(part, rushlight.Tensor) else part)
    ]
    for t in rest:
        if _element(t) != _element(first):
            raise ValueError(
                f"Invalid usage of tensors with different dtypesFound {first.dtype} and  {t.dtype}"
            )


def _as_real(tensor):
    """Complex numbers as pairs: what an engine written elsewhere understands."""
    return rushlight.view_as_real(tensor) if tensor.is_complex() else tensor


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Whether a reduction supports complex numbers.

    Args:
        reduceOp: the operation, such as `ReduceOp.SUM`.

    Example:
        >>> torch.distributed.distributed_c10d.supports_complex(torch.distributed.ReduceOp.MAX)
        False
    """
    return reduceOp.name not in ("MAX", "MIN", "PRODUCT", "BAND", "BOR", "BXOR")


def _check_complex(tensors, op, what):
    if any(t.is_complex() for t in tensors) and not supports_complex(op):
        raise ValueError(f"{what} does not support {op} on complex tensors")


def _options(kind, async_op, **settings):
    """Settings of a collective, which say, too, whether it is waited for at once."""
    opts = kind()
    opts.asyncOp = async_op or bool(_managers)
    for name, value in settings.items():
        if name == "reduceOp" and not isinstance(value, ReduceOp):
            raise TypeError(f"expected a ReduceOp but got {value!r}")
        setattr(opts, name, value)
    return opts


def _note(work):
    if _managers and work is not None and not getattr(work, "_is_part", False):
        _managers[-1].append(work)


def _finish(work, async_op):
    if _managers:
        _note(work)
        return work if async_op else None
    if async_op:
        return work
    if work is not None:
        work.wait()
    return None


def _finish_coalesced(work, async_op):
    """Those of several tensors give a future, and are never held back by a manager."""
    if async_op:
        return work.get_future()
    work.wait()
    return None


def _checked_list(given, name, like):
    """Tensors that one process gives, of the dtype of what each has; none elsewhere."""
    if not given:
        return []
    _check_list(given, name)
    _check_same(like, given)
    return given


def _check_root_list(given, is_root, name, role):
    if is_root and not given:
        raise ValueError(f"Argument ``{name}`` must be specified on {role} rank.")
    if given and not is_root:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{role} ranks.")


def _peer(group: Any, rank: int | None, group_rank: int | None, default: int | None = None) -> int:
    """The number within the group of a process that is given by either number."""
    if rank is not None and group_rank is not None:
        raise ValueError("Can't specify both a global rank and a group rank")
    if group_rank is not None:
        return group_rank
    if rank is None:
        if default is None:
            raise ValueError("Must specify a rank or a group rank")
        return default
    return rank if group is GroupMember.WORLD else get_group_rank(group, rank)


class _CoalescingManager:
    """Waits for what was asked for within `_coalescing_manager`."""

    def __init__(self):
        self.works: list[Work] = []

    def append(self, work=None):
        if work is not None:
            self.works.append(work)

    def wait(self):
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(group=None, device=None, async_ops=False):
    """Let collectives go together; they have ended after it, or after its `wait`.

    `device`: where the tensors lie, where the group has several engines.
    """
    group = group or _get_default_group()
    kind = None if device is None else rushlight.device(device).type
    engines = {
        engine
        for of, engine in group._backends.items()
        if kind in (None, of) and getattr(engine, "supports_coalescing", False)
    } - _grouping
    manager = _CoalescingManager()
    _managers.append(manager.works)
    _grouping.update(engines)
    for engine in engines:
        engine._start_coalescing()
    try:
        yield manager
    finally:
        _managers.pop()
        _grouping.difference_update(engines)
        for engine in engines:
            manager.append(engine._end_coalescing())
    if not async_ops:
        manager.wait()
