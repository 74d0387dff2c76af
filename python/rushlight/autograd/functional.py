"""Derivatives of functions as functions: Jacobians, Hessians, and their products with vectors.

All take `func`, a tensor or tuple of tensors as `inputs`, and give their result in the same form.
With `create_graph` results can be differentiated again; with `strict` an output that does not
depend on an input raises, where it else counts as zero.
"""

import rushlight
from rushlight import _C
from rushlight.autograd import grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _as_tuple(value, what):
    if isinstance(value, _C.TensorBase):
        return (value,), False
    if not isinstance(value, (tuple, list)) or not all(isinstance(v, _C.TensorBase) for v in value):
        raise TypeError(
            f"The {what} must be either a Tensor or a tuple of Tensors but got "
            f"{type(value).__name__}"
        )
    return tuple(value), True


def _fresh_inputs(inputs, create_graph):
    """Inputs that require grad, apart from other graphs unless these are to be continued."""
    if create_graph:
        return tuple(
            i.view_as(i) if i.requires_grad else i.detach().requires_grad_() for i in inputs
        )
    return tuple(i.detach().requires_grad_() for i in inputs)


def _call(func, inputs, strict):
    outputs, several = _as_tuple(func(*inputs), "outputs of the user-provided function")
    if strict:
        for i, output in enumerate(outputs):
            if not output.requires_grad:
                raise RuntimeError(
                    f"Output {i} of the user-provided function does not require gradients. The "
                    f"outputs must be "
                    "computed in a differentiable manner from the input when running in strict "
                    "mode."
                )
    return outputs, several


def _grads(outputs, inputs, vectors, create_graph, strict, what):
    """Gradients with zeros for what does not depend on an input (an error in strict mode)."""
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
            if strict:
                raise RuntimeError(
                    f"{what} is independent of input {i}. This is not allowed in strict mode."
                )
            result = rushlight.zeros_like(value)
        filled.append(result)
    return tuple(filled)


