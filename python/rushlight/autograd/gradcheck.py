"""Checks of gradients: what backward computes against finite differences.

A complex number is taken as two real ones, its parts. For a loss L the gradient of z = x + iy is
dL/dx + i dL/dy, so the rows of the Jacobian that belong to the real and the imaginary part of an
output come from the output gradients 1 and 1j.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import _C
from rushlight._warnings import warn
from rushlight.autograd import _gradcheck_forward, _gradcheck_sparse
from rushlight.autograd._differences import (
    GradcheckError,
    _as_tuple,
    _difference,
    _differentiable,
    _direction_like,
    _numerical_jacobian,
    _outputs,
    _parts,
    _perturb,
    _random_like,
)
from rushlight.autograd.function import Function
from rushlight.autograd.grad_mode import enable_grad, no_grad

if TYPE_CHECKING:
    from rushlight.autograd.function import BackwardCFunction

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether derivatives of `func` agree with central differences of width `eps`.

    Args:
        func: takes `inputs`, returns a tensor or several.
        inputs: a tensor or several; those of floating or complex dtype that require grad are
            checked. They should be of double precision.
        atol, rtol: as in `allclose`.
        raise_exception: raise GradcheckError if it fails, else return False.
        nondet_tol: the largest difference allowed between two backward passes.
        check_undefined_grad: also check that backward copes with outputs that have no gradient,
            and forward mode with inputs that have no tangent.
        check_grad_dtypes: also check that gradients have their input's dtype.
        check_batched_grad, check_batched_forward_grad: also check gradients, or tangents, of
            several vectors at once by `vmap`.
        check_forward_ad, check_backward_ad: which modes are checked, at least one.
        fast_mode: compare one random projection of the Jacobian instead of each element.
        masked: of sparse inputs move the entries alone; otherwise places without one, too.
        eps: the width of differences.

    Raises:
        GradcheckError: they do not agree.

    Example:
        >>> x = torch.tensor([0.3, 2.0], dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradcheck(torch.sin, x)
        True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    func, inputs = _gradcheck_sparse.of_values(func, _as_tuple(inputs), masked)
    try:
        wanted = _checked_inputs(inputs)
        compare = _compare_projection if fast_mode else _compare_jacobian
        outputs = len(_outputs(func, inputs))
        if outputs == 0:
            _check_constant(func, inputs, wanted, eps)
            return True
        for number in range(outputs) if check_backward_ad else ():
            compare(func, inputs, wanted, number, eps, atol, rtol, nondet_tol, check_grad_dtypes)
        if check_backward_ad and check_undefined_grad:
            _check_undefined(func, inputs, wanted)
        if check_backward_ad and check_batched_grad:
            _gradcheck_forward.check_batched_gradients(func, inputs, wanted)
        if check_forward_ad:
            how = _gradcheck_forward.Forward(func, inputs, wanted)
            how.compare(eps, atol, rtol, fast_mode)
            if check_undefined_grad:
                how.check_undefined()
            if check_batched_forward_grad:
                how.check_batched()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Run `gradcheck` on the gradients of `func`, as functions of the inputs and of `grad_outputs`.

    Args:
        grad_outputs: gradients of the outputs; random where not given.
        gen_non_contig_grad_outputs: make random ones that are not contiguous.
        check_rev_over_rev, check_fwd_over_rev: how the gradients are differentiated.
        func: takes `inputs`, returns a tensor or several.
        inputs: a tensor or several, of double precision.
        eps: the width of differences.
        atol, rtol: as in `allclose`.
        raise_exception: raise GradcheckError if it fails, else return False.
        nondet_tol: the largest difference allowed between two backward passes.
        check_undefined_grad: also check outputs that have no gradient.
        check_grad_dtypes: also check that gradients have their input's dtype.
        check_batched_grad: also check gradients of several vectors at once by `vmap`.
        fast_mode: compare one random projection of the Jacobian instead of each element.
        masked: of sparse inputs move the entries alone.

    Example:
        >>> x = torch.tensor([0.3, 2.0], dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradgradcheck(torch.sin, x)
        True
    """
    if not (check_rev_over_rev or check_fwd_over_rev):
        raise AssertionError(
            "Expected at least one of check_rev_over_rev or check_fwd_over_rev to be True"
        )
    func, inputs = _gradcheck_sparse.of_values(func, _as_tuple(inputs), masked)
    if grad_outputs is None:
        grad_outputs = tuple(
            _random_gradient(o, gen_non_contig_grad_outputs) for o in _outputs(func, inputs)
        )
    else:
        grad_outputs = tuple(
            _gradcheck_sparse.to_dense(g.detach()).requires_grad_(g.requires_grad)
            if _gradcheck_sparse.is_sparse(g)
            else g
            for g in _as_tuple(grad_outputs)
        )
    n = len(inputs)
    differentiable = [isinstance(v, _C.TensorBase) and v.requires_grad for v in inputs]

    def gradients(*arguments: rushlight.Tensor) -> tuple[rushlight.Tensor, ...]:
        # Forward mode is given inputs without a graph; those wanted are where they were.
        values = tuple(
            _C._leaf_of(v) if needed and not v.requires_grad else v
            for v, needed in zip(arguments[:n], differentiable, strict=True)
        )
        wanted = [v for v, needed in zip(values, differentiable, strict=True) if needed]
        results = rushlight.autograd.grad(
            _outputs(func, values), wanted, arguments[n:], create_graph=True, allow_unused=True
        )
        return tuple(g for g in results if g is not None)

    return gradcheck(
        gradients,
        inputs + grad_outputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _checked_inputs(inputs: tuple[rushlight.Tensor, ...]) -> list[int]:
    wanted = []
    for i, value in enumerate(inputs):
        if not isinstance(value, _C.TensorBase) or not value.requires_grad:
            continue
        if value.dtype not in (rushlight.float64, rushlight.complex128):
            warn(
                f"Input #{i} requires gradient in {value.dtype}, which is not double precision: "
                "differences of so few digits will hardly match",
            )
        if any(
            stride == 0 and size > 1
            for stride, size in zip(value.stride(), value.shape, strict=True)
        ):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0, whose elements cannot be moved "
                "one by one: gradcheck needs inputs that are non-overlapping"
            )
        wanted.append(i)
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient: set "
            "requires_grad=True where it shall be checked"
        )
    return wanted


