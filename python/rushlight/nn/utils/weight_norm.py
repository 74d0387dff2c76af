"""Weight normalisation by a hook: norm and direction of the weight are trained separately."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._warnings import warn

from ..parameter import Parameter
from ._hooks import find_hook

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

__all__ = ["remove_weight_norm", "weight_norm"]


def norm_except(weight, dim: int | None):
    """The norms of the slices along `dim` (None: of all as one), of a shape that broadcasts."""
    if dim is None:
        return weight.norm(2)
    if dim not in range(-weight.dim(), weight.dim()):
        raise IndexError(
            f"Dimension out of range: {dim}, for a weight of {weight.dim()} dimensions"
        )
    dim %= weight.dim()
    return weight.norm(2, [d for d in range(weight.dim()) if d != dim], keepdim=True)


def normalize(v, g, dim: int | None):
    """The vector with the direction of `v` and the norm `g`."""
    return v * (g / norm_except(v, dim))


class WeightNorm:
    """The hook that computes the weight before each forward pass."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = None if dim == -1 else dim

    def compute_weight(self, module: Module):
        """The weight from `<name>_g` and `<name>_v`."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return normalize(v, g, self.dim)

    def remove(self, module: Module):
        """Make the weight an ordinary parameter."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs):
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0):
    """Train the norm `<name>_g` and the direction `<name>_v` of a parameter separately.

    Args:
        module: a layer; it is changed and returned.
        dim: each slice along it has a length of its own; None for one length.
        name: the parameter.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> layer = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
        >>> sorted(name for name, _ in layer.named_parameters())
        ['bias', 'weight_g', 'weight_v']
    """
    warn(
        "`nn.utils.weight_norm` is deprecated in favor of `nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
    )
    if find_hook(module, WeightNorm, name)[1] is not None:
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    norm = norm_except(weight, hook.dim)
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(norm.data))
    module.register_parameter(name + "_v", Parameter(weight.data))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight"):
    """Undo `weight_norm`; the weight keeps its value.

    Args:
        module: the layer.
        name: the parameter.

    Raises:
        ValueError: the parameter has no such norm.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> layer = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
        >>> sorted(torch.nn.utils.remove_weight_norm(layer).state_dict())
        ['bias', 'weight']
    """
    key, hook = find_hook(module, WeightNorm, name)
    if hook is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module
