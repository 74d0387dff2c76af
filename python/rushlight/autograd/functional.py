"""Derivatives of functions as functions: Jacobians, Hessians, and their products with vectors.

All take `func`, a tensor or tuple of tensors as `inputs`, and give their result in the same form.
With `create_graph` results can be differentiated again; with `strict` an output that does not
depend on an input raises, where it else counts as zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C
from rushlight._transforms.reverse import basis_of
from rushlight.autograd import grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

_OUTPUT = "The output of the user-provided function"
_JACOBIAN = "The jacobian of the user-provided function"


def _as_tuple(value: Any, what: str, function: str) -> tuple[tuple[Any, ...], bool]:
    if isinstance(value, _C.TensorBase):
        return (value,), False
    expected = f"{function}: {what} must be either a Tensor or several in a tuple"
    if not isinstance(value, tuple):
        raise TypeError(f"{expected}, but got {type(value)}")
    for i, v in enumerate(value):
        if not isinstance(v, _C.TensorBase):
            raise TypeError(f"{expected}, but the value at index {i} has type {type(v)}")
    return value, True


def _fresh_inputs(inputs, create_graph):
    """Inputs that require grad, apart from other graphs unless these are to be continued."""
    if create_graph:
        return tuple(i.view_as(i) if i.requires_grad else _C._leaf_of(i) for i in inputs)
    return tuple(i.detach().requires_grad_() for i in inputs)


def _call(func, inputs, strict, function):
    outputs, several = _as_tuple(func(*inputs), "outputs of the user-provided function", function)
    if strict:
        for i, output in enumerate(outputs):
            if not output.requires_grad:
                raise RuntimeError(
                    f"Output {i} does not require gradients, although the inputs do: strict mode "
                    "demands that the function computes it from them"
                )
    return outputs, several


def _second(what, i):
    """The error where a gradient does not depend on input i, so that the Hessian is zero there."""
    return RuntimeError(
        f"hessian: {what} with respect to input {i} is independent of that input, which is refused "
        "in strict mode. Is the function twice differentiable, and no linear one?"
    )


def _grads(outputs, inputs, vectors, create_graph, strict, what):
    """Gradients with zeros for what does not depend on an input (an error in strict mode).

    With `what` None such an error tells of the Hessian.
    """
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]
    if pairs:
        results = grad(
            [o for o, _ in pairs],
            inputs,
            [v for _, v in pairs],
            create_graph=create_graph,
            retain_graph=True,
            allow_unused=True,
        )
    else:
        results = (None,) * len(inputs)
    filled = []
    for i, (result, value) in enumerate(zip(results, inputs, strict=True)):
        if result is None:
            if strict and what is None:
                raise _second("the jacobian of the user-provided function", i)
            if strict:
                raise RuntimeError(
                    f"{what} is independent of input {i}. This is not allowed in strict mode."
                )
            result = rushlight.zeros_like(value)
        filled.append(result)
    return tuple(filled)


def _check_depends(
    results: tuple[rushlight.Tensor, ...], strict: bool, create_graph: bool, what: str = _JACOBIAN
) -> None:
    """In strict mode what is to be differentiated again must depend on the inputs."""
    if strict and create_graph:
        for i, result in enumerate(results):
            if not result.requires_grad:
                raise RuntimeError(
                    f"{what} is independent of input {i}: create_graph=True finds nothing to "
                    "differentiate in strict mode"
                )


def _vectors(v, like, what, function):
    """One vector for each tensor; ones for a single scalar."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None where {what} is a Tensor of one element"
            )
        return (rushlight.ones_like(like[0]),)
    vectors, several = _as_tuple(v, "v", function)
    if len(vectors) != len(like):
        if len(like) == 1:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}."
        )
    for i, (a, b) in enumerate(zip(vectors, like, strict=True)):
        if a.shape != b.shape:
            which = f"Entry {i} in v" if len(like) > 1 or several else "v"
            raise RuntimeError(f"{which} has invalid size: {a.shape}, where {b.shape} is expected")
    return vectors


