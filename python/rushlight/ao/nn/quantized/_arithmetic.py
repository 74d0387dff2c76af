"""Arithmetic as modules, which observers can be put behind; public in `modules`."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _C, Tensor, nn
from rushlight._quantized import of_codes, quantize_per_tensor

# ---- functions of codes, with the scale of their result ----


def _codes(numbers: Tensor, scale: float, zero_point: int, kind: rushlight.dtype) -> Tensor:
    return quantize_per_tensor(numbers, float(scale), int(zero_point), kind)


def _combine(x: Any, y: Any, how: str, relu: bool, scale: float, zero_point: int) -> Tensor:
    """The codes of x + y or x * y, or of their relu."""
    if _combines_at_once(x, y):
        means = [(t._codes, t.q_scale(), t.q_zero_point()) for t in (x, y)]
        result = float(scale), int(zero_point)
        codes = _C.ops._combine_codes(*means[0], *means[1], how, relu, *result)
        return of_codes(codes, rushlight.per_tensor_affine, *result)
    function = rushlight.add if how == "add" else rushlight.mul
    numbers = function(x.dequantize(), y.dequantize())
    return _codes(numbers.relu() if relu else numbers, scale, zero_point, x.dtype)


def _combines_at_once(x: Any, y: Any) -> bool:
    alike = x.dtype == y.dtype != rushlight.qint32
    whole = x.qscheme() == y.qscheme() == rushlight.per_tensor_affine
    return alike and whole and x.device.type == y.device.type == "cpu"


def add(x: Tensor, y: Tensor, scale: float, zero_point: int) -> Tensor:
    """x + y."""
    return _combine(x, y, "add", False, scale, zero_point)


def add_relu(x: Tensor, y: Tensor, scale: float, zero_point: int) -> Tensor:
    """relu(x + y)."""
    return _combine(x, y, "add", True, scale, zero_point)


def mul(x: Tensor, y: Tensor, scale: float, zero_point: int) -> Tensor:
    """x * y."""
    return _combine(x, y, "mul", False, scale, zero_point)


def mul_relu(x: Tensor, y: Tensor, scale: float, zero_point: int) -> Tensor:
    """relu(x * y)."""
    return _combine(x, y, "mul", True, scale, zero_point)


def matmul(x: Tensor, y: Tensor, scale: float, zero_point: int) -> Tensor:
    """x @ y."""
    return _codes(x.dequantize() @ y.dequantize(), scale, zero_point, x.dtype)


def cat(tensors: list[Tensor], dim: int, scale: float, zero_point: int) -> Tensor:
    """Tensors side by side."""
    whole = rushlight.cat([t.dequantize() for t in tensors], dim)
    return _codes(whole, scale, zero_point, tensors[0].dtype)


# ---- the same of floats, where rushlight has no function of its own ----


def float_add_relu(x: Tensor, y: Tensor) -> Tensor:
    """relu(x + y)."""
    return nn.functional.relu(x + y)


def float_mul_relu(x: Tensor, y: Tensor) -> Tensor:
    """relu(x * y)."""
    return nn.functional.relu(x * y)


# ---- modules ----


class FloatFunctional(nn.Module):
    """Arithmetic as a module, so that an observer can see the results.

    Example:
        >>> f = torch.ao.nn.quantized.FloatFunctional()
        >>> f.add(torch.ones(2), torch.ones(2))
        tensor([2., 2.])
    """

    __module__ = "rushlight.ao.nn.quantized.modules"

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x):
        raise RuntimeError(
            "FloatFunctional is not intended to use the 'forward'. Please use the underlying "
            "operation"
        )

    def add(self, x, y):
        """Return x + y."""
        return self.activation_post_process(rushlight.add(x, y))

    def add_scalar(self, x, y):
        """Return x + y for a number y."""
        return rushlight.add(x, y)

    def mul(self, x, y):
        """Return x * y."""
        return self.activation_post_process(rushlight.mul(x, y))

    def mul_scalar(self, x, y):
        """Return x * y for a number y."""
        return rushlight.mul(x, y)

    def cat(self, x, dim: int = 0):
        """Concatenate tensors."""
        return self.activation_post_process(rushlight.cat(x, dim=dim))

    def add_relu(self, x, y):
        """Return relu(x + y)."""
        return self.activation_post_process(float_add_relu(x, y))

    def matmul(self, x, y):
        """Return x @ y."""
        return self.activation_post_process(rushlight.matmul(x, y))


class FXFloatFunctional(FloatFunctional):
    """`FloatFunctional` without observers, for graphs that have their own.

    For an example see `ao.nn.quantized.FloatFunctional`.
    """

    __module__ = "rushlight.ao.nn.quantized.modules"

    def __init__(self) -> None:
        nn.Module.__init__(self)
        self.activation_post_process = nn.Identity()


class QFunctional(nn.Module):
    """Arithmetic of quantised tensors as a module.

    Example:
        >>> x = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.1, 0, torch.quint8)
        >>> f = torch.ao.nn.quantized.QFunctional()
        >>> f.scale = 0.1
        >>> f.add(x, x).dequantize()
        tensor([2., 4.])
    """

    __module__ = "rushlight.ao.nn.quantized.modules"

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process = nn.Identity()

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = rushlight.tensor(self.scale)
        destination[prefix + "zero_point"] = rushlight.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict, prefix, *others):
        self.scale = float(state_dict.pop(prefix + "scale"))
        self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(state_dict, prefix, *others)

    def _get_name(self):
        return "QFunctional"

    def extra_repr(self):
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x):
        raise RuntimeError(
            "Functional is not intended to use the 'forward'. Please use the underlying operation"
        )

    def add(self, x, y):
        """Return x + y."""
        return add(x, y, self.scale, self.zero_point)

    def mul(self, x, y):
        """Return x * y."""
        return mul(x, y, self.scale, self.zero_point)

    def cat(self, x, dim: int = 0):
        """Concatenate tensors."""
        return cat(x, dim, self.scale, self.zero_point)

    def add_relu(self, x, y):
        """Return relu(x + y)."""
        return add_relu(x, y, self.scale, self.zero_point)

    def matmul(self, x, y):
        """Return x @ y."""
        return matmul(x, y, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Make the module from a `FloatFunctional` with an observer."""
        if type(mod) is not FloatFunctional:
            raise AssertionError("QFunctional.from_float expects an instance of FloatFunctional")
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        made = cls()
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made