def _vectors(v, like, what):
    """One vector for each tensor; ones for a single scalar."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if the user-provided function {what}."
            )
        return (rushlight.ones_like(like[0]),)
    vectors, _ = _as_tuple(v, "vector v")
    if len(vectors) != len(like):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}."
        )
    for i, (a, b) in enumerate(zip(vectors, like, strict=True)):
        if a.shape != b.shape:
            raise RuntimeError(
                f"Entry {i} of v has invalid size: should be {b.shape} but got {a.shape}."
            )
    return vectors


def _result(values, several, create_graph):
    values = values if create_graph else tuple(v.detach() for v in values)
    return values if several else values[0]


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """Return `func(*inputs)` and vᵀ J, with J its Jacobian; v has the form of the output."""
    with rushlight.enable_grad():
        inputs, several_in = _as_tuple(inputs, "inputs given to vjp")
        inputs = _fresh_inputs(inputs, create_graph)
        outputs, several_out = _call(func, inputs, strict)
        vectors = _vectors(v, outputs, "returns a single Tensor with a single element")
        products = _grads(outputs, inputs, vectors, create_graph, strict, "The output")
    return _result(outputs, several_out, create_graph), _result(products, several_in, create_graph)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """Return `func(*inputs)` and J v; v has the form of the inputs. Two backward passes."""
    with rushlight.enable_grad():
        inputs, _ = _as_tuple(inputs, "inputs given to jvp")
        inputs = _fresh_inputs(inputs, create_graph)
        vectors = _vectors(v, inputs, "takes a single Tensor with a single element")
        outputs, several_out = _call(func, inputs, strict)
        # wᵀ J is linear in w; its derivative with respect to w, applied to v, is J v.
        w = tuple(rushlight.zeros_like(o).requires_grad_() for o in outputs)
        products = _grads(outputs, inputs, w, True, strict, "The output")
        results = _grads(products, w, vectors, create_graph, False, "The Jacobian")
    return _result(outputs, several_out, create_graph), _result(results, several_out, create_graph)


def jacobian(
    func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"
):
    """Return the Jacobian: for output and input, a tensor of the shape of both in a row.

    For several outputs or inputs a tuple, or a tuple (by output) of tuples (by input).
    `vectorize` changes nothing; of the strategies only "reverse-mode" is there.
    """
    if strategy != "reverse-mode":
        raise NotImplementedError(f'jacobian computes in "reverse-mode", not {strategy!r}')
    with rushlight.enable_grad():
        inputs, several_in = _as_tuple(inputs, "inputs given to jacobian")
        inputs = _fresh_inputs(inputs, create_graph)
        outputs, several_out = _call(func, inputs, strict)
        rows = []
        for number, output in enumerate(outputs):
            columns: list[list[rushlight.Tensor]] = [[] for _ in inputs]
            flat = output.reshape(-1)
            for j in range(flat.numel()):
                grads = _grads(
                    (flat[j],),
                    inputs,
                    (rushlight.ones_like(flat[j]),),
                    create_graph,
                    strict,
                    f"Output {number} of the user-provided function",
                )
                for column, g in zip(columns, grads, strict=True):
                    column.append(g)
            blocks = tuple(
                rushlight.stack(c).reshape(output.shape + i.shape)
                if c
                else output.new_zeros(output.shape + i.shape)
                for c, i in zip(columns, inputs, strict=True)
            )
            rows.append(_result(blocks, several_in, create_graph))
    return tuple(rows) if several_out else rows[0]


def _scalar(func):
    def checked(*inputs):
        output = func(*inputs)
        if not isinstance(output, _C.TensorBase):
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if output.numel() != 1:
            raise RuntimeError(
                "The Tensor returned by the function given to hessian should contain a single "
                "element"
            )
        return output.reshape(())

    return checked


def hessian(
    func,
    inputs,
    create_graph=False,
    strict=False,
    vectorize=False,
    outer_jacobian_strategy="reverse-mode",
):
    """Return the second derivatives of a scalar function: a tensor, or tuples by input."""
    inputs, several = _as_tuple(inputs, "inputs given to hessian")
    scalar = _scalar(func)

    def gradient(*values):
        results = jacobian(scalar, values, create_graph=True, strict=strict)
        return results if several else results[0]

    return jacobian(
        gradient,
        inputs if several else inputs[0],
        create_graph=create_graph,
        strict=strict,
        strategy=outer_jacobian_strategy,
    )


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """Return `func(*inputs)` and vᵀ H, with H its Hessian; v has the form of the inputs."""
    with rushlight.enable_grad():
        inputs, several = _as_tuple(inputs, "inputs given to vhp")
        inputs = _fresh_inputs(inputs, create_graph)
        vectors = _vectors(v, inputs, "takes a single Tensor with a single element")
        outputs, _ = _call(_scalar(func), inputs, strict)
        first = _grads(
            outputs, inputs, (rushlight.ones_like(outputs[0]),), True, strict, "The output"
        )
        products = _grads(first, inputs, vectors, create_graph, strict, "The Jacobian")
    return _result(outputs, False, create_graph), _result(products, several, create_graph)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """Return `func(*inputs)` and H v. Costs a pass more than `vhp`, which gives the same values."""
    with rushlight.enable_grad():
        inputs, several = _as_tuple(inputs, "inputs given to hvp")
        inputs = _fresh_inputs(inputs, create_graph)
        vectors = _vectors(v, inputs, "takes a single Tensor with a single element")
        outputs, _ = _call(_scalar(func), inputs, strict)
        first = _grads(
            outputs, inputs, (rushlight.ones_like(outputs[0]),), True, strict, "The output"
        )
        w = tuple(rushlight.zeros_like(i).requires_grad_() for i in inputs)
        products = _grads(first, inputs, w, True, strict, "The Jacobian")
        results = _grads(products, w, vectors, create_graph, False, "The Hessian")
    return _result(outputs, False, create_graph), _result(results, several, create_graph)
