"""Identity, Linear, Bilinear."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rushlight import _C, Tensor

from .. import functional as F
from .. import init
from ..parameter import new_parameter
from .module import Module

if TYPE_CHECKING:
    from rushlight.types import Device

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Module):
    """Returns its input; takes any arguments and ignores them.

    Args:
        args: anything.
        kwargs: anything.

    Example:
        >>> torch.nn.Identity()(torch.tensor([1, 2]))
        tensor([1, 2])
    """

    def __init__(self, *args, **kwargs) -> None:
        super().__init__()

    def forward(self, input: Tensor):
        return input


class Linear(Module):
    """The linear layer: x Wᵀ + b over the last dimension.

    Args:
        in_features: size of the input's last dimension.
        out_features: size of the output's.
        bias: whether b is learnt; without it there is none.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    `weight` has shape (out_features, in_features), `bias` (out_features); both start from
    U(-k, k) with k = 1 / √in_features.

    Shape: (*, in_features) to (*, out_features).

    Example:
        >>> layer = torch.nn.Linear(3, 2)
        >>> layer(torch.zeros(5, 3)).shape
        torch.Size([5, 2])
        >>> layer.weight.shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        shape = (out_features, in_features)
        made = {"device": device, "dtype": dtype}
        self.weight = new_parameter(shape, **made)
        self.register_parameter("bias", new_parameter(out_features, bias, **made))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the parameters again."""
        init._draw_affine_(self.weight, self.bias)

    def forward(self, input: Tensor):
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """The output projection of `MultiheadAttention`, under the name that files use."""


class Bilinear(Module):
    """x1ᵀ W x2 + b over the last dimensions of two inputs.

    `weight` has shape (out_features, in1_features, in2_features).

    Args:
        in1_features: size of the first input's last dimension.
        in2_features: size of the second input's last dimension.
        out_features: size of the output's.
        bias: whether b is learnt.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Shape: (*, in1_features) and (*, in2_features) to (*, out_features).

    Example:
        >>> torch.nn.Bilinear(3, 4, 2)(torch.zeros(5, 3), torch.zeros(5, 4)).shape
        torch.Size([5, 2])
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        made = {"device": device, "dtype": dtype}
        self.weight = new_parameter(shape, **made)
        self.register_parameter("bias", new_parameter(out_features, bias, **made))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the parameters again."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1, input2):
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