def _grad(
    output: rushlight.Tensor,
    inputs: tuple[rushlight.Tensor, ...],
    wanted: list[int],
    gradient: rushlight.Tensor,
    retain: bool = True,
) -> list[rushlight.Tensor]:
    results = rushlight.autograd.grad(
        output, [inputs[i] for i in wanted], gradient, retain_graph=retain, allow_unused=True
    )
    return [
        rushlight.zeros_like(inputs[i]) if r is None else r.detach()
        for i, r in zip(wanted, results, strict=True)
    ]


def _analytical_jacobians(
    func: Callable[..., Any],
    inputs: tuple[rushlight.Tensor, ...],
    wanted: list[int],
    number: int,
    nondet_tol: float,
    check_dtypes: bool,
) -> list[rushlight.Tensor]:
    output = _outputs(func, inputs)[number]
    columns = []
    for direction in (1, 1j) if output.is_complex() else (1,):
        for place in itertools.product(*map(range, output.shape)):
            gradient = rushlight.zeros_like(output, memory_format=rushlight.contiguous_format)
            gradient[place] = direction
            first = _grad(output, inputs, wanted, gradient)
            second = _grad(output, inputs, wanted, gradient)
            for i, a, b in zip(wanted, first, second, strict=True):
                if check_dtypes and a.dtype != inputs[i].dtype:
                    raise GradcheckError(
                        f"the gradient of input {i} has dtype {a.dtype}, not {inputs[i].dtype}"
                    )
                if a.shape != inputs[i].shape:
                    raise GradcheckError(
                        f"Analytical gradient has incorrect size: got {tuple(a.shape)} for input "
                        f"{i} of size {tuple(inputs[i].shape)}"
                    )
                if a.numel() and not (a - b).abs().max().item() <= nondet_tol:
                    raise GradcheckError(
                        "Backward is not reentrant: run twice with the same gradients it gives "
                        f"values that differ by more than nondet_tol={nondet_tol}"
                    )
            columns.append([_parts(g) for g in first])
    if not columns:
        return [rushlight.zeros(_parts(inputs[i].detach()).numel(), 0) for i in wanted]
    return [rushlight.stack(column, 1) for column in zip(*columns, strict=True)]


