"""Activation checkpointing: backward recomputes a function instead of keeping its saved tensors."""

from __future__ import annotations

import contextlib
import enum
import functools
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import rushlight
from rushlight import _C
from rushlight._ops import OpOverload
from rushlight._warnings import warn
from rushlight.autograd import Function
from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._pytree import keystr, tree_leaves_with_path, tree_map_only

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rushlight import Tensor

_R = TypeVar("_R")

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


class CheckpointError(RuntimeError):
    """Raised if a recomputation differs from the forward pass.

    Example:
        >>> issubclass(torch.utils.checkpoint.CheckpointError, RuntimeError)
        True
    """


def noop_context_fn():
    """The default contexts of the forward pass and of the recomputation, which do nothing.

    Example:
        >>> first, second = torch.utils.checkpoint.noop_context_fn()
        >>> with first, second:
        ...     pass
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


_early_stop = None  # what set_checkpoint_early_stop says; None leaves it to each call
_debug = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool):
    """A context manager that sets whether recomputation ends as soon as all saved tensors exist.

    Args:
        enable: whether it ends then.

    Example:
        >>> with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        ...     x = torch.tensor([0.5], requires_grad=True)
        ...     torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False).backward()
        >>> x.grad
        tensor([0.8776])
    """
    global _early_stop
    before = _early_stop
    _early_stop = enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool):
    """A context manager that sets `debug` of every checkpoint; None leaves it to the calls.

    Args:
        enabled: True, False or None.

    Example:
        >>> with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):
        ...     pass
    """
    global _debug
    before = _debug
    _debug = enabled
    try:
        yield
    finally:
        _debug = before


class DefaultDeviceType:
    """The device type whose random state is saved if no argument is on an accelerator.

    Example:
        >>> torch.utils.checkpoint.DefaultDeviceType.get_device_type()
        'cuda'
    """

    _default = "cuda"

    @staticmethod
    def set_device_type(device="cuda"):
        """Set the type of device whose random state is kept where the arguments name none.

        Args:
            device: the type: "cuda".
        """
        DefaultDeviceType._default = device

    @staticmethod
    def get_device_type():
        """The type of device whose random state is kept where the arguments name none."""
        return DefaultDeviceType._default


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The accelerators of the tensors among the arguments, and their random states.

    Args:
        *args: the arguments of a function.

    Example:
        >>> torch.utils.checkpoint.get_device_states(torch.ones(2))
        ([], [])
    """
    devices = sorted(
        {a.device.index or 0 for a in args if isinstance(a, _C.TensorBase) and a.is_cuda}
    )
    return devices, [rushlight.cuda.get_rng_state(d) for d in devices]


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Restore random states from `get_device_states`.

    Args:
        devices: numbers of accelerators.
        states: the random state of each.
        device_type: their kind; None: the one that is there.

    Example:
        >>> torch.utils.checkpoint.set_device_states([], [])
    """
    for device, state in zip(devices, states, strict=True):
        rushlight.cuda.set_rng_state(state, device)


def detach_variable(inputs: Any) -> tuple[Any, ...]:
    """Detach the tensors of a tuple, and keep their requires_grad.

    Args:
        inputs: a tuple.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> (detached,) = torch.utils.checkpoint.detach_variable((x,))
        >>> detached is x, detached.requires_grad
        (False, True)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        i.detach().requires_grad_(i.requires_grad) if isinstance(i, _C.TensorBase) else i
        for i in inputs
    )


def check_backward_validity(inputs: Any) -> None:
    """Warn if no input requires grad.

    Args:
        inputs: the arguments of a function.

    Example:
        >>> torch.utils.checkpoint.check_backward_validity([torch.ones(2, requires_grad=True)])
    """
    if not any(isinstance(i, _C.TensorBase) and i.requires_grad for i in inputs):
        warn("None of the inputs have requires_grad=True. Gradients will be None")


