"""What stands behind `rushlight._custom_ops`: ops with a schema first and functions later.

Its backward takes what was saved, and returns a dict of gradients by the names of arguments.
"""

from __future__ import annotations

import collections
import inspect
from typing import Any

import rushlight
from rushlight import _C
from rushlight._library import gradients, registry, simple_registry
from rushlight._library import schema as schemas
from rushlight._library.infer_schema import infer_schema
from rushlight._warnings import warn
from rushlight.library import Library, get_ctx

__all__ = ["CustomOp", "custom_op", "get_ctx"]

SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA"}
RESERVED_NS = {"prim", "prims", "aten", "at", "torch", "pytorch"}

global_registry: dict[str, CustomOp] = {}


def _warn():
    warn("torch._custom_op is deprecated; use what torch.library has for it.", DeprecationWarning)


def parse_qualname(qualname: str) -> tuple[str, str]:
    """The namespace and the name of an op.

    Raises:
        ValueError: there is no namespace, or a reserved one, or an overload is named.
    """
    namespace, separator, name = qualname.partition("::")
    if not separator:
        raise ValueError(f"Expected there to be a namespace in {qualname}, as in ns::foo")
    if "." in name:
        raise ValueError(
            f"The torch.custom_ops APIs do not handle overloads, names with '.' in them: {qualname}"
        )
    if "." in namespace:
        raise ValueError(f"custom_op(..., ns={namespace!r}): expected ns to not contain any .")
    if namespace in RESERVED_NS:
        raise ValueError(f"custom_op(..., ns={namespace!r}): it is a reserved namespace")
    return namespace, name


def get_op(qualname: str):
    """The overload without a name of an op.

    Raises:
        ValueError: there is none.
    """
    try:
        return registry.overload_of(qualname)
    except RuntimeError as error:
        raise ValueError(f"Could not find the operator {qualname}.") from error


def _find_custom_op(qualname, also_check_torch_library=False) -> CustomOp:
    if qualname in global_registry:
        return global_registry[qualname]
    if not also_check_torch_library:
        raise RuntimeError(f"Could not find custom op {qualname!r}")
    op = get_op(qualname)
    return CustomOp(Library(op.namespace, "FRAGMENT"), op)


def custom_op_with_schema(qualname, schema) -> CustomOp:
    """A new op, with no function yet.

    Raises:
        ValueError: the schema writes into an argument, returns a view or nothing, or has a `self`.
    """
    namespace, name = parse_qualname(qualname)
    parsed = schemas.parse(name + schema, namespace)
    if not schemas.is_functional(parsed):
        raise ValueError(f"custom_op only supports functional operators, got {parsed}")
    if any(a.name == "self" for a in parsed.arguments):
        raise ValueError(f"custom_op does not support arguments named 'self', got {parsed}")
    lib = Library(namespace, "FRAGMENT")
    lib.define(name + schema)
    op = CustomOp(lib, get_op(qualname))
    global_registry[qualname] = op
    return op


_AUTOGRAD = ("Autograd", "AutogradCPU", "AutogradCUDA")


