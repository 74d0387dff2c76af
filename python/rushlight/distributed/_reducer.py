"""What `DistributedDataParallel` does in backward: gradients of all processes become one.

Parameters stand in buckets, flat tensors of one dtype. A hook runs when a parameter's gradient is
whole; the last of a bucket's starts its reduction, in the order of buckets, while backward goes on.
Once backward has ended, the reductions are waited for and the gradients written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rushlight
from rushlight._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from rushlight.distributed._traffic import Travelling, summed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rushlight import Tensor
    from rushlight.distributed import ProcessGroup

__all__ = ["GradBucket", "Reducer"]

FIRST_BUCKET_BYTES = 1024 * 1024


class GradBucket:
    """A bucket of gradients, as a communication hook sees it.

    Args:
        index: its number; the last gradients are in bucket 0.
        buffer: its gradients, flat.
        parameters: those whose gradients it has.
        last: whether it is the last one of this backward pass.

    For an example see `distributed.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook`.
    """

    def __init__(
        self, index: int, buffer: Tensor, parameters: Iterable[Tensor], last: bool
    ) -> None:
        self._index = index
        self._buffer = buffer
        self._parameters = parameters
        self._last = last

    def index(self) -> int:
        """The index of the bucket."""
        return self._index

    def buffer(self):
        """All gradients as one flat tensor."""
        return self._buffer

    def set_buffer(self, buffer) -> None:
        """Replace the flat tensor."""
        self._buffer = buffer

    def parameters(self) -> list:
        """The parameters of the gradients."""
        return list(self._parameters)

    def gradients(self) -> list:
        """The gradients, in their shapes."""
        return list(_unflatten_dense_tensors(self._buffer, self.parameters()))

    def is_last(self) -> bool:
        """Whether this is the last bucket of this backward."""
        return self._last


def bucket_assignment(parameters, limits):
    """Lists of indices: neighbours of one dtype and device, up to as many bytes as `limits` says.

    The first bucket of a kind has the first limit, and all beyond the last one have that.
    """
    buckets: list[list[int]] = []
    filling: dict[Any, tuple[list[int], int]] = {}
    full: dict[Any, int] = {}  # buckets of a kind
    for i, p in enumerate(parameters):
        key = (p.dtype, p.device)
        indices, size = filling.get(key, ([], 0))
        indices.append(i)
        size += p.numel() * p.element_size()
        if size >= limits[min(full.get(key, 0), len(limits) - 1)]:
            buckets.append(indices)
            full[key] = full.get(key, 0) + 1
            filling.pop(key, None)
        else:
            filling[key] = (indices, size)
    return buckets + [indices for indices, _ in filling.values()]


def step_in_backward(parameter) -> None:
    """A step of the optimisers that a parameter has of its own, after which its gradient goes."""
    for optimizer in parameter._in_backward_optimizers:
        optimizer.step()
    parameter.grad = None


class DelayedReducer:
    """Gradients that become one over the processes when another parameter's gradient is ready.

    Args:
        parameters: theirs; who has none then gets zeros.
        trigger: the other parameter.
        process_group: the processes.
        syncs: a function that says whether this backward reduces at all.
    """

    def __init__(self, parameters, trigger, process_group, syncs):
        self.parameters = list(parameters)
        self.pg = process_group
        self.syncs = syncs
        self.handle = trigger.register_post_accumulate_grad_hook(self._begin)

    @rushlight.no_grad()
    def _begin(self, _trigger):
        if not self.syncs():
            return
        for p in self.parameters:
            p.grad = rushlight.zeros_like(p) if p.grad is None else p.grad
        travelling = Travelling(self._reduce())
        rushlight.autograd.Variable._execution_engine.queue_callback(travelling.arrive)

    def _reduce(self):
        """All gradients at once: steps."""
        flat = _flatten_dense_tensors([p.grad for p in self.parameters])
        yield from summed(self.pg, flat)
        pieces = _unflatten_dense_tensors(flat.div_(self.pg.size()), self.parameters)
        for p, piece in zip(self.parameters, pieces, strict=True):
            p.grad.copy_(piece)

    def remove(self):
        """Take the hook away."""
        self.handle.remove()


class _Bucket:
    """The flat tensor of some parameters, and how far this backward is with them."""

    def __init__(self, indices, parameters):
        self.indices = indices
        self.parameters = [parameters[i] for i in indices]
        first = self.parameters[0]
        self.flat = rushlight.zeros(
            sum(p.numel() for p in self.parameters), dtype=first.dtype, device=first.device
        )
        self.views = _unflatten_dense_tensors(self.flat, self.parameters)
        self.waiting = len(indices)
        self.kept: dict[int, Any] = {}  # gradients that lie in it, of who was not used here
        self.reducing: Any = None  # the gradients on their way


class Reducer:
    """The gradients of a list of parameters, made one over the processes of a group.

    Args:
        parameters: the parameters.
        names: their names, for messages.
        process_group: the processes.
        limits: bytes of the first bucket and of the others.
        find_unused: whether the graph is searched for parameters without a gradient.
        as_view: whether gradients are views of buckets.
        static: whether the graph is the same each time.

    For an example see `nn.parallel.DistributedDataParallel`.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        names: Sequence[str],
        process_group: ProcessGroup,
        limits: Any,
        find_unused: bool = False,
        as_view: bool = False,
        static: bool = False,
    ) -> None:
        self.parameters = list(parameters)
        self.names = names
        self.pg = process_group
        self.limits = limits
        self.find_unused = find_unused
        self.as_view = as_view
        self.static = static
        self.hook: Any = None
        self.hook_state: Any = None
        self.reduce_dtype: Any = None  # None: that of the gradients
        self.divisor: int | None = None  # None: how many processes there are
        self.expecting = False  # backward is to come, or under way
        self.left_out: set[int] = set()  # whom the loss of the last reduction did not use
        self.used: set[int] = set()  # who got gradients since the last reduction, of no_sync too
        self.rebuilt = False
        self.iterations = 0
        self.order: list[int] = []
        self.fires = [0] * len(self.parameters)  # of static graphs: how often a hook runs
        self.never: set[int] = set()  # of static graphs: who gets no gradient
        self._where: dict[int, tuple[_Bucket, int]] = {}
        # Whole buckets of the last parameters come first. A static graph shows a better order soon.
        first = [float("inf")] if static and not find_unused else limits
        groups = bucket_assignment(self.parameters, first)
        self._make_buckets(sorted(groups, key=min, reverse=True))
        self.handles = [
            p.register_post_accumulate_grad_hook(self._hook_of(i))
            for i, p in enumerate(self.parameters)
        ]

    def _make_buckets(self, groups):
        self.buckets = [_Bucket(group, self.parameters) for group in groups]
        self._where = {
            index: (bucket, place)
            for bucket in self.buckets
            for place, index in enumerate(bucket.indices)
        }

    def _hook_of(self, index):
        def hook(_parameter):
            self.used.add(index)
            if self.expecting:
                self._on_gradient(index)
            elif index in self.left_out:
                raise RuntimeError(
                    f"The gradient of {self.names[index]} came by a second backward, after the "
                    "first had reduced the gradients of all parameters. With "
                    "`find_unused_parameters=True`, add the losses up and call backward once."
                )

        return hook

    def rebuild(self) -> bool:
        """Order the buckets as the gradients became ready; rank 0's order counts."""
        if self.rebuilt or self.find_unused or len(self.order) != len(self.parameters):
            return False
        order = rushlight.tensor(self.order, device=self.pg._note_device)
        self.pg.broadcast([order], root=0).wait()
        kept = [p.grad for p in self.parameters] if self.as_view else None
        order = order.tolist()
        groups = bucket_assignment([self.parameters[i] for i in order], self.limits)
        self._make_buckets([[order[i] for i in group] for group in sorted(groups, key=min)])
        if kept is not None:  # gradients that lie in the old buckets go on by themselves
            for p, grad in zip(self.parameters, kept, strict=True):
                p.grad = grad
        self.rebuilt = True
        return True

    def prepare(self, outputs=()):
        """Before a backward; `outputs` are the tensors that it may begin with."""
        self.check_finished()
        self.expecting = True
        self.ended = self.interrupted = False
        self.scheduled = False
        self.order = []
        self.next_bucket = 0
        self.arrived: set[int] = set()
        self.counts = [0] * len(self.parameters)
        for bucket in self.buckets:
            bucket.waiting = len(bucket.indices)
            bucket.reducing = None
        self.unused: set[int] = set()
        if self.static and self.iterations > 0:
            self.unused = set(self.never)
        elif self.find_unused:
            self.unused = self._without_path(outputs)
            for t in outputs:
                if t.requires_grad:
                    t.register_hook(self._on_backward_start)
        self.marked = False

    def _on_backward_start(self, _grad):
        """A backward has begun: at its end no other gradients come.

        It may run others within it, whose ends say nothing.
        """
        if self.expecting and not self.static:
            rushlight.autograd.Variable._execution_engine.queue_callback(self._settle)

    def _settle(self):
        """Take parameters of outputs that the loss did not use as unused."""
        if not self.expecting or not self.order:
            return
        self.left_out = set(range(len(self.parameters))) - self.arrived
        for index in sorted(self.left_out):
            self._mark_ready(index)
        self._finish()

    def is_finished(self):
        """Whether the backward that was prepared for has ended, or never began."""
        return self.ended or not self.arrived

    def check_finished(self):
        """Raise where the backward before has left parameters out."""
        self.left_out.clear()
        if self.expecting and not self.is_finished():
            self._complain()

    def _complain(self, again=""):
        missing = [self.names[i] for i in range(len(self.parameters)) if i not in self.arrived]
        self.expecting = False
        raise RuntimeError(
            "Expected to have finished reduction in the prior iteration: a parameter that the loss "
            "does not depend on gets no gradient, for which the others wait. "
            "DistributedDataParallel(find_unused_parameters=True) finds those, where all that "
            "`forward` returns goes into the loss. Without a gradient for rank "
            f"{self.pg.rank()}: {', '.join(missing)}{again}"
        )

    def _without_path(self, outputs):
        """Parameters that no output leads to."""
        stack = [t.grad_fn for t in outputs if t.grad_fn is not None]
        seen = set()
        found = {id(t) for t in outputs}
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            variable = getattr(node, "variable", None)
            if variable is not None:
                found.add(id(variable))
            stack.extend(n for n, _ in node.next_functions if n is not None)
        return {i for i, p in enumerate(self.parameters) if id(p) not in found}

    def _on_gradient(self, index):
        if not self.scheduled:
            self.scheduled = True
            rushlight.autograd.Variable._execution_engine.queue_callback(self._finish)
        self.counts[index] += 1
        if self.static and self.iterations == 0:
            self.arrived.add(index)
            if self.counts[index] == 1:
                self.order.append(index)
            return  # how often it comes is not known yet
        if self.static and self.counts[index] < self.fires[index]:
            return
        if index in self.arrived and self.interrupted:
            self._complain(
                f". Those are what its backward has left out; {self.names[index]} only comes again "
                "with the next one."
            )
        if index in self.arrived and not self.static:
            raise RuntimeError(
                "Expected to mark a variable ready only once. This error is caused by one of the "
                "following reasons: 1) Use of a module parameter outside the `forward` function. "
                "2) Reused parameters in multiple reentrant backward passes. Parameter at index "
                f"{index} with name {self.names[index]} has been marked as ready twice."
            )
        if not self.marked:
            self.marked = True
            for other in sorted(self.unused):
                if other != index:
                    self._mark_ready(other)
        self.order.append(index)
        self._mark_ready(index)

    def _mark_ready(self, index):
        if index in self.arrived:
            return
        self.arrived.add(index)
        bucket, _ = self._where[index]
        bucket.waiting -= 1
        if bucket.waiting == 0:
            self._launch()

    def _launch(self):
        """Start the buckets that are whole, in their order."""
        while self.next_bucket < len(self.buckets):
            bucket = self.buckets[self.next_bucket]
            if bucket.waiting > 0:
                return
            self.next_bucket += 1
            self._fill(bucket)
            last = self.next_bucket == len(self.buckets)
            bucket.reducing = Travelling(self._reduce(bucket, last))

    @rushlight.no_grad()
    def _fill(self, bucket):
        bucket.kept.clear()
        for index, p, view in zip(bucket.indices, bucket.parameters, bucket.views, strict=True):
            if p.grad is None:
                view.zero_()
            elif p.grad.is_sparse:
                view.copy_(p.grad.to_dense())
            elif p.grad.data_ptr() != view.data_ptr():
                view.copy_(p.grad)
            elif index not in self.used:  # where nobody used it, it stays what it is
                bucket.kept[index] = view.clone()

    def _reduce(self, bucket, last):
        """A bucket's gradients become the mean over the processes: steps."""
        flat, divisor = bucket.flat, self.divisor or self.pg.size()
        if self.hook is not None:
            grads = GradBucket(self.buckets.index(bucket), flat, bucket.parameters, last)
            result = yield self.hook(self.hook_state, grads)
            if isinstance(result, (list, tuple)):
                result = result[0]
            if result.data_ptr() != flat.data_ptr():
                flat.copy_(result.reshape(-1))
        elif self.reduce_dtype in (None, flat.dtype):
            yield from summed(self.pg, flat)
            flat.div_(divisor)
        else:
            flat.copy_((yield from summed(self.pg, flat.div_(divisor).to(self.reduce_dtype))))

    def _finish(self):
        """The end of a backward."""
        if self.ended:
            return
        if self.static and self.iterations == 0:
            self.fires = list(self.counts)
            self.never = set(range(len(self.parameters))) - self.arrived
            for bucket in self.buckets:
                bucket.waiting = 0
        if self.next_bucket < len(self.buckets) or (self.static and self.iterations == 0):
            self._launch()
        if self.next_bucket < len(self.buckets):
            # Gradients are missing: another backward may bring them, or the next forward says so.
            self.interrupted, self.scheduled = True, False
            return
        used = self._find_used()
        with rushlight.no_grad():
            for bucket in self.buckets:
                self._take(bucket, used)
        self.ended = True
        self.expecting = False
        self.used.clear()
        self.iterations += 1

    def _find_used(self):
        """Which parameters got a gradient in some process; None: all."""
        if not self.find_unused and not (self.static and self.never):
            return None
        mine = [1 if i in self.used else 0 for i in range(len(self.parameters))]
        bits = rushlight.tensor(mine, dtype=rushlight.int32, device=self.pg._note_device)
        self.pg.allreduce([bits]).wait()
        return bits.tolist()

    def _take(self, bucket, used):
        """Write the reduced gradients of a bucket."""
        bucket.reducing.arrive()
        for index, p, view in zip(bucket.indices, bucket.parameters, bucket.views, strict=True):
            if used is not None and used[index] == 0:
                if index in bucket.kept:
                    view.copy_(bucket.kept[index])
                continue
            if self.as_view:
                if p.grad is None or p.grad.data_ptr() != view.data_ptr():
                    p.grad = view
            elif p.grad is None:
                p.grad = view.clone()
            elif p.grad.is_sparse:
                p.grad = view.to_sparse(p.grad.sparse_dim())
            else:
                p.grad.copy_(view)
            if hasattr(p, "_in_backward_optimizers"):
                step_in_backward(p)

    def rebuild_as_shadow(self):
        """Take the order of the others' buckets, where they rebuild now."""
        if self.rebuilt or self.find_unused or self.iterations == 0:
            return
        self.order = self.order or list(range(len(self.parameters)))
        self.rebuild()

    def shadow(self):
        """Reduce with zeros what the others reduce; the gradients here stay as they are."""
        for i, bucket in enumerate(self.buckets):
            bucket.flat.zero_()
            Travelling(self._reduce(bucket, i + 1 == len(self.buckets))).arrive()
        if self.find_unused or (self.static and self.never):
            like = {"dtype": rushlight.int32, "device": self.pg._note_device}
            bits = rushlight.zeros(len(self.parameters), **like)
            self.pg.allreduce([bits]).wait()
        self.iterations += 1

    def remove(self):
        """Take the hooks away."""
        for handle in self.handles:
            handle.remove()