class _StartState:
    """Autocast and the generators as a part found them, for its repetition."""

    def __init__(self, preserve, args) -> None:
        self.autocasts = [
            {
                "device_type": device,
                "enabled": rushlight.is_autocast_enabled(device),
                "dtype": rushlight.get_autocast_dtype(device),
                "cache_enabled": rushlight.is_autocast_cache_enabled(),
            }
            for device in ("cpu", "cuda")
        ]
        self.state = rushlight.get_rng_state() if preserve else None
        states: Any = get_device_states(*args) if preserve else ((), ())
        self.devices, self.device_states = states

    @contextlib.contextmanager
    def restore(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for autocast in self.autocasts:
                if autocast["enabled"] or rushlight.is_autocast_enabled(autocast["device_type"]):
                    stack.enter_context(rushlight.amp.autocast(**autocast))
            stack.enter_context(self._random_state_restored())
            yield

    @contextlib.contextmanager
    def _random_state_restored(self) -> Iterator[None]:
        if self.state is None:
            yield
            return
        now = rushlight.get_rng_state()
        now_on_devices = [rushlight.cuda.get_rng_state(d) for d in self.devices]
        rushlight.set_rng_state(self.state)
        set_device_states(self.devices, self.device_states)
        try:
            yield
        finally:
            rushlight.set_rng_state(now)
            set_device_states(self.devices, now_on_devices)


def checkpoint(
    function: Callable[..., _R],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Any = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> _R:
    """Call `function(*args, **kwargs)` and save only its arguments for backward, which calls it
    again.

    Args:
        function: is called again in backward; it must do the same again.
        use_reentrant: False (recommended) recomputes when backward first asks for a saved tensor;
            True, the older way, runs a backward inside of backward and needs an argument that
            requires grad. None means True with a warning.
        early_stop: end the repetition as soon as all saved tensors are there.
        context_fn: returns two context managers, for the first and the repeated run.
        determinism_check: "none" skips the comparison of shapes and dtypes of saved tensors.
        debug: an error of the repetition names the ops of both runs.
        preserve_rng_state: repeat with the random state of the first run (default True).
        args: the arguments.
        kwargs: the arguments by name.

    Example:
        >>> x = torch.tensor([0.5, 2.0], requires_grad=True)
        >>> f = lambda x: x.square().sum()
        >>> torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False).backward()
        >>> x.grad
        tensor([1., 4.])
    """
    if use_reentrant is None:
        warn(
            "checkpoint: the use_reentrant parameter should be passed explicitly; "
            "use_reentrant=False is recommended. It is taken as True.",
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'], but got {determinism_check}"
        )
    early_stop = early_stop if _early_stop is None else _early_stop
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve, *args)
    debug = debug if _debug is None else _debug
    contexts, start = context_fn(), _StartState(preserve, args)
    call = function, args, kwargs
    check = determinism_check != "none"
    return _Recomputation(call, contexts, start, check, early_stop, debug).run()


class CheckpointFunction(Function):
    """The reentrant implementation: forward is not recorded, and backward runs a nested
    backward.

    For an example see `utils.checkpoint.checkpoint`, which calls it with use_reentrant=True.
    """

    @staticmethod
    def forward(ctx, function: Callable[..., Any], preserve, *args):
        ctx.function = function
        ctx.start = _StartState(preserve, args)
        ctx.tensor_places = [i for i, a in enumerate(args) if isinstance(a, _C.TensorBase)]
        ctx.arguments = [None if isinstance(a, _C.TensorBase) else a for a in args]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_places))
        check_backward_validity(args)
        return function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if not _C._reaches_all_leaves():
            raise RuntimeError(
                "checkpoint with use_reentrant=True is incompatible with .grad() and with inputs= "
                "of .backward(): it has to reach all leaves. use_reentrant=False has no such limit"
            )
        arguments = list(ctx.arguments)
        for i, tensor in zip(ctx.tensor_places, ctx.saved_tensors, strict=True):
            arguments[i] = tensor.detach().requires_grad_(tensor.requires_grad)
        with rushlight.enable_grad(), ctx.start.restore():
            outputs = ctx.function(*arguments)
        outputs = (outputs,) if isinstance(outputs, _C.TensorBase) else outputs
        pairs: list[Any] = [
            (o, g)
            for o, g in zip(outputs, grads, strict=True)
            if isinstance(o, _C.TensorBase) and o.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        rushlight.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(a.grad if isinstance(a, _C.TensorBase) else None for a in arguments))


class _Stop(Exception):
    """Ends a repeated run early: all that was saved is there."""