def _compare_jacobian(
    func: Callable[..., Any],
    inputs: tuple[rushlight.Tensor, ...],
    wanted: list[int],
    number: int,
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_dtypes: bool,
) -> None:
    analytical = _analytical_jacobians(func, inputs, wanted, number, nondet_tol, check_dtypes)
    for i, a in zip(wanted, analytical, strict=True):
        n = _numerical_jacobian(func, inputs, i, number, eps)
        if a.numel() and not rushlight.allclose(a.to(n.dtype), n, rtol=rtol, atol=atol):
            raise GradcheckError(
                f"Jacobian mismatch for output {number} with respect to input {i},\n"
                f"numerical:{n}\nanalytical:{a}\n"
            )


def _compare_projection(
    func: Callable[..., Any],
    inputs: tuple[rushlight.Tensor, ...],
    wanted: list[int],
    number: int,
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_dtypes: bool,
) -> None:
    """Compares v · J u for a random v and, for each input, a random u."""
    output = _outputs(func, inputs)[number]
    v, sum_v = _direction_like(output)
    analytical = _grad(output, inputs, wanted, v)
    for i, gradient in zip(wanted, analytical, strict=True):
        u, sum_u = _direction_like(inputs[i])
        difference = _difference(func, inputs, i, number, output, u * eps)
        n = (difference / (2 * eps) * _parts(v)).sum().item()
        a = (_parts(gradient) * _parts(u)).sum().item()
        tolerance = atol * sum_u * sum_v + rtol * abs(n)
        if not abs(a - n) <= tolerance:
            raise GradcheckError(
                f"Jacobian mismatch for output {number} with respect to input {i} in fast mode,\n"
                f"numerical:{n}\nanalytical:{a}\n"
            )


class _StopGradient(Function):
    """Passes a tensor on, and no gradient back."""

    @staticmethod
    def forward(ctx: BackwardCFunction, value: rushlight.Tensor) -> rushlight.Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(ctx, *grads):
        return None


def _check_undefined(
    func: Callable[..., Any], inputs: tuple[rushlight.Tensor, ...], wanted: list[int]
) -> None:
    """Without a gradient of any output, and by each output alone without one."""
    outputs = [_StopGradient.apply(o) for o in _outputs(func, inputs)]
    runs = [(outputs, "without any")]
    if len(outputs) > 1:
        runs += [([o], f"without one of output {n}") for n, o in enumerate(outputs)]
    for chosen, which in runs:
        try:
            found = rushlight.autograd.grad(
                chosen,
                [inputs[i] for i in wanted],
                [rushlight.zeros_like(o) for o in chosen],
                retain_graph=True,
                allow_unused=True,
            )
        except RuntimeError as error:
            warn(
                "gradcheck with undefined gradients of outputs has failed: "
                "check_undefined_grad=False leaves this out",
            )
            raise GradcheckError(
                "Expected backward function to handle undefined output grads, but "
                f"{which} it raised: {error}"
            ) from error
        for i, gradient in zip(wanted, found, strict=True):
            if gradient is not None and gradient.ne(0).any():
                raise GradcheckError(
                    "outputs whose gradients are undefined or zero must not give inputs others, "
                    f"but {which} that of input {i} is not"
                )


def _check_constant(
    func: Callable[..., Any], inputs: tuple[rushlight.Tensor], wanted: list[int], eps: float
) -> None:
    """Outputs without a graph must not change with the inputs."""
    before = [o.detach().clone() for o in _as_tuple(func(*inputs)) if _differentiable(o)]
    for i in wanted:
        step = eps * (1 + _random_like(inputs[i]).abs())
        with no_grad(), _perturb(inputs[i].data, step), enable_grad():
            after = [o for o in _as_tuple(func(*inputs)) if _differentiable(o)]
        if any((a - b).abs().gt(0).any() for a, b in zip(after, before, strict=True)):
            raise GradcheckError("Numerical gradient for function expected to be zero")


def _random_gradient(output: rushlight.Tensor, non_contiguous: bool) -> rushlight.Tensor:
    gradient = _random_like(output)
    if non_contiguous and gradient.dim() > 0:
        gradient = rushlight.stack((gradient, gradient), -1).select(-1, 0)
        gradient = gradient.detach()
    return gradient.requires_grad_()
