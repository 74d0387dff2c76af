"""Window functions: `f(M, *, ..., sym=True, dtype=None, device=None, requires_grad=False)`.

M is the number of points, `sym` a symmetric window instead of one period of a periodic one. A new
window: a function over `_window`, which gives it the points and the length of the period.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rushlight import _C
from rushlight._texts.docstrings import with_arguments

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rushlight import Tensor
    from rushlight.types import Device, _layout

_ops = _C.ops

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _window(
    name: str, M: int, sym: bool, options: Any, values: Callable[[Any, int], Any]
) -> Tensor:
    """`values(points, period)` for M points; one point is 1.

    `options` are dtype, layout, device and requires_grad.

    Raises:
        ValueError: M is negative, or the dtype or layout is not one for windows.
    """
    dtype, layout, device, requires_grad = options
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not None and layout is not _C.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, not {layout}")
    dtype = _ops.get_default_dtype() if dtype is None else dtype
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    if M < 2:
        result = _ops.ones(M, dtype=dtype, device=device)
    else:
        result = values(_ops.arange(M, dtype=dtype, device=device), M - 1 if sym else M)
    return result.requires_grad_() if requires_grad else result


def _positive(name, what, value):
    if value <= 0:
        raise ValueError(f"{name}: {what} must be positive, got: {value} instead.")


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: _C.dtype | None = None,
    layout: _layout | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """The exponential window: exp(-|n - center| / tau).

    Args:
        center: the place of the peak, in points from the first; None: the middle.
        tau: after how many points the window falls to 1 / e.

    Example:
        >>> torch.signal.windows.exponential(5)
        tensor([0.1353, 0.3679, 1.0000, 0.3679, 0.1353])
    """
    _positive("exponential", "Tau", tau)
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    return _window(
        "exponential",
        M,
        sym,
        (dtype, layout, device, requires_grad),
        lambda n, period: (-(n - (period / 2 if center is None else center)).abs() / tau).exp(),
    )


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: _C.dtype | None = None,
    layout: _layout | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """The cosine window: half a period of a sine.

    Example:
        >>> torch.signal.windows.cosine(4)
        tensor([0.3827, 0.9239, 0.9239, 0.3827])
    """
    return _window(
        "cosine",
        M,
        sym,
        (dtype, layout, device, requires_grad),
        lambda n, period: ((n + 0.5) * (math.pi / (period + 1))).sin(),
    )


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: _C.dtype | None = None,
    layout: _layout | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Gaussian window: exp of minus half of the squared distance from the middle, in units of
    std.

    Args:
        std: the standard deviation, in points.

    Example:
        >>> torch.signal.windows.gaussian(5, std=1.0)
        tensor([0.1353, 0.6065, 1.0000, 0.6065, 0.1353])
    """
    _positive("gaussian", "Standard deviation", std)
    return _window(
        "gaussian",
        M,
        sym,
        (dtype, layout, device, requires_grad),
        lambda n, period: (-0.5 * ((n - period / 2) / std) ** 2).exp(),
    )


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: _C.dtype | None = None,
    layout: _layout | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Kaiser window: the Bessel function i0 over an arc of height beta.

    Args:
        beta: the height; larger ones give a narrower window with lower side lobes.

    Example:
        >>> torch.signal.windows.kaiser(5, beta=8.0)
        tensor([0.0023, 0.3690, 1.0000, 0.3690, 0.0023])
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def values(n, period):
        x = n * (2 / period) - 1
        top = _ops.i0(_ops.full((), beta, dtype=n.dtype, device=n.device))
        return _ops.i0(beta * (1 - x * x).clamp(min=0).sqrt()) / top

    return _window("kaiser", M, sym, (dtype, layout, device, requires_grad), values)


def general_cosine(
    M: int,
    *,
    a: Any,
    sym: bool = True,
    dtype: _C.dtype | None = None,
    layout: _layout | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """A window of cosines: a[0] - a[1] cos(t) + a[2] cos(2 t) - ..., over one period of t.

    Args:
        a: the factors of the cosines, from the constant on.

    Example:
        >>> torch.signal.windows.general_cosine(5, a=[0.5, 0.5])
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")

    def values(n, period):
        angle = n * (2 * math.pi / period)
        return sum((-1) ** k * factor * (angle * k).cos() for k, factor in enumerate(a))

    return _window("general_cosine", M, sym, (dtype, layout, device, requires_grad), values)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """The general Hamming window: alpha - (1 - alpha) cos.

    Args:
        alpha: the constant; the cosine has the rest.

    Example:
        >>> torch.signal.windows.general_hamming(5, alpha=0.6)
        tensor([0.2000, 0.6000, 1.0000, 0.6000, 0.2000])
    """
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Hamming window: 0.54 - 0.46 cos.

    Example:
        >>> torch.signal.windows.hamming(5)
        tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Hann window: 0.5 - 0.5 cos.

    Example:
        >>> torch.signal.windows.hann(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Blackman window: 0.42 - 0.5 cos + 0.08 cos of the doubled angle.

    Example:
        >>> torch.signal.windows.blackman(4)
        tensor([-1.4901e-08,  6.3000e-01,  6.3000e-01, -1.4901e-08])
    """
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Nuttall window: four cosines with small side lobes.

    Example:
        >>> torch.signal.windows.nuttall(4)
        tensor([3.6280e-04, 5.2923e-01, 5.2923e-01, 3.6280e-04])
    """
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: _C.dtype | None = None,
    layout: _layout | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Bartlett window: a triangle.

    Example:
        >>> torch.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window(
        "bartlett",
        M,
        sym,
        (dtype, layout, device, requires_grad),
        lambda n, period: 1 - (n * (2 / period) - 1).abs(),
    )


_ARGUMENTS = {
    "M": "how many points; one point is 1.",
    "sym": "whether the window is symmetric, or a period of a periodic one.",
    "dtype": "`float32` or `float64`; None: the default.",
    "layout": "`torch.strided` or None.",
    "device": "where the window lies.",
    "requires_grad": "whether gradients are recorded for it.",
    "options": "dtype, layout, device and requires_grad, as of the other windows.",
}
for _name in __all__:
    with_arguments(globals()[_name], _ARGUMENTS)
