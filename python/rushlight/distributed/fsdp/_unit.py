"""A unit of FSDP: parameters that are gathered together and let go together.

While a unit computes its modules have the whole parameters, which are the results of one autograd
node, whose backward reduces all gradients and hands each process its part. What backward saves of
the whole is its place alone (`saved_places`), so that the whole can go after forward and is
gathered again once backward asks for it.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import rushlight
from rushlight import nn
from rushlight.autograd import Function, Variable
from rushlight.autograd.graph import saved_tensors_hooks

__all__ = ["Place", "Unit", "saved_places"]


class Place(NamedTuple):
    """Where a parameter is: its module, its name there, and its number among the unit's."""

    module: nn.Module
    name: str
    fqn: str
    index: int


class _Unshard(Function):
    """From the parts to all parameters; back, from all gradients to this process's parts."""

    @staticmethod
    def forward(ctx, unit, again, *leaves):
        ctx.unit, ctx.again = unit, again
        ctx.set_materialize_grads(False)
        views = unit.views()
        ctx.mark_non_differentiable(
            *(v for v, grad in zip(views, unit.wants_grad(), strict=True) if not grad)
        )
        return tuple(views)

    @staticmethod
    def backward(ctx, *grads):
        if not ctx.again:
            ctx.unit.after_backward()
        return (None, None, *ctx.unit.reduce(grads))


# The gathered tensors there are now, by where their memory begins.
_gathered: dict[int, Unit] = {}


class _Saved(NamedTuple):
    """A view of a unit's whole: what of it, and when."""

    unit: Unit
    version: int
    offset: int
    size: Any
    stride: Any
    around: Any  # makes the tensor that was saved of the view, where that is another


def _memory(tensor):
    """The tensor whose memory a tensor is, and how that one is made of it."""
    local = getattr(tensor, "_local_tensor", None)
    if local is None:
        return tensor, None
    spec = tensor._spec
    return local, lambda view: type(tensor)(view, spec)


def _pack(tensor):
    held, around = _memory(tensor)
    unit = _gathered.get(held.untyped_storage().data_ptr())
    if unit is None or unit.full is None or held.dtype != unit.full.dtype:
        return tensor
    return _Saved(unit, unit.version(), held.storage_offset(), held.size(), held.stride(), around)


def _unpack(packed):
    if isinstance(packed, rushlight.Tensor):
        return packed
    unit = packed.unit
    if unit.version() != packed.version:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace "
            f"operation: a parameter of {', '.join(unit.fqns)} was written between forward and "
            "backward"
        )
    unit.backward_begins()
    unit.unshard()
    view = unit.full.as_strided(packed.size, packed.stride, packed.offset)
    return view if packed.around is None else packed.around(view)


def saved_places():
    """Within it, of gathered parameters only the place is saved for backward."""
    return saved_tensors_hooks(_pack, _unpack)


class Unit:
    """Parameters that are gathered and let go together; subclasses say how.

    A subclass has `leaves`, the parameters that the optimiser sees; `fqns`, the names of those that
    modules see; `keep`, whether the whole stays from forward to backward; `gather_whole`, `views`,
    `use`, `use_parts`, `wants_grad` and `reduce`.
    """

    leaves: list
    fqns: list[str]
    keep: bool
    full: Any = None  # the whole, one piece of memory
    travels: bool = True  # whether the whole is other memory than the parts
    in_backward: bool = False

    def gather_whole(self) -> Any:
        """The whole of what the processes have parts of."""
        raise NotImplementedError

    def views(self) -> list:
        """The parameters in the whole."""
        raise NotImplementedError

    def use(self, views: list) -> None:
        """Let the modules compute with these tensors."""
        raise NotImplementedError

    def use_parts(self) -> None:
        """Let the modules show the parts again."""
        raise NotImplementedError

    def wants_grad(self) -> list[bool]:
        """For each parameter whether it wants a gradient."""
        raise NotImplementedError

    def reduce(self, grads) -> list:
        """The gradients of the leaves, of those of the whole parameters."""
        raise NotImplementedError

    def version(self) -> int:
        """A number that grows when the part is written."""
        return sum(p._version for p in self.leaves)

    def unshard(self) -> None:
        """Have the whole."""
        if self.full is None:
            with rushlight.no_grad():
                self.full = self.gather_whole()
            if self.travels:
                _gathered[self.full.untyped_storage().data_ptr()] = self

    def release(self):
        """Let the whole go."""
        if self.full is not None:
            _gathered.pop(self.full.untyped_storage().data_ptr(), None)
            self.full = None

    def forward_begins(self):
        """Have the module compute with the whole."""
        self.unshard()
        self.use(self._recorded(again=False))

    def _recorded(self, again):
        if rushlight.is_grad_enabled() and any(p.requires_grad for p in self.leaves):
            return _Unshard.apply(self, again, *self.leaves)
        return self.views()

    def forward_ends(self, output_tensors, input_tensors):
        """Let the whole go, if backward gathers it again; hear when backward begins."""
        self.use_parts()
        if not output_tensors:
            self.release()
            return
        if not self.keep:
            self.release()
        for t in output_tensors:
            t.register_hook(self._before_backward)
        inputs = [t for t in input_tensors if t.requires_grad]
        if not any(self.wants_grad()) and inputs:
            # No gradient of a parameter tells the end of this unit's backward, those of inputs do.
            rushlight.autograd.graph.register_multi_grad_hook(
                inputs, lambda _grads: self.after_backward()
            )

    def _before_backward(self, _grad):
        """Modules that run again in backward find their parameters."""
        if not self.in_backward:
            self.backward_begins()
            self.unshard()
            with rushlight.enable_grad():
                self.use(self._recorded(again=True))

    def backward_begins(self):
        """Hear when this backward ends."""
        if not self.in_backward:
            with contextlib.suppress(RuntimeError):  # where no backward runs, nothing ends
                Variable._execution_engine.queue_callback(self.backward_ends)
                self.in_backward = True

    def backward_ends(self):
        """Nothing of the whole stays."""
        self.in_backward = False
        self.after_backward()

    def after_backward(self):
        """Nobody needs the whole any more."""
        self.use_parts()
        self.release()