class _OpNames(TorchDispatchMode):
    """Notes the ops that run."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func not in SAC_IGNORED_OPS:
            self.names.append(str(func))
        return func(*args, **(kwargs or {}))


class _Recomputation:
    """One call whose saved tensors are dropped, and computed again where backward wants them.

    Args:
        call: the function and its arguments.
        contexts: those of the first and of the second run.
        start: the state in which the function began.
        check: whether tensors must be alike both times.
        early_stop: whether the second run ends where all is there.
        debug: whether errors name the ops that ran.
    """

    def __init__(self, call, contexts, start, check, early_stop, debug):
        function, args, kwargs = call
        self.call, self.start = functools.partial(function, *args, **kwargs), start
        named = {**{f"args[{i}]": x for i, x in enumerate(args)}, **kwargs}
        self.versions = [
            (f"{name}{keystr(path)}", tensor, tensor._version)
            for name, value in named.items()
            for path, tensor in tree_leaves_with_path(value)
            if isinstance(tensor, _C.TensorBase) and not tensor.is_inference()
        ]
        self.first_context, self.again_context = contexts
        self.check, self.early_stop = check, early_stop
        self.ops = (_OpNames(), _OpNames()) if debug else None
        self.shapes: list[Any] = []  # of the tensors that the first run saved
        self.recomputed: dict[int, rushlight.Tensor] = {}  # by place among them

    def run(self):
        """The first run."""
        names = self.ops[0] if self.ops else contextlib.nullcontext()
        with self.first_context, names, saved_tensors_hooks(self._pack, self._unpack):
            return self.call()

    def _pack(self, tensor: Tensor) -> int:
        self.shapes.append((tuple(tensor.shape), tensor.dtype, tensor.device))
        return len(self.shapes) - 1

    def _unpack(self, place: int) -> Tensor:
        if place not in self.recomputed:
            self._run_again()
        if place not in self.recomputed:
            raise self._error(
                f"checkpoint: A different number of tensors was saved: {len(self.shapes)} at "
                f"first, {len(self.recomputed)} when the function ran again. It must do the same "
                "each time"
            )
        tensor = self.recomputed.pop(place)
        found = (tuple(tensor.shape), tensor.dtype, tensor.device)
        if self.check and found != self.shapes[place]:
            raise self._error(
                "checkpoint: Recomputed values have different metadata: saved tensor "
                f"{place} was {self.shapes[place]} at first and is {found} when the function ran "
                "again"
            )
        return tensor

    def _check_arguments(self) -> None:
        """RuntimeError where an argument was written since."""
        for name, tensor, version in self.versions:
            if tensor._version != version:
                raise RuntimeError(
                    f"checkpoint: {name}, a tensor of shape {tuple(tensor.shape)}, has been "
                    f"modified by an inplace operation: it is at version {tensor._version}, and "
                    f"was at version {version}. Backward calls the function again, which has to "
                    "find its arguments as they were: let it write to a clone() of them"
                )

    def _run_again(self) -> None:
        self._check_arguments()
        self.recomputed.clear()
        if self.ops:
            self.ops[1].names.clear()
        count = 0

        def pack_again(tensor: Tensor) -> int:
            nonlocal count
            dual = _C._forward_level_of(tensor) != 0
            self.recomputed[count] = _C._without_graph(tensor) if dual else tensor.detach()
            count += 1
            if self.early_stop and count == len(self.shapes):
                raise _Stop
            return count - 1

        def unpack_again(place):  # a backward inside of the function
            return self.recomputed[place]

        with (
            contextlib.suppress(_Stop),
            rushlight.enable_grad(),
            self.start.restore(),
            self.again_context,
            self.ops[1] if self.ops else contextlib.nullcontext(),
            saved_tensors_hooks(pack_again, unpack_again),
        ):
            self.call()

    def _error(self, message: str) -> CheckpointError:
        if self.ops:
            first, again = (", ".join(ops.names) or "none" for ops in self.ops)
            message += f"\nOps of the forward pass: {first}\nOps of the recomputation: {again}"
        return CheckpointError(message)


# ---- keeping some results ----


class CheckpointPolicy(enum.Enum):
    """What a policy returns for an op: keep its results, or recompute them.

    Example:
        >>> torch.utils.checkpoint.CheckpointPolicy.MUST_SAVE
        <CheckpointPolicy.MUST_SAVE: 0>
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3


class SelectiveCheckpointContext:
    """What a policy gets beside the op: whether this is the recomputation.

    Args:
        is_recompute: whether this is the recomputation.

    Example:
        >>> torch.utils.checkpoint.SelectiveCheckpointContext(is_recompute=True).is_recompute
        True
    """

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


