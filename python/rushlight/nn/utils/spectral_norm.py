"""Spectral normalisation: divides a layer's weight by its largest singular value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rushlight

from .. import functional as F
from ..modules.conv import _ConvTransposeNd
from ..parameter import Parameter
from ._hooks import find_hook

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

__all__ = ["remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The hook that computes the weight before each forward pass.

    The learnt tensor is `<name>_orig`; the singular vectors are the buffers `<name>_u` and
    `<name>_v`, which move by `n_power_iterations` at each call in training.
    """

    _version = 1  # of a state: with the right singular vector, without the weight

    def __init__(self, name: str, n_power_iterations, dim: int, eps) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def matrix(self, weight):
        """The weight with `dim` in front and the other dimensions as one."""
        return weight.transpose(0, self.dim).reshape(weight.size(self.dim), -1)

    def compute_weight(self, module: Module, do_power_iteration):
        """The normalised weight; the singular vectors are updated in place if asked."""
        weight = getattr(module, self.name + "_orig")
        u = getattr(module, self.name + "_u")
        v = getattr(module, self.name + "_v")
        matrix = self.matrix(weight)
        if do_power_iteration:
            with rushlight.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
            # Copies, so that a backward pass sees the vectors of its own forward pass.
            u, v = u.clone(), v.clone()
        sigma = u.dot(matrix.mv(v))
        return weight / sigma

    def __call__(self, module: Module, inputs):
        setattr(module, self.name, self.compute_weight(module, module.training))

    def _tell_version(self, module: Module, state, prefix: str, metadata):
        """A hook of `state_dict`, which says how the state is written."""
        key = f"{self.name}.version"
        versions = metadata.setdefault("spectral_norm", {})
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self._version

    def _read_old(self, state, prefix: str, metadata, strict, missing, unexpected, errors):
        """A hook of loading, which finds the right singular vector that old states do not have.

        They have the weight that was used, too, and with it the singular value.
        """
        if metadata.get("spectral_norm", {}).get(f"{self.name}.version") is not None:
            return
        key = prefix + self.name
        needed = [key + suffix for suffix in ("_orig", "", "_u")]
        lacking = [name for name in needed if name not in state]
        if needed[1] in lacking and not {needed[0], needed[2], key + "_v"} - state.keys():
            return  # as it is written now
        if lacking:
            if strict:
                missing.extend(lacking)
            return
        with rushlight.no_grad():
            original, used, u = (state[name] for name in needed)
            del state[key]
            matrix = self.matrix(original)
            v = rushlight.linalg.pinv(matrix.t() @ matrix) @ (matrix.t() @ u)
            state[key + "_v"] = v * ((original / used).mean() / u.dot(matrix.mv(v)))


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a parameter of a module by its largest singular value at each forward pass.

    Args:
        module: a layer; it is changed and returned.
        name: the parameter.
        n_power_iterations: steps towards the singular vectors at each call.
        eps: a lower limit on norms.
        dim: the dimension of outputs; 1 for transposed convolutions and 0 else, if None.

    Example:
        >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 2))
        >>> sorted(layer.state_dict())
        ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    if find_hook(module, SpectralNorm, name)[1] is not None:
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    if dim is None:
        dim = 1 if isinstance(module, _ConvTransposeNd) else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    with rushlight.no_grad():
        rows, columns = hook.matrix(weight).size()
        u = F.normalize(weight.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
        v = F.normalize(weight.new_empty(columns).normal_(0, 1), dim=0, eps=eps)
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.data)  # no parameter: every forward pass replaces it
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(hook._tell_version)
    module._register_load_state_dict_pre_hook(hook._read_old)
    return module


def remove_spectral_norm(module: Module, name: str = "weight"):
    """Make the current normalised weight a plain parameter; returns the module.

    Args:
        module: the layer.
        name: the parameter.

    Raises:
        ValueError: the parameter has no such norm.

    Example:
        >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 2))
        >>> sorted(torch.nn.utils.remove_spectral_norm(layer).state_dict())
        ['bias', 'weight']
    """
    key, hook = find_hook(module, SpectralNorm, name)
    if hook is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    with rushlight.no_grad():
        weight = hook.compute_weight(module, do_power_iteration=False)
    delattr(module, name)
    for suffix in ("_u", "_v", "_orig"):
        delattr(module, name + suffix)
    module.register_parameter(name, Parameter(weight.detach()))
    del module._forward_pre_hooks[key]
    for hooks in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for key in [k for k, h in hooks.items() if getattr(h, "__self__", None) is hook]:
            del hooks[key]
    return module
