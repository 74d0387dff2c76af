"""Groups whose bytes an engine moves: PyTorch's calls on what the plug-ins do."""

from __future__ import annotations

import atexit
import weakref
from datetime import timedelta
from typing import Any

import rushlight
from rushlight import _C
from rushlight.distributed._kinds import ReduceOp
from rushlight.distributed._process_group import (
    ProcessGroup,
    Work,
    _as_list,
    _timeout_of,
)
from rushlight.distributed._staging import _collective, _staging_method

_types: Any = _C._load_distributed()

_living: weakref.WeakSet[_EngineGroup] = weakref.WeakSet()


@atexit.register
def _give_up():
    """No program hangs at its end: for a collective that others never came to, or for a callback.

    What ends after this finds no interpreter to call: a thread that asks for its lock stops for
    good.
    """
    for group in list(_living):
        group.abort()


def _is_synchronous(opts):
    """Whether who asks for a collective waits for it: then no thread has to be woken for it."""
    return opts is not None and not opts.asyncOp


class _EngineGroup(ProcessGroup):
    """Processes that a plug-in connects, for tensors of one type of device."""

    _name_of_engine = ""
    _device = "cpu"
    _work = Work

    def _connect(self, store, timeout, interface="", hostname="", high_priority=False):
        if not isinstance(timeout, timedelta):
            timeout = timedelta(seconds=timeout)
        self._timeout = timeout
        self._engine = _types._make_backend(
            self._name_of_engine,
            store,
            self._rank,
            self._size,
            timeout,
            interface,
            hostname,
            high_priority,
        )
        self._backends = {self._device: self}
        _living.add(self)

    def getBackendName(self):
        """The engine's name."""
        return self._name_of_engine

    @property
    def supports_coalescing(self) -> bool:
        """Whether what is asked for between `_start_coalescing` and `_end_coalescing` is one."""
        return self._engine.can_group()

    def _start_coalescing(self):
        self._engine.begin_group()

    def _end_coalescing(self):
        """The work of all; None if one of the calls failed."""
        handle = self._engine.end_group(self._timeout)
        return None if handle is None else self._work(handle, [])

    def _set_default_timeout(self, timeout):
        self._timeout = timeout

    def _get_sequence_number_for_group(self):
        return self._sequence

    def shutdown(self):
        """Let what was asked for end, and close the connections."""
        self._engine.shutdown()

    def abort(self):
        """Give everything up."""
        self._engine.abort()

    def __del__(self):
        engine = self.__dict__.get("_engine")
        if engine is not None:
            engine.shutdown()

    def _backend_of(self, tensor):
        return self

    def _fail(self, what, why):
        raise RuntimeError(f"{type(self).__name__}::{what}: {why}")

    def _check(self, what, tensors, root=None, of_one_shape=True):
        if not tensors:
            self._fail(what, "requires non-empty tensor list")
        first = tensors[0]
        for t in tensors:
            if t.layout != rushlight.strided and t.layout != rushlight.sparse_coo:
                self._fail(what, f"unsupported layout {t.layout}")
            if t.dtype != first.dtype:
                self._fail(what, f"invalid tensor type: {t.dtype} beside {first.dtype}")
            if t.shape != first.shape and of_one_shape:
                self._fail(what, f"invalid tensor size: {t.shape} beside {first.shape}")
            if t.device.type != self._device:
                raise RuntimeError(f"No backend type associated with device type {t.device.type}")
        if root is not None and not 0 <= root < self._size:
            self._fail(what, f"invalid root rank: {root}")
        self._sequence += 1

    def _op(self, op):
        return op.value, op.factor

    @_collective("broadcast")
    def broadcast(self, tensors, opts=None, root=None, timeout=None):
        """Every rank's tensors become the root's."""
        tensors = _as_list(tensors)
        if isinstance(opts, int):
            opts, root = None, opts
        from_rank = root if root is not None else (opts.rootRank if opts else 0)
        from_tensor = opts.rootTensor if opts else 0
        if not 0 <= from_rank < self._size:
            self._fail("broadcast", f"invalid root rank: {from_rank}")
        if not 0 <= from_tensor < len(tensors):
            self._fail("broadcast", f"invalid root tensor: {from_tensor}")
        self._check("broadcast", tensors)
        time = timeout or _timeout_of(opts, self._timeout)
        handle = self._engine.broadcast(
            [tensors[from_tensor].detach()], from_rank, time, _is_synchronous(opts)
        )
        if len(tensors) > 1:
            handle.wait()
            for t in tensors:
                t.detach().copy_(tensors[from_tensor].detach())
        return self._work(handle, tensors)

    def _reduce_own(self, tensors, op):
        """What becomes of several tensors of one process, in the first of them."""
        kind = {"SUM": "add_", "PRODUCT": "mul_"}.get(op.name)
        first = tensors[0].detach()
        for t in tensors[1:]:
            if kind is not None:
                getattr(first, kind)(t.detach())
            elif op.name in ("MIN", "MAX"):
                pick = rushlight.minimum if op.name == "MIN" else rushlight.maximum
                first.copy_(pick(first, t.detach()))
            elif op.name in ("BAND", "BOR", "BXOR"):
                bits = {"BAND": "and", "BOR": "or", "BXOR": "xor"}[op.name]
                getattr(first, f"bitwise_{bits}_")(t.detach())
            else:
                raise ValueError(f"ReduceOp.{op.name} takes one tensor of each process")

    @_collective("all_reduce")
    def allreduce(self, tensors, opts=None, op=None, timeout=None):
        """Every rank's tensor becomes the reduction of all."""
        tensors = _as_list(tensors)
        if isinstance(opts, ReduceOp):
            opts, op = None, opts
        op = op if op is not None else (opts.reduceOp if opts else ReduceOp.SUM)
        self._check("allreduce", tensors)
        time = timeout or _timeout_of(opts, self._timeout)
        if tensors[0].is_sparse:
            from rushlight.distributed._sparse import all_reduce

            return Work(None, all_reduce(self, tensors, op, time))
        if len(tensors) > 1:
            self._reduce_own(tensors, op)
        handle = self._engine.all_reduce(
            [tensors[0].detach()], *self._op(op), time, _is_synchronous(opts)
        )
        if len(tensors) > 1:
            handle.wait()
            for t in tensors[1:]:
                t.detach().copy_(tensors[0].detach())
        return self._work(handle, tensors)

    @_collective("all_reduce")
    def allreduce_coalesced(self, tensors, opts=None):
        """`allreduce` of several tensors at once, each for itself."""
        tensors = _as_list(tensors)
        if not tensors:
            self._fail("allreduce_coalesced", "requires non-empty tensor list")
        for t in tensors:
            if t.layout != tensors[0].layout or t.dtype != tensors[0].dtype:
                self._fail("allreduce_coalesced", "tensors must all have the same type")
            if t.layout != rushlight.strided:
                self._fail("allreduce_coalesced", f"invalid tensor layout {t.layout}")
        op = opts.reduceOp if opts else ReduceOp.SUM
        self._sequence += 1
        time = _timeout_of(opts, self._timeout)
        return self._work(
            self._engine.all_reduce(
                [t.detach() for t in tensors], *self._op(op), time, _is_synchronous(opts)
            ),
            tensors,
        )

    @_collective("reduce")
    def reduce(self, tensors, opts=None, root=None, op=None):
        """The root's tensor becomes the reduction of all."""
        tensors = _as_list(tensors)
        to = root if root is not None else (opts.rootRank if opts else 0)
        op = op if op is not None else (opts.reduceOp if opts else ReduceOp.SUM)
        if len(tensors) != 1:
            self._fail("reduce", "requires a single-element tensor list")
        if opts is not None and opts.rootTensor != 0:
            self._fail("reduce", f"invalid root tensor: {opts.rootTensor}")
        self._check("reduce", tensors, to)
        time = _timeout_of(opts, self._timeout)
        return self._work(
            self._engine.reduce(
                tensors[0].detach(), to, *self._op(op), time, _is_synchronous(opts)
            ),
            tensors,
        )

    @_collective("all_gather", 1)
    def allgather(self, outputs, inputs, opts=None, timeout=None):
        """outputs[0][i] becomes rank i's input."""
        if isinstance(inputs, rushlight.Tensor):
            outputs, inputs = [outputs], [inputs]
        if not inputs or not outputs:
            self._fail("allgather", "requires non-empty input tensor list")
        if len(inputs) != len(outputs):
            self._fail("allgather", "requires input/output tensor lists to have the same length")
        if len(inputs) > 1:
            return self._allgather_several(outputs, inputs, opts)
        if len(outputs[0]) != self._size * len(inputs):
            self._fail(
                "allgather", "invalid output tensor list at index 0: one tensor of each rank"
            )
        uneven = self._engine.takes_uneven()
        self._check("allgather", [inputs[0], *outputs[0]], of_one_shape=not uneven)
        time = timeout or _timeout_of(opts, self._timeout)
        out = [t.detach() for t in outputs[0]]
        handle = self._engine.all_gather(out, inputs[0].detach(), time, _is_synchronous(opts))
        return self._work(handle, list(outputs[0]))

    def _allgather_several(self, outputs, inputs, opts):
        for i, part in enumerate(outputs):
            if len(part) != self._size * len(inputs):
                self._fail("allgather", f"invalid output tensor list at index {i}")
        self._check("allgather", [*inputs, *(t for part in outputs for t in part)])
        time = _timeout_of(opts, self._timeout)
        count = len(inputs)
        for i, own in enumerate(inputs):
            out = [t.detach() for t in outputs[0][i::count]]
            self._engine.all_gather(out, own.detach(), time, True).wait()
        for part in outputs[1:]:
            for to, source in zip(part, outputs[0], strict=True):
                to.detach().copy_(source.detach())
        return Work(None, [list(part) for part in outputs])

    @_collective("all_gather", 1)
    def allgather_coalesced(self, outputs, inputs, opts=None):
        """outputs[i][j] becomes rank i's input j."""
        if not inputs:
            self._fail("allgather_coalesced", "requires non-empty input tensor list")
        if len(outputs) != self._size:
            self._fail("allgather_coalesced", "output lists should be equal to world size")
        for part in outputs:
            if len(part) != len(inputs):
                self._fail("allgather_coalesced", "invalid output size: (expected length")
            for to, own in zip(part, inputs, strict=True):
                if to.shape != own.shape:
                    self._fail("allgather_coalesced", "invalid size of output tensor at index 0")
                if to.dtype != own.dtype:
                    self._fail("allgather_coalesced", "invalid tensor type at index 0")
        time = _timeout_of(opts, self._timeout)
        handle = None
        for j, own in enumerate(inputs):
            out = [part[j].detach() for part in outputs]
            handle = self._engine.all_gather(out, own.detach(), time, _is_synchronous(opts))
        return self._work(handle, [list(part) for part in outputs])

    @_collective("all_gather", 1)
    def _allgather_base(self, output, input, opts=None):
        """`output` becomes the inputs of all, one after the other."""
        if output.numel() != input.numel() * self._size:
            self._fail(
                "_allgather_base",
                "output tensor size must be equal to world_size times input tensor size",
            )
        if output.dtype != input.dtype:
            self._fail("_allgather_base", "output tensor must have the same type as input tensor")
        self._sequence += 1
        time = _timeout_of(opts, self._timeout)
        flat = output.detach() if output.is_contiguous() else rushlight.empty_like(output.detach())
        parts = list(flat.reshape(-1).chunk(self._size)) if flat.numel() else [flat] * self._size
        handle = self._engine.all_gather(
            parts, input.detach().reshape(-1), time, _is_synchronous(opts)
        )
        if not output.is_contiguous():
            if handle is None:
                self._fail("_allgather_base", "the output must be contiguous in a group of calls")
            handle.wait()
            output.detach().copy_(flat)
        return self._work(handle, [output])

    @_staging_method
    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        """`_allgather_base` of several tensors."""
        works = [self._allgather_base(o, i, opts) for o, i in zip(outputs, inputs, strict=True)]
        return self._work(works[-1]._handle, list(outputs))

    @_collective("gather", 1)
    def gather(self, outputs, inputs, opts=None, root=None, timeout=None):
        """At the root, outputs[0][i] becomes rank i's input."""
        if isinstance(inputs, rushlight.Tensor):
            outputs, inputs = ([outputs] if outputs else []), [inputs]
        to = root if root is not None else (opts.rootRank if opts else 0)
        if not 0 <= to < self._size:
            self._fail("gather", f"invalid root rank: {to}")
        if len(inputs) != 1:
            self._fail("gather", "requires a single-element input tensor list")
        if to == self._rank:
            if len(outputs) != 1:
                self._fail(
                    "gather", "requires a single-element output list containing a list with <size>"
                )
            if len(outputs[0]) != self._size:
                self._fail("gather", "Incorrect output list size: one tensor of each rank")
        elif len(outputs) != 0:
            self._fail("gather", "requires empty output on non-root")
        out = list(outputs[0]) if outputs else []
        self._check("gather", [inputs[0], *out])
        time = timeout or _timeout_of(opts, self._timeout)
        handle = self._engine.gather(
            [t.detach() for t in out], inputs[0].detach(), to, time, _is_synchronous(opts)
        )
        return self._work(handle, out)

    @_collective("scatter", 1)
    def scatter(self, outputs, inputs, opts=None, root=None, timeout=None):
        """Rank i's output becomes inputs[0][i] of the root."""
        if isinstance(outputs, rushlight.Tensor):
            outputs, inputs = [outputs], ([inputs] if inputs else [])
        source = root if root is not None else (opts.rootRank if opts else 0)
        if not 0 <= source < self._size:
            self._fail("scatter", f"invalid root rank: {source}")
        if len(outputs) != 1:
            self._fail("scatter", "requires a single-element output tensor list")
        if source == self._rank:
            if len(inputs) != 1:
                self._fail(
                    "scatter", "requires a single-element input list containing a list with <size>"
                )
            if len(inputs[0]) != self._size:
                self._fail("scatter", "Incorrect input list size: one tensor for each rank")
        elif len(inputs) != 0:
            self._fail("scatter", "requires empty input on non-root")
        parts = list(inputs[0]) if inputs else []
        self._check("scatter", [outputs[0], *parts])
        time = timeout or _timeout_of(opts, self._timeout)
        handle = self._engine.scatter(
            outputs[0].detach(), [t.detach() for t in parts], source, time, _is_synchronous(opts)
        )
        return self._work(handle, list(outputs))

    @_collective("reduce_scatter", 1)
    def reduce_scatter(self, outputs, inputs, opts=None, op=None):
        """Rank i's output becomes the reduction of all inputs[0][i]."""
        if isinstance(outputs, rushlight.Tensor):
            outputs, inputs = [outputs], [inputs]
        op = op if op is not None else (opts.reduceOp if opts else ReduceOp.SUM)
        time = _timeout_of(opts, self._timeout)
        handle = None
        for output, parts in zip(outputs, inputs, strict=True):
            if len(parts) != self._size:
                self._fail("reduce_scatter", "requires one input of each rank")
            self._sequence += 1
            handle = self._engine.reduce_scatter(
                output.detach(),
                [t.detach() for t in parts],
                *self._op(op),
                time,
                _is_synchronous(opts),
            )
        return self._work(handle, list(outputs))

    @_staging_method
    def _reduce_scatter_base(self, output, input, opts=None):
        """`output` becomes this rank's part of the reduction of all inputs."""
        if input.numel() != output.numel() * self._size:
            self._fail(
                "_reduce_scatter_base",
                "the input must have the elements of the outputs of all ranks",
            )
        if input.dtype != output.dtype:
            self._fail("_reduce_scatter_base", "input tensor must be the same type as the output")
        flat = input.detach().reshape(-1)
        parts = list(flat.chunk(self._size)) if flat.numel() else [flat] * self._size
        work = self.reduce_scatter([output], [parts], opts)
        return self._work(work._handle, [output], flat)

    @_staging_method
    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts=None):
        """`_reduce_scatter_base` of several tensors."""
        pairs = zip(outputs, inputs, strict=True)
        works = [self._reduce_scatter_base(o, i, opts) for o, i in pairs]
        return self._work(works[-1]._handle, list(outputs))

    @_collective("all_to_all", 1)
    def alltoall(self, outputs, inputs, opts=None):
        """outputs[i] becomes the tensor that rank i has for this one."""
        self._sequence += 1
        time = _timeout_of(opts, self._timeout)
        if len(outputs) != self._size or len(inputs) != self._size:
            self._fail("alltoall", "requires one tensor of each rank")
        handle = self._engine.all_to_all(
            [t.detach() for t in outputs], [t.detach() for t in inputs], time, _is_synchronous(opts)
        )
        return self._work(handle, list(outputs))

    @_staging_method
    def alltoall_base(self, output, input, output_sizes, input_sizes, opts=None):
        """`alltoall` of rows of two tensors."""

        def rows(t, sizes, which):
            t = t.detach()
            if not t.is_contiguous():
                raise ValueError(f"Tensors must be contiguous: the {which} is not")
            if not sizes:
                if t.shape[0] % self._size != 0:
                    self._fail(
                        "alltoall_base",
                        f"Tensor's dim 0 does not divide equally across group size ({which})",
                    )
                sizes = [t.shape[0] // self._size] * self._size
            if len(sizes) != self._size or sum(sizes) != t.shape[0]:
                self._fail("alltoall_base", f"Split sizes doesn't match total dim 0 size ({which})")
            return list(t.split(list(sizes)))

        work = self.alltoall(
            rows(output, output_sizes, "output"), rows(input, input_sizes, "input"), opts
        )
        return self._work(work._handle, [output])

    def barrier(self, opts=None):
        """Ends once all ranks have called it."""
        self._sequence += 1
        return self._work(
            self._engine.barrier(_timeout_of(opts, self._timeout), _is_synchronous(opts)), []
        )

    def _check_message(self, tensors, tag, peer=None):
        if self._size == 1 or (
            peer is not None and (peer == self._rank or not 0 <= peer < self._size)
        ):
            self._fail(
                "send or recv",
                f"rank {self._rank} of {self._size} sends to other ranks and receives from them, "
                + ("there are none" if peer is None else f"not rank {peer}"),
            )
        if len(tensors) != 1:
            self._fail("send or recv", "takes a single tensor")
        if not 0 <= tag < 2**31:
            self._fail("send or recv", f"Tag must be nonnegative, not {tag}")

    @_collective("send")
    def send(self, tensors, dst, tag: int = 0):
        """A message to a rank."""
        self._check_message(tensors, tag, dst)
        return self._work(self._engine.send(tensors[0].detach(), dst, tag, self._timeout), tensors)

    @_collective("recv")
    def recv(self, tensors, src, tag: int = 0):
        """A message from a rank."""
        self._check_message(tensors, tag, src)
        return self._work(
            self._engine.receive(tensors[0].detach(), src, tag, self._timeout), tensors
        )

    @_collective("recvAnySource")
    def recv_anysource(self, tensors, tag: int = 0):
        """A message from any rank."""
        self._check_message(tensors, tag)
        return self._work(
            self._engine.receive(tensors[0].detach(), -1, tag, self._timeout), tensors
        )
