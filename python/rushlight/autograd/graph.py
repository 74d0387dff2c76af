"""The graph of autograd: nodes, edges, and hooks for saved tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import rushlight
from rushlight import _C
from rushlight.utils.hooks import RemovableHandle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rushlight import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_warn_on_accumulate_grad_stream_mismatch",
]

Node = _C._Node


class GradientEdge(NamedTuple):
    """The place where the gradient of a tensor goes: a node, and the index of its output.

    Args:
        node: the node.
        output_nr: the index of its output.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> torch.autograd.graph.get_gradient_edge(x.exp()).output_nr
        0
    """

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor; it replaces the tensor in `backward` and `grad` without keeping it
    alive.

    Args:
        tensor: a tensor that requires grad.

    Raises:
        RuntimeError: it does not require grad.

    Example:
        >>> x = torch.tensor([0.5], requires_grad=True)
        >>> edge = torch.autograd.graph.get_gradient_edge(x * 3)
        >>> torch.autograd.grad(edge, x)
        (tensor([3.]),)
    """
    return GradientEdge(*_C._gradient_edge(tensor))


def increment_version(tensor: Tensor) -> None:
    """Count a write that autograd did not see, for one tensor or several.

    Nothing is counted for tensors made in inference mode, which no graph can have saved.

    Args:
        tensor: a tensor, or several.

    Example:
        >>> x = torch.ones(2)
        >>> torch.autograd.graph.increment_version(x)
        >>> x._version
        1
    """
    tensors = (tensor,) if isinstance(tensor, _C.TensorBase) else tensor
    for t in tensors:
        if not t.is_inference():
            _C._increment_version(t)


class saved_tensors_hooks:
    """A context manager: `pack_hook` replaces each saved tensor, and `unpack_hook` restores it.

    Args:
        pack_hook: a function of the tensor; what it returns is kept.
        unpack_hook: a function of what is kept, which returns the tensor.

    Example:
        >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        ...     y = torch.ones(2, requires_grad=True).exp()
        >>> y.sum().backward()
    """

    def __init__(self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *error):
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """A context manager: tensors that backward saves are kept on the CPU, in pinned memory if
    asked.

    Args:
        pin_memory: whether memory is page-locked, which makes copies from a GPU faster.
        device_type: the kind of device whose memory rules are asked for.

    Example:
        >>> x = torch.tensor([0.5], requires_grad=True)
        >>> with torch.autograd.graph.save_on_cpu():
        ...     y = x.exp()
        >>> y.backward()
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        self._pinned = pin_memory
        super().__init__(self._pack, self._unpack)

    def _pack(self, tensor: Tensor) -> tuple[rushlight.device, Tensor]:
        if not self._pinned:
            return tensor.device, tensor.cpu()
        like = {"dtype": tensor.dtype, "layout": tensor.layout}
        return tensor.device, rushlight.empty(tensor.shape, **like, pin_memory=True).copy_(tensor)

    def _unpack(self, stored: tuple[rushlight.device, Tensor]) -> Tensor:
        device, copy = stored
        return copy.to(device, non_blocking=self._pinned)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str):
    """A context manager in which `saved_tensors_hooks` raises RuntimeError with this message.

    Args:
        error_message: the message.

    Example:
        >>> with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
        ...     with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        ...         pass
        Traceback (most recent call last):
            ...
        RuntimeError: no hooks here
    """
    before = _C._disable_saved_tensors_hooks(error_message)
    try:
        yield
    finally:
        _C._disable_saved_tensors_hooks(before)


class _MutationContext:
    """The copies that `allow_mutation_on_saved_tensors` made; backward must run inside of it."""

    def __init__(self) -> None:
        self.open = True
        self.copies = {}

    def clear(self) -> None:
        """Drop the copies; backward of what saved them raises then."""
        self.copies.clear()

    def pack(self, tensor):
        key = object()
        self.copies[key] = tensor.clone()
        return key

    def unpack(self, key):
        if not self.open:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in "
                "which the graph was originally recorded."
            )
        return self.copies[key]


@contextlib.contextmanager
def allow_mutation_on_saved_tensors():
    """A context manager in which saved tensors may be written: each is copied when it is saved.

    Backward must run inside of it, too (AssertionError). Yields the context, whose `clear()` frees
    the copies.

    Example:
        >>> x = torch.tensor([4.0], requires_grad=True)
        >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x * 1
        ...     z = y * y
        ...     _ = y.zero_()  # would be an error in backward
        ...     z.backward()
        >>> x.grad
        tensor([8.])
    """
    context = _MutationContext()
    with saved_tensors_hooks(context.pack, context.unpack):
        try:
            yield context
        finally:
            context.open = False
            context.clear()


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """A no-op: gradients are accumulated on the stream that computed them.

    Args:
        enabled: without effect.

    Example:
        >>> torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(True)
    """


class _MultiHandle(RemovableHandle):
    def __init__(self, handles) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self):
        return self.handles

    def __setstate__(self, handles):
        self.handles = handles


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` when the gradients of all tensors are computed, or the first (`mode="any"`).

    With "all", fn gets a list of them, None for those that a backward does not compute. "Not
    computed" is known only when the backward ends, so fn is then called by the last that comes.

    Args:
        tensors: the tensors.
        fn: gets the gradients, or with "any" the one.
        mode: "all" or "any".

    Returns:
        A handle whose `remove()` takes the hook away.

    Example:
        >>> x, y = (torch.tensor([n], requires_grad=True) for n in (4.0, 5.0))
        >>> handle = torch.autograd.graph.register_multi_grad_hook([x, y], print)
        >>> (x * y).backward()
        [tensor([5.]), tensor([4.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of 'all' and 'any', not {mode!r}")
    tensors = tuple(tensors)
    if mode == "any":
        seen: set[int] = set()

        def first(grad):
            run = _C._backward_run()
            if run not in seen:
                seen.clear()
                seen.add(run)
                fn(grad)

        return _MultiHandle(tuple(t.register_hook(first) for t in tensors))
    state: dict[str, Any] = {"run": None, "grads": [], "left": 0}
    edges = [get_gradient_edge(t) for t in tensors]

    def receive(i: int) -> Callable[..., Any]:
        def hook(grad: Tensor) -> None:
            run = _C._backward_run()
            if state["run"] != run:
                expected = [_C._will_run(e.node) for e in edges]
                state.update(run=run, grads=[None] * len(tensors), left=sum(expected))
            state["grads"][i] = grad
            state["left"] -= 1
            if state["left"] == 0:
                fn(state["grads"])

        return hook

    return _MultiHandle(tuple(t.register_hook(receive(i)) for i, t in enumerate(tensors)))
