"""`custom_op`: a function as an op, with its other functions registered on the result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from rushlight._library import gradients, registry, simple_registry
from rushlight._library import schema as schemas
from rushlight._library.infer_schema import infer_schema


def devices_of(device_types: str | None) -> tuple:
    """Device types as they are registered; None stands for all.

    Raises:
        RuntimeError: one is no device.
    """
    import rushlight

    kinds = (device_types,) if isinstance(device_types, (str, type(None))) else device_types
    found = []
    for kind in kinds:
        name = None if kind in (None, "default") else kind.lower()
        if name == "compositeexplicitautograd":
            name = None
        if name is not None:
            rushlight.device(name)
        found.append(name)
    return tuple(found)


class CustomOpDef:
    """A custom op, which can be called; its methods register other functions.

    Args:
        namespace: what stands before "::".
        name: what stands behind it.
        schema: arguments and results.
        fn: the function.
        tags: words of `torch.Tag`.

    Example:
        >>> @torch.library.custom_op("docs_def::halve", mutates_args=())
        ... def halve(x: torch.Tensor) -> torch.Tensor:
        ...     return x / 2
        >>> halve
        <CustomOpDef(docs_def::halve)>
    """

    def __init__(
        self,
        namespace: str,
        name: str,
        schema: str,
        fn: Callable[..., Any] | None = None,
        tags: Any = (),
    ) -> None:
        self._namespace, self._name, self._schema = namespace, name, schema
        self._qualname = f"{namespace}::{name}"
        earlier = registry.find(self._qualname)
        if earlier is not None:  # the latest definition counts
            registry.forget(earlier)
        self._opoverload = registry.define(schemas.parse(f"{name}{schema}", namespace), tags)
        self._init_fn = fn
        self._backward: Any = None
        self.__name__ = name

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """A decorator for the function for meta tensors, which makes results of the right sizes."""
        simple_registry.register_fake(self._opoverload, fn)
        return fn

    def register_kernel(self, device_types, fn: Callable[..., Any] | None = None, /):
        """A decorator for the function for one or several device types; None means all."""
        op = self._opoverload

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            def kernel(*args, **kwargs):
                result = function(*args, **kwargs)
                gradients.refuse_aliases(op, (args, kwargs), result)
                return result

            def chosen(device):
                def run(*args, **kwargs):
                    if device in op.disabled and self._init_fn is not None:
                        return self._init_fn(*args, **kwargs)
                    return kernel(*args, **kwargs)

                return run

            for device in devices_of(device_types):
                op.implement(registry.key_of(device), chosen(device))
            return function

        return register if fn is None else register(fn)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True):
        """A context manager that turns a device's function on or off; without it the op's first
        function runs.
        """
        disabled = self._opoverload.disabled
        before = device_type in disabled
        (disabled.discard if enabled else disabled.add)(device_type)
        try:
            yield
        finally:
            (disabled.add if before else disabled.discard)(device_type)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register the backward: `backward(ctx, *grads)` returns one gradient for each argument.

        `setup_context(ctx, inputs, output)` keeps what it needs; of an op with keyword-only
        arguments it takes `keyword_only_inputs`, too. For an argument that is a list of tensors the
        gradient is a list.
        """
        op = self._opoverload
        op.implement("Autograd", gradients.function_of(op, backward, setup_context))

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """A decorator for the function under vmap: `f(info, in_dims, *args)` returns (output,
        out_dims).
        """

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            op = self._opoverload
            op.implement("FuncTorchBatched", registry.vmap_function(op, function))
            return function

        return register if func is None else register(func)

    def register_autocast(self, device_type: str, cast_inputs):
        """Register a dtype to which autocast on a device casts floating-point tensors first."""
        if device_type not in ("cpu", "cuda", "xpu"):
            raise ValueError(f"Unknown device type: {device_type}")
        op = self._opoverload
        key = f"Autocast{registry.key_of(device_type)}"
        op.implement(key, registry.autocast_function(op, device_type, cast_inputs))

    def register_torch_dispatch(
        self, torch_dispatch_class: type, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """A decorator for what a class of modes or tensors does with the op."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._opoverload.dispatch_rules[torch_dispatch_class] = function
            return function

        return register if fn is None else register(fn)


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any,
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make a function an op, `ops.NAMESPACE.NAME`; without `fn`, a decorator.

    Args:
        name: "namespace::name".
        mutates_args: the names of the arguments that it writes.
        device_types: for which devices the function is; None for all.
        schema: by default what the annotations say.
        fn: the function; None: a decorator.
        tags: words of `torch.Tag`.

    Raises:
        ValueError: the schema writes into other arguments than `mutates_args`.

    Example:
        >>> @torch.library.custom_op("docs_op::halve", mutates_args=())
        ... def halve(x: torch.Tensor) -> torch.Tensor:
        ...     return x / 2
        >>> halve(torch.tensor([8.0, 3.0])), torch.ops.docs_op.halve(torch.tensor([5.0]))
        (tensor([4.0000, 1.5000]), tensor([2.5000]))
    """

    def define_op(function: Callable[..., Any]) -> CustomOpDef:
        said = schema or infer_schema(function, mutates_args=mutates_args)
        parts = schemas.name_of(name)
        short = name.partition("::")[2]
        if schema is not None:
            parsed = schemas.parse(f"{short}{said}", parts.space)
            written = {
                a.name
                for a in parsed.arguments
                if a.alias_info is not None and a.alias_info.is_write
            }
            if mutates_args != "unknown" and written != set(mutates_args):
                raise ValueError(
                    f"mutates_args={mutates_args} is different from what the schema {schema} "
                    f"says: by it the op mutates {written or '{}'}"
                )
        op = CustomOpDef(parts.space, short, said, function, tags or ())
        op.register_kernel(device_types, function)
        return op

    return define_op if fn is None else define_op(fn)