def _result(values, several, create_graph):
    values = values if create_graph else tuple(v.detach() for v in values)
    return values if several else values[0]


_INPUT_SCALAR = "the argument of the function"
_OUTPUT_SCALAR = "the result of the function"


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and vᵀ J with the Jacobian J; v has the structure of the output.

    Args:
        func: the function.
        inputs: its arguments, a tensor or several.
        v: the vector; may be left out where the output has one element.
        create_graph: whether the result can be differentiated.
        strict: whether to raise RuntimeError where an output does not depend on an input.

    Example:
        >>> torch.autograd.functional.vjp(torch.sin, torch.tensor([0.0]), torch.tensor([1.0]))[1]
        tensor([1.])
    """
    with rushlight.enable_grad():
        inputs, several_in = _as_tuple(inputs, "inputs", "vjp")
        inputs = _fresh_inputs(inputs, create_graph)
        outputs, several_out = _call(func, inputs, strict, "vjp")
        vectors = _vectors(v, outputs, _OUTPUT_SCALAR, "vjp")
        products = _grads(outputs, inputs, vectors, create_graph, strict, _OUTPUT)
        _check_depends(products, strict, create_graph)
    return _result(outputs, several_out, create_graph), _result(products, several_in, create_graph)


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and J v; v has the structure of the inputs. It runs backward twice.

    Args:
        func: the function.
        inputs: its arguments, a tensor or several.
        v: the vector; may be left out where the input has one element.
        create_graph: whether the result can be differentiated.
        strict: whether to raise RuntimeError where an output does not depend on an input.

    Example:
        >>> torch.autograd.functional.jvp(torch.sin, torch.tensor([0.0]), torch.tensor([1.0]))[1]
        tensor([1.])
    """
    with rushlight.enable_grad():
        inputs, _ = _as_tuple(inputs, "inputs", "jvp")
        inputs = _fresh_inputs(inputs, create_graph)
        vectors = _vectors(v, inputs, _INPUT_SCALAR, "jvp")
        outputs, several_out = _call(func, inputs, strict, "jvp")
        # wᵀ J is linear in w; its derivative with respect to w, applied to v, is J v.
        w = tuple(rushlight.zeros_like(o).requires_grad_() for o in outputs)
        products = _grads(outputs, inputs, w, True, strict, _OUTPUT)
        results = _grads(products, w, vectors, create_graph, False, _JACOBIAN)
        _check_depends(results, strict, create_graph)
    return _result(outputs, several_out, create_graph), _result(results, several_out, create_graph)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> rushlight.Tensor | tuple[Any, ...]:
    """Return the Jacobian: for each output and input a tensor with the shapes of both, one after
    the other.

    For several outputs or inputs a tuple, or a tuple (by output) of tuples (by input).
    Rows are computed one by one, with `vectorize` all at once by `vmap`. The strategy
    "forward-mode" computes columns instead, all at once, which costs less where there are fewer
    inputs than outputs.

    Raises:
        RuntimeError: in strict mode, where an output does not depend on an input.
        NotImplementedError: "forward-mode" without `vectorize` or with `create_graph`.

    Args:
        func: the function.
        inputs: its arguments, a tensor or several.
        create_graph: whether the result can be differentiated.
        strict: whether to raise RuntimeError where an output does not depend on an input.
        vectorize: whether rows are computed all at once.
        strategy: "reverse-mode" or "forward-mode".

    Example:
        >>> torch.autograd.functional.jacobian(lambda x: x**2, torch.tensor([1.0, 3.0]))
        tensor([[2., 0.],
                [0., 6.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either of two: "reverse-mode", or "forward-mode" for a '
            "function that has more outputs than inputs"
        )
    if strict and vectorize:
        raise RuntimeError(
            "jacobian: `strict=True` finds outputs that depend on nothing one after the other, "
            "which `vectorize=True` does not do. Leave one of them out"
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'jacobian: what `strategy="forward-mode"` computes has no graph. For '
                '`create_graph=True` use `strategy="reverse-mode"`'
            )
        if not vectorize:
            raise NotImplementedError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only "
                "implemented for `vectorize=True`."
            )
    inputs, several_in = _as_tuple(inputs, "inputs", "jacobian")
    if strategy == "forward-mode":
        return _columns(func, inputs, several_in)
    with rushlight.enable_grad():
        inputs = _fresh_inputs(inputs, create_graph)
        outputs, several_out = _call(func, inputs, strict, "jacobian")

        def gradients(number: int, element: rushlight.Tensor) -> tuple[rushlight.Tensor, ...]:
            what = f"Output {number} of the user-provided function"
            one = rushlight.ones_like(element)
            return _grads((element,), inputs, (one,), create_graph, strict, what)

        if vectorize:
            blocks = _together(outputs, inputs, create_graph)
        else:
            blocks = _by_rows(outputs, inputs, gradients)
        rows = []
        for row in blocks:
            _check_depends(row, strict, create_graph)
            rows.append(_result(row, several_in, create_graph))
    return tuple(rows) if several_out else rows[0]


def _by_rows(outputs, inputs, gradients):
    """Blocks of the Jacobian, by output and input; one backward for each element of the outputs.

    `gradients(number, element)` gives those of an element of the output with this number.
    """
    blocks = []
    for number, output in enumerate(outputs):
        flat = output.reshape(-1)
        rows = [gradients(number, flat[j]) for j in range(flat.numel())]
        columns = ([row[i] for row in rows] for i in range(len(inputs)))
        blocks.append(tuple(_block(c, 0, output, i) for c, i in zip(columns, inputs, strict=True)))
    return blocks


def _together(outputs, inputs, create_graph):
    """The same by one backward for the elements of all outputs, a batch of gradients."""
    sizes = [o.numel() for o in outputs]
    pairs = [(o, d) for o, d in zip(outputs, basis_of(outputs), strict=True) if o.requires_grad]
    found = [None] * len(inputs)
    if pairs:
        found = grad(
            [o for o, _ in pairs],
            inputs,
            [d for _, d in pairs],
            create_graph=create_graph,
            allow_unused=True,
            is_grads_batched=True,
        )
    rows = [
        i.new_zeros((sum(sizes), *i.shape)) if f is None else f
        for i, f in zip(inputs, found, strict=True)
    ]
    return [
        tuple(part.reshape(o.shape + i.shape) for part, i in zip(parts, inputs, strict=True))
        for o, parts in zip(outputs, zip(*(r.split(sizes) for r in rows), strict=True), strict=True)
    ]


def _block(
    parts: list[rushlight.Tensor], dim: int, output: rushlight.Tensor, value: rushlight.Tensor
) -> rushlight.Tensor:
    shape = output.shape + value.shape
    return rushlight.stack(parts, dim).reshape(shape) if parts else output.new_zeros(shape)


def _columns(func, inputs, several_in):
    """The Jacobian in forward mode."""
    from rushlight._transforms.forward import jacfwd

    several_out = False

    def check_outputs(*values: rushlight.Tensor) -> tuple[rushlight.Tensor, ...]:
        nonlocal several_out
        outputs, several_out = _as_tuple(
            func(*values), "outputs of the user-provided function", "jacobian"
        )
        return outputs

    places = tuple(range(len(inputs)))
    rows = jacfwd(check_outputs, places)(*(i.detach() for i in inputs))
    rows = tuple(_result(row, several_in, False) for row in rows)
    return rows if several_out else rows[0]


def _scalar(func: Callable[..., Any], function: str) -> Callable[..., Any]:
    def call_scalar(*inputs: rushlight.Tensor) -> rushlight.Tensor:
        output = func(*inputs)
        if not isinstance(output, _C.TensorBase):
            raise RuntimeError(f"The function given to {function} should return a single Tensor")
        if output.numel() != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {function} should contain a single "
                "element"
            )
        return output.reshape(())

    return call_scalar


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> rushlight.Tensor | tuple[Any, ...]:
    """Return the second derivatives of a scalar function: a tensor, or tuples indexed by input.

    Args:
        func: a function whose result has one element.
        inputs: its arguments, a tensor or several.
        create_graph: whether the result can be differentiated.
        strict: whether to raise RuntimeError where the result does not depend on an input.
        vectorize: whether rows are computed all at once.
        outer_jacobian_strategy: "reverse-mode" or "forward-mode".

    Example:
        >>> torch.autograd.functional.hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    inputs, several = _as_tuple(inputs, "inputs", "hessian")
    scalar = _scalar(func, "hessian")

    def gradient(*values):
        results = jacobian(scalar, values, create_graph=True)
        if strict:
            _check_twice(scalar(*values), results, values)
        return results if several else results[0]

    return jacobian(
        gradient,
        inputs if several else inputs[0],
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )


