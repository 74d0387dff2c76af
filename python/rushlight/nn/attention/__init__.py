"""Names for choosing kernels of `scaled_dot_product_attention`, which have no effect.

There is one fused kernel, and ordinary ops where it does not apply; both give the same numbers up
to rounding, so a choice is checked and remembered, and changes nothing else.
"""

from __future__ import annotations

import contextlib
import enum
from typing import TYPE_CHECKING

from rushlight._lazy import lazy

if TYPE_CHECKING:
    from typing import Any

    from rushlight import Tensor

__all__ = ["WARN_FOR_UNFUSED_KERNELS", "SDPAParams", "SDPBackend", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.Enum):
    """Names of attention kernels: an enumeration without numbers, though `int` gives one.

    Example:
        >>> torch.nn.attention.SDPBackend.MATH
        <SDPBackend.MATH: 0>
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __str__(self) -> str:
        return f"SDPBackend.{self.name}"


class SDPAParams:
    """The arguments of an attention call.

    Args:
        query, key, value: the tensors.
        attn_mask: the mask, or None.
        dropout: the probability of dropout.
        is_causal: whether a place sees those before it alone.
        enable_gqa: whether several heads share keys and values.

    Example:
        >>> x = torch.zeros(1, 2, 4, 8)
        >>> torch.nn.attention.SDPAParams(x, x, x, None, 0.0, True, False).is_causal
        True
    """

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor,
        dropout: Any,
        is_causal: bool,
        enable_gqa: bool,
    ) -> None:
        self.query = query
        self.key = key
        self.value = value
        self.attn_mask = attn_mask
        self.dropout = dropout
        self.is_causal = is_causal
        self.enable_gqa = enable_gqa


_chosen = [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]


def _cur_sdpa_kernel_backends(with_priority=False):
    return list(_chosen)


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False):
    """A context manager without effect; AssertionError unless it is given backends.

    Args:
        backends: a `SDPBackend`, or a list of them.
        set_priority: whether their order says which is preferred; without effect.

    Example:
        >>> with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        ...     x = torch.zeros(1, 1, 2, 4)
        ...     print(torch.nn.functional.scaled_dot_product_attention(x, x, x).shape)
        torch.Size([1, 1, 2, 4])
    """
    global _chosen
    chosen = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(chosen, (list, tuple)) or any(type(b) is not SDPBackend for b in chosen):
        raise AssertionError(
            f"Backend must be an instance of SDPBackend, or a list of such, not {backends!r}"
        )
    before, _chosen = _chosen, list(dict.fromkeys(chosen))
    try:
        yield
    finally:
        _chosen = before


with lazy(__name__):
    from . import bias, flex_attention  # noqa: F401