# Ops that are always computed again: they cost nothing.
SAC_IGNORED_OPS = {rushlight.ops.aten.detach.default}


class _SelectiveMode(TorchDispatchMode):
    """Asks the policy of every op; `kept` holds results by op, in order."""

    _is_recompute = False

    def __init__(self, policy_fn, kept) -> None:
        self.policy_fn = policy_fn
        self.kept = kept

    def _keeps(self, func, args, kwargs):
        if func in SAC_IGNORED_OPS:
            return False
        context = SelectiveCheckpointContext(is_recompute=self._is_recompute)
        policy = self.policy_fn(context, func, *args, **kwargs)
        if isinstance(policy, bool):
            return policy
        return policy in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


class _CachingTorchDispatchMode(_SelectiveMode):
    """Keeps results in the first run."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if self._keeps(func, args, kwargs):
            self.kept[func].append(tree_map_only(_C.TensorBase, lambda t: t.detach(), result))
        return result


class _CachedTorchDispatchMode(_SelectiveMode):
    """Gives them back in the repetition."""

    _is_recompute = True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self._keeps(func, args, kwargs):
            return func(*args, **kwargs)
        if not self.kept[func]:
            raise RuntimeError(
                f"{func} encountered during backward, but not found in storage: the repetition "
                "does other things than the first run, or there is a second one"
            )
        return self.kept[func].pop(0)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[_CachingTorchDispatchMode, _CachedTorchDispatchMode]:
    """Contexts for `context_fn` that keep the results of some ops and recompute the others.

    Args:
        policy_fn_or_list: `policy(ctx, op, *args, **kwargs)` -> CheckpointPolicy, or a list of the
            ops (`rushlight.ops.aten.mm.default`) whose results are to be kept.
        allow_cache_entry_mutation: whether results that are kept may be written.

    Example:
        >>> import functools
        >>> keep_products = functools.partial(
        ...     torch.utils.checkpoint.create_selective_checkpoint_contexts,
        ...     [torch.ops.aten.mm.default],
        ... )
        >>> x = torch.ones(2, 2, requires_grad=True)
        >>> y = torch.utils.checkpoint.checkpoint(
        ...     lambda x: (x @ x).exp(), x, use_reentrant=False, context_fn=keep_products
        ... )
        >>> y.sum().backward()
    """
    policy = policy_fn_or_list
    if isinstance(policy, list):
        policy = _policy_of_ops(policy)
    elif not callable(policy):
        raise TypeError(
            f"policy_fn_or_list must be either a function or a list, but got {policy!r}"
        )
    kept: defaultdict[Any, list] = defaultdict(list)
    return _CachingTorchDispatchMode(policy, kept), _CachedTorchDispatchMode(policy, kept)


def _policy_of_ops(ops: list[Any]) -> Callable[..., CheckpointPolicy]:
    """The policy that keeps what some ops give."""
    wrong = [op for op in ops if not isinstance(op, OpOverload)]
    if wrong:
        raise ValueError(
            f"Unexpected op in `op_list`, got: {wrong[0]} of type {type(wrong[0])}: an OpOverload "
            "such as ops.aten.mm.default is expected"
        )
    must = dict.fromkeys(ops, CheckpointPolicy.MUST_SAVE)
    return lambda context, op, *args, **kwargs: must.get(op, CheckpointPolicy.PREFER_RECOMPUTE)


def checkpoint_sequential(
    functions: Sequence[Any],
    segments: int,
    input: Tensor,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Call functions in sequence, in `segments` groups, each but the last checkpointed.

    Args:
        functions: a `Sequential`, or a list of modules.
        segments: the number of groups.
        input: the input of the first.
        use_reentrant: see `checkpoint`.
        kwargs: `preserve_rng_state`; see `checkpoint`.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
        >>> x = torch.ones(1, 2, requires_grad=True)
        >>> torch.utils.checkpoint.checkpoint_sequential(net, 2, x, use_reentrant=False).shape
        torch.Size([1, 1])
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = (
        list(functions.children())
        if isinstance(functions, rushlight.nn.Sequential)
        else list(functions)
    )
    size = max(1, len(functions) // segments)

    def run(begin, end):
        def group(value):
            for function in functions[begin:end]:
                value = function(value)
            return value

        return group

    end = 0
    for begin in range(0, size * (segments - 1), size):
        end = begin + size
        input = checkpoint(
            run(begin, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve
        )
    return run(end, len(functions))(input)
