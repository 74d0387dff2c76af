"""Activations: most are generated from ops/modules.py; those with parameters are written here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rushlight
from rushlight import _C, Tensor
from rushlight._warnings import warn

from .. import functional as F
from ..parameter import new_parameter
from ._stateless.activation import *  # noqa: F403
from ._stateless.activation import __all__ as _generated
from .attention import MultiheadAttention  # noqa: F401
from .linear import NonDynamicallyQuantizableLinear  # noqa: F401  # PyTorch has it here, too
from .module import Module

if TYPE_CHECKING:
    from typing import Any

    from rushlight.types import Device

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [*_generated, "Hardtanh", "PReLU", "ReLU6", "Softmax2d"]


class Hardtanh(Module):
    """x limited to [min_val, max_val].

    Args:
        min_val: the lower bound.
        max_val: the upper bound.
        inplace: whether the result is written into the input.
        min_value: deprecated name of `min_val`.
        max_value: deprecated name of `max_val`.

    Shape: (*) to the same.

    Example:
        >>> torch.nn.Hardtanh()(torch.tensor([-3.0, 0.5, 3.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: Any = None,
        max_value: Any = None,
    ) -> None:
        super().__init__()
        for old, new, value in (
            ("min_value", "min_val", min_value),
            ("max_value", "max_val", max_value),
        ):
            if value is not None:
                warn(
                    f"keyword argument `{old}` is deprecated and renamed to `{new}`",
                    FutureWarning,
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(
                f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})"
            )

    def forward(self, input: Tensor):
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        inplace = ", inplace=True" if self.inplace else ""
        return f"min_val={self.min_val}, max_val={self.max_val}{inplace}"


class ReLU6(Hardtanh):
    """min(max(x, 0), 6).

    Args:
        inplace: whether the result is written into the input.

    Shape: (*) to the same.

    Example:
        >>> torch.nn.ReLU6()(torch.tensor([-1.0, 3.0, 8.0]))
        tensor([0., 3., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class PReLU(Module):
    """x where it is positive, a learnt factor times x elsewhere.

    Args:
        num_parameters: 1, or the number of channels (dimension 1 of the input).
        init: the factor at the start.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Shape: (*) to the same; with several parameters (N, num_parameters, *).

    Example:
        >>> torch.nn.PReLU(init=0.25)(torch.tensor([-1.0, 2.0])).detach()
        tensor([-0.2500,  2.0000])
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = new_parameter(num_parameters, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the factors to their initial value."""
        with rushlight.no_grad():
            self.weight.fill_(self.init)

    def forward(self, input: Tensor):
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softmax2d(Module):
    """Softmax over the channels of pictures.

    Shape: (N, C, H, W) or (C, H, W) to the same.

    Example:
        >>> torch.nn.Softmax2d()(torch.zeros(1, 2, 1, 1)).flatten()
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor):
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, but it is {input.dim()}D")
        return F.softmax(input, -3)