def _check_twice(output, gradients, inputs):
    """In strict mode the output and its gradients must depend on all inputs."""
    if not output.requires_grad:
        raise RuntimeError(
            "Output 0 does not require gradients, although the inputs do: strict mode demands that "
            "the function computes it from them"
        )
    _grads((output,), inputs, (rushlight.ones_like(output),), False, True, _OUTPUT)
    for i, g in enumerate(gradients):
        if not g.requires_grad:
            raise _second("the jacobian of the user-provided function", i)


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and vᵀ H with the Hessian H; v has the structure of the inputs.

    Args:
        func: a function whose result has one element.
        inputs: its arguments, a tensor or several.
        v: the vector, of the inputs' structure.
        create_graph: whether the result can be differentiated.
        strict: whether to raise RuntimeError where the result does not depend on an input.

    Example:
        >>> f = lambda x: (x**3).sum()
        >>> torch.autograd.functional.vhp(f, torch.tensor([1.0, 2.0]), torch.ones(2))[1]
        tensor([ 6., 12.])
    """

    def product(inputs, gradients, vectors):
        return _grads(gradients, inputs, vectors, create_graph, strict, None)

    return _with_hessian("vhp", product, func, inputs, v, create_graph, strict)


def _with_hessian(function, product, func, inputs, v, create_graph, strict):
    """The function's result, and `product(inputs, gradients, vectors)` of gradients that can be
    differentiated again."""
    with rushlight.enable_grad():
        inputs, several = _as_tuple(inputs, "inputs", function)
        inputs = _fresh_inputs(inputs, create_graph)
        vectors = _vectors(v, inputs, _INPUT_SCALAR, function)
        outputs, _ = _call(_scalar(func, function), inputs, strict, function)
        one = rushlight.ones_like(outputs[0])
        first = _grads(outputs, inputs, (one,), True, strict, _OUTPUT)
        results = product(inputs, first, vectors)
        _check_depends(results, strict, create_graph, "The hessian of the user-provided function")
    return _result(outputs, False, create_graph), _result(results, several, create_graph)


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and H v. It costs one backward more than `vhp`, which gives the same
    values.

    Args:
        func: a function whose result has one element.
        inputs: its arguments, a tensor or several.
        v: the vector, of the inputs' structure.
        create_graph: whether the result can be differentiated.
        strict: whether to raise RuntimeError where the result does not depend on an input.

    Example:
        >>> f = lambda x: (x**3).sum()
        >>> torch.autograd.functional.hvp(f, torch.tensor([1.0, 2.0]), torch.ones(2))[1]
        tensor([ 6., 12.])
    """

    def product(inputs, gradients, vectors):
        # wᵀ H is linear in w; its derivative with respect to w, applied to v, is H v.
        w = tuple(rushlight.zeros_like(i).requires_grad_() for i in inputs)
        products = _grads(gradients, inputs, w, True, strict, None)
        return _grads(products, w, vectors, create_graph, False, None)

    return _with_hessian("hvp", product, func, inputs, v, create_graph, strict)