class CustomOp:
    """An op of one's own; the methods are decorators of its functions."""

    def __init__(self, lib, overload) -> None:
        self._lib, self._overload = lib, overload
        self._qualname = overload.name()
        self._impls: dict[str, Any] = {}
        self._output_differentiability: list[bool] | None = None
        self.__name__ = overload._opname

    def __repr__(self) -> str:
        return f'<CustomOp(op="{self._qualname}")>'

    def __call__(self, *args, **kwargs):
        return self._overload(*args, **kwargs)

    def _destroy(self):
        self._lib._destroy()
        global_registry.pop(self._qualname, None)

    def _take(self, kind, function):
        if kind in self._impls:
            raise RuntimeError(
                f"impl_{kind} of {self._qualname} was called twice: the operator already has a "
                f"{kind} impl"
            )
        self._impls[kind] = function
        return function

    def impl(self, device_types=("cpu", "cuda")):
        """Decorates what the op does on devices."""
        kinds = (device_types,) if isinstance(device_types, str) else tuple(device_types)
        for kind in kinds:
            if kind not in SUPPORTED_DEVICE_TYPE_TO_KEY:
                raise ValueError(
                    f"CustomOp.impl(device_types=[{kind}, ...]): we only support device_type in "
                    f"{set(SUPPORTED_DEVICE_TYPE_TO_KEY)}."
                )

        def register(function):
            for kind in kinds:
                if kind not in self._impls and self._overload.has_kernel(kind.upper()):
                    raise RuntimeError(
                        f"impl(..., device_types={kind}): {self._qualname} already has an "
                        f"implementation for {kind}, from elsewhere"
                    )
                self._take(kind, function)
                self._lib.impl(self._overload, function, SUPPORTED_DEVICE_TYPE_TO_KEY[kind])
            return function

        return register

    def impl_factory(self):
        """Decorates what an op without tensors among its arguments does."""

        def register(function):
            self._take("factory", function)
            self._lib.impl(self._overload, function, "CompositeExplicitAutograd")
            return function

        return register

    def impl_abstract(self):
        """Decorates what the op makes of meta and fake tensors."""
        if self._overload.composite is not None:
            raise RuntimeError(
                f"impl_abstract(...): the operator {self._qualname} already has an implementation "
                "via a pre-existing registration to DispatchKey::CompositeImplicitAutograd"
            )
        if "abstract" not in self._impls and self._overload.has_kernel("Meta"):
            raise RuntimeError(
                f"impl_abstract(...): the operator {self._qualname} already has a "
                "DispatchKey::Meta implementation"
            )

        def register(function):
            self._take("abstract", function)
            simple_registry.register_fake(self._overload, function)
            return function

        return register

    # ---- backward ----

    def _check_backward(self):
        schema = self._overload._schema

        def refuse(what):
            raise RuntimeError(
                "_custom_ops APIs register a backward formula for functional operators of tensors, "
                f"not for {what}: {self._qualname} has the schema {schema}"
            )

        if schema.is_mutable:
            refuse("non-functional operator")
        if not schema.returns:
            refuse("operator with no returns")
        if any(r.alias_info is not None for r in schema.returns):
            refuse("operator that returns views")
        allowed = ("int", "SymInt", "bool", "float", "Tensor", "Tensor[]")
        for r in schema.returns:
            if r.type not in allowed:
                refuse(f"operator with return not in {list(allowed)} (got {r.type})")
        if self._overload.composite is not None:
            raise RuntimeError(
                f"impl_backward/impl_save_for_backward: the operator {self._qualname} already has "
                "an implementation via a pre-existing registration to "
                "DispatchKey::CompositeImplicitAutograd, whose gradients follow from its parts"
            )
        autograd = next((k for k in _AUTOGRAD if self._overload.has_kernel(k)), None)
        if autograd is not None and not {"backward", "save"} & set(self._impls):
            raise RuntimeError(
                f"impl_backward/impl_save_for_backward: {self._qualname} already has an Autograd "
                f"kernel, registered to {autograd}"
            )

    def impl_save_for_backward(self):
        """Decorates what is kept: `save(inputs, output)`, with the inputs by name."""
        self._check_backward()

        def register(function):
            self._take("save", function)
            self._differentiate()
            return function

        return register

    def impl_backward(self, output_differentiability=None):
        """Decorates the backward: `backward(ctx, saved, *grads)` returns gradients by name.

        Args:
            output_differentiability: for each result whether it has a gradient.
        """
        if output_differentiability is not None:
            schema = self._overload._schema
            if not isinstance(output_differentiability, list) or not all(
                isinstance(d, bool) for d in output_differentiability
            ):
                raise RuntimeError(
                    "impl_backward(output_differentiability): expected output_differentiability to "
                    f"be a list of bools, got {output_differentiability}"
                )
            if len(output_differentiability) != len(schema.returns):
                raise RuntimeError(
                    "impl_backward(output_differentiability): expected output_differentiability to "
                    f"have the same length as there are outputs, {len(schema.returns)}"
                )
        self._check_backward()

        def register(function):
            self._take("backward", function)
            self._output_differentiability = output_differentiability
            self._differentiate()
            return function

        return register

    def _differentiate(self):
        save, backward = self._impls.get("save"), self._impls.get("backward")
        if save is None or backward is None:  # one half alone: calls that want a gradient raise
            self._overload.implement("Autograd", self._half)
            return
        schema = self._overload._schema
        names = [a.name for a in schema.arguments]
        Arguments = collections.namedtuple(f"{self.__name__}_args", names)

        def setup(ctx, inputs, output, keyword_only_inputs=None):
            given = Arguments(*inputs, *(keyword_only_inputs or {}).values())
            ctx._saved, ctx._given = save(given, output), given
            for result, differentiable in zip(
                output if isinstance(output, tuple) else (output,),
                self._output_differentiability or (),
                strict=False,
            ):
                if not differentiable:
                    ctx.mark_non_differentiable(*registry.tensors_in(result))

        def run(ctx, *grads):
            made = backward(ctx, ctx._saved, *grads)
            self._check_gradients(made, ctx._given)
            return tuple(made.get(n) for n in names)

        function = gradients.function_of(self._overload, run, setup)
        self._overload.implement("Autograd", function)

    def _half(self, *args, **kwargs):
        values = self._overload.bind(args, kwargs)
        wanted = _C.is_grad_enabled() and any(t.requires_grad for t in registry.tensors_in(values))
        if wanted:
            missing = "backward" if "backward" not in self._impls else "save_for_backward"
            raise RuntimeError(
                f"The operator {self._qualname} has half of its backward: please register "
                f"impl_{missing}, too"
            )
        return self._overload.below(values)

    def _check_gradients(self, made, given):
        def refuse(what):
            raise RuntimeError(f"In the backward function defined for {self!r}, {what}")

        if not isinstance(made, dict):
            refuse(f"expected a dict of gradients by the names of inputs, but got {type(made)}")
        expected = {a.name for a in self._overload._schema.arguments if a.type.startswith("Tensor")}
        if expected != set(made):
            refuse(
                f"expected the returned grad_input dict to have keys {expected} but got {set(made)}"
            )
        for name, grad in made.items():
            value = getattr(given, name)
            several = isinstance(value, (list, tuple))
            if several and not isinstance(grad, (list, tuple)):
                refuse(
                    f"the input {name!r} is a list of tensors and takes a list of gradients, but "
                    f"got object of type {type(grad)}"
                )
            if several and len(grad) != len(value):
                refuse(
                    f"the input {name!r} takes a list of {len(value)} gradients, one for each of "
                    f"its tensors, but got {len(grad)}"
                )
            pairs = zip(grad, value, strict=True) if several else [(grad, value)]
            for g, v in pairs:
                if g is None:
                    continue
                if not isinstance(g, rushlight.Tensor):
                    refuse(
                        f"for input {name!r} expected the gradient to be either None or a Tensor"
                        f"{' each' if several else ''} but got object of type {type(g)}"
                    )
                if not isinstance(v, rushlight.Tensor):
                    refuse(
                        f"the input {name!r} is no Tensor, so that its gradient has to be None, "
                        "but got a Tensor"
                    )


def custom_op(qualname: str, manual_schema: str | None = None):
    """Decorates the signature of a new op, which becomes a `CustomOp`."""
    _warn()

    def define(function):
        check_signature(qualname, function)
        return custom_op_with_schema(
            qualname, manual_schema or infer_schema(function, mutates_args=())
        )

    return define


def check_signature(qualname, function):
    """ValueError if a function cannot give an op of that name its schema."""
    _, name = parse_qualname(qualname)
    if not inspect.isfunction(function):
        raise ValueError(
            f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(function)}"
        )
    if function.__name__ != name:
        raise ValueError(
            f"custom_op(qualname={qualname!r}, ...)(func): expected `func` to have name {name!r} "
            f"but got {function.__name__!r}"
        )
