"""A unit of FSDP: parameters that are gathered together and let go together.

While a unit computes its modules have the whole parameters, which are the results of one autograd
node (`_Unshard`), whose backward starts to reduce all gradients. Another node (`_Collect`) hands
each process its part; it is made before what forward records, so that backward comes to it last,
and reductions travel while other units compute. What backward saves of the whole is its place alone
(`outermost_forward`), so that the whole can go after forward and is gathered again for backward.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Generator, Iterable, Sequence
from typing import Any, NamedTuple

import rushlight
from rushlight.autograd import Function, Variable
from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.distributed._traffic import Traffic, Travelling

__all__ = ["Unit", "outermost_forward"]


class _Collect(Function):
    """From the parts to a token that stands for them; back, the gradients that have arrived."""

    @staticmethod
    def forward(ctx, unit, *leaves):
        ctx.unit = unit
        return rushlight.zeros(())

    @staticmethod
    def backward(ctx, *_grads):
        return (None, *ctx.unit.collect())


class _Unshard(Function):
    """From the token of the parts to all parameters; back, it sends all gradients off."""

    @staticmethod
    def forward(ctx, unit, again, token):
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
        ctx.unit.send(grads)
        return None, None, rushlight.zeros(())


# The gathered tensors there are now, by where their memory begins.
_gathered: weakref.WeakValueDictionary[int, Unit] = weakref.WeakValueDictionary()


class _SavedView(NamedTuple):
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
    return _SavedView(
        unit, unit.version(), held.storage_offset(), held.size(), held.stride(), around
    )


def _unpack(packed):
    if isinstance(packed, rushlight.Tensor):
        return packed
    unit = packed.unit
    if unit.version() != packed.version:
        raise RuntimeError(
            f"a parameter of {', '.join(unit.fqns)} has been modified by an inplace operation "
            "between forward and backward, which needs what it was"
        )
    unit.returns()
    unit.unshard()
    view = unit.full.as_strided(packed.size, packed.stride, packed.offset)
    return view if packed.around is None else packed.around(view)


@contextlib.contextmanager
def outermost_forward(traffic: Traffic, units: Sequence[Unit]) -> Generator[None, None, None]:
    """The forward of an outermost module with these units.

    Within it, of gathered parameters only the place is saved for backward.
    """
    traffic.begin()
    for unit in units:
        unit.forget()
        unit.begin(traffic)
    try:
        with saved_tensors_hooks(_pack, _unpack):
            yield
    finally:
        for unit in units:
            unit.end()


class Unit:
    """Parameters that are gathered and let go together; subclasses say how.

    A subclass has `leaves`, the parameters that the optimiser sees; `fqns`, the names of those that
    modules see; `keep`, whether the whole stays from forward to backward; `gather_whole`, `views`,
    `use`, `use_parts`, `wants_grad`, `reduce` and `waits`. `next_forward` and `next_backward` say
    what is gathered while the unit computes.
    """

    leaves: list
    fqns: list[str]
    keep: bool
    full: Any = None  # the whole, one piece of memory
    travels: bool = True  # whether the whole is other memory than the parts
    in_backward: bool = False
    prefetch_late: bool = False  # backward gathers for who is next once the gradients are there
    gathers_for_backward: bool = True
    reductions_at_once: int = 1
    traffic: Any = None  # shared with the other units of the outermost module

    def __init__(self):
        self._token: Any = None  # of this forward
        self._arriving: Any = None  # the whole, where it is on its way
        self._gathered_at = 0
        self._sent: list[Travelling] = []  # gradients that nobody has collected
        self._then: Any = None  # who comes next in backward

    def gather_whole(self) -> Generator[Any, None, Any]:
        """The whole of what the processes have parts of: steps of a `Travelling`."""
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

    def reduce(self, grads) -> Generator[Any, None, list]:
        """The gradients of the leaves, of those of the whole parameters: steps."""
        raise NotImplementedError

    def waits(self) -> bool:
        """Whether gradients of earlier passes are to be reduced by this one."""
        raise NotImplementedError

    def next_forward(self, expected) -> Iterable[Unit]:
        """Who is gathered while this unit's forward computes; `expected` came next last time."""
        return [] if expected is None else [expected]

    def next_backward(self, expected) -> Iterable[Unit]:
        """Who is gathered while this unit's backward computes."""
        return [] if expected is None else [expected]

    def version(self) -> int:
        """A number that grows when the part is written."""
        return sum(p._version for p in self.leaves)

    def prefetch(self) -> None:
        """Start to gather the whole, if nobody has."""
        if self.full is None and self._arriving is None and self.travels:
            self._gathered_at = self.version()
            self._arriving = Travelling(self.gather_whole())

    def unshard(self) -> None:
        """Have the whole, of the parts as they are now."""
        if self._gathered_at != self.version():
            self.release()
        if self.full is None:
            self._gathered_at = self.version()
            arriving, self._arriving = self._arriving, None
            self.full = (arriving or Travelling(self.gather_whole())).arrive()
            if self.travels:
                _gathered[self.full.untyped_storage().data_ptr()] = self

    def release(self):
        """Let the whole go."""
        if self._arriving is not None:
            arriving, self._arriving = self._arriving, None
            arriving.arrive()
        if self.full is not None:
            _gathered.pop(self.full.untyped_storage().data_ptr(), None)
            self.full = None

    def _wants_backward(self):
        return rushlight.is_grad_enabled() and any(p.requires_grad for p in self.leaves)

    def begin(self, traffic):
        """A forward of the outermost module begins, this unit's is to come."""
        self.traffic = traffic
        traffic.units.append(self)
        self._token = _Collect.apply(self, *self.leaves) if self._wants_backward() else None

    def end(self):
        """The forward of the outermost module has ended. (The token's node refers to the unit.)"""
        self._token = None

    def forward_begins(self):
        """Have the module compute with the whole."""
        self.unshard()
        if self.traffic is not None and not self.in_backward:
            for other in self.next_forward(self.traffic.going(self)):
                other.prefetch()
        self.use(self._views_in_graph(again=False))

    def _views_in_graph(self, again):
        if not self._wants_backward():
            return self.views()
        token = self._token
        if token is None:
            token = _Collect.apply(self, *self.leaves)
        return _Unshard.apply(self, again, token)

    def forward_ends(self, output_tensors, input_tensors):
        """Let the whole go, if backward gathers it again; hear when backward begins."""
        if self.in_backward:  # the forward was run again
            return
        self.use_parts()
        if not output_tensors:
            self.release()
            return
        if not self.keep:
            self.release()
        if self.traffic is not None:
            self.traffic.will_return(self)
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
            self.returns()
            if self.gathers_for_backward:
                self.unshard()
                with rushlight.enable_grad():
                    self.use(self._views_in_graph(again=True))

    def returns(self):
        """Backward comes to this unit: hear when it ends, and gather for who comes next."""
        if self.in_backward:
            return
        with contextlib.suppress(RuntimeError):  # where no backward runs, nothing ends
            Variable._execution_engine.queue_callback(self._all_has_ended)
            self.in_backward = True
        if not self.in_backward or self.traffic is None:
            return
        if self.gathers_for_backward:
            self.prefetch()  # before the others: works go in their order
        self._then = self.next_backward(self.traffic.returning(self))
        if not self.prefetch_late:
            self._prefetch_then()

    def _prefetch_then(self):
        then, self._then = self._then, None
        for other in then or ():
            if other.gathers_for_backward:
                other.prefetch()

    def send(self, grads):
        """The gradients of the whole parameters are there."""
        if self.prefetch_late:
            self._prefetch_then()
        steps = self.reduce(grads)
        limit = self.reductions_at_once
        self._sent.append(self.traffic.reduce(steps, limit) if self.traffic else Travelling(steps))

    def collect(self):
        """The gradients of the leaves, of all that was sent."""
        sent, self._sent = self._sent, []
        total = [None] * len(self.leaves)
        for travelling in sent:
            total = [
                b if a is None else a if b is None else a + b
                for a, b in zip(total, travelling.arrive(), strict=True)
            ]
        return total

    def forget(self):
        """Nothing stays of an earlier forward, or of a backward that failed."""
        for travelling in self._sent:
            travelling.arrive()
        self._sent = []
        self._token = None
        self.backward_ends()

    def _all_has_ended(self):
        self.backward_ends()
        if self.traffic is not None:
            for unit in self.traffic.units:
                if unit.waits():
                    unit.reduce_rest()

    @rushlight.no_grad()
    def reduce_rest(self):
        """Reduce what earlier passes have kept, where this backward has not come to the unit."""
        self.send([None] * len(self.wants_grad()))
        for leaf, grad in zip(self.leaves, self.collect(), strict=True):
            if grad is not None:
                leaf.grad = grad if leaf.grad is None else leaf.grad + grad

    def backward_ends(self):
        """Nothing of the whole stays."""
        self.in_backward = False
        self._then = None
        self.after_backward()

    def after_backward(self):
        """Nobody needs the whole any more."""
        self.use_parts()
        self.release()
