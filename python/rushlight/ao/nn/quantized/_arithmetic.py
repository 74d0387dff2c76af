"""Arithmetic as modules, which observers can be put behind; public in `modules`."""

from __future__ import annotations

import rushlight
from rushlight import nn
from rushlight._quantized import quantize_per_tensor


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
        return self.activation_post_process(nn.functional.relu(rushlight.add(x, y)))

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

    def _codes(self, numbers, kind):
        return quantize_per_tensor(numbers, self.scale, self.zero_point, kind)

    def add(self, x, y):
        """Return x + y."""
        return self._codes(x.dequantize() + y.dequantize(), x.dtype)

    def mul(self, x, y):
        """Return x * y."""
        return self._codes(x.dequantize() * y.dequantize(), x.dtype)

    def cat(self, x, dim: int = 0):
        """Concatenate tensors."""
        return self._codes(rushlight.cat([t.dequantize() for t in x], dim), x[0].dtype)

    def add_relu(self, x, y):
        """Return relu(x + y)."""
        return self._codes((x.dequantize() + y.dequantize()).relu(), x.dtype)

    def matmul(self, x, y):
        """Return x @ y."""
        return self._codes(x.dequantize() @ y.dequantize(), x.dtype)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Make the module from a `FloatFunctional` with an observer."""
        if type(mod) is not FloatFunctional:
            raise AssertionError("QFunctional.from_float expects an instance of FloatFunctional")
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        made = cls()
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made
