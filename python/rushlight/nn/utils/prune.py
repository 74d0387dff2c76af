"""Pruning: masks that set elements of parameters to zero.

A pruned parameter `weight` becomes `weight_orig`, which is trained, and the buffer `weight_mask`;
`weight` itself is their product, computed before each forward pass.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import rushlight

from ._hooks import find_hook

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rushlight import Tensor
    from rushlight.nn.modules.module import Module

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """The base of pruning methods. Subclasses define `PRUNING_TYPE` and `compute_mask`.

    `PRUNING_TYPE` is "unstructured" (elements), "structured" (slices along `dim`) or "global".

    Example:
        >>> class Negative(torch.nn.utils.prune.BasePruningMethod):
        ...     PRUNING_TYPE = "unstructured"
        ...
        ...     def compute_mask(self, t, default_mask):
        ...         return default_mask * (t >= 0)
        >>> layer = torch.nn.Linear(2, 1)
        >>> method = Negative.apply(layer, "weight")
        >>> bool((layer.weight >= 0).all())
        True
    """

    _tensor_name: str

    def __call__(self, module: Module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """The mask for importance scores `t`, in addition to `default_mask`."""

    def apply_mask(self, module: Module):
        """The masked parameter of a module."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Module, name: str, *args, importance_scores=None, **kwargs):
        """Prune a parameter of a module, in addition to earlier pruning."""
        key, old = find_hook(module, BasePruningMethod, name, "_tensor_name")
        if old is not None:
            del module._forward_pre_hooks[key]
        method = cls(*args, **kwargs)
        method._tensor_name = name
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        if old is not None:
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            container.add_pruning_method(method)
            method = container
            default_mask = getattr(module, name + "_mask").detach().clone()
        else:
            default_mask = rushlight.ones_like(original)
        try:
            mask = method.compute_mask(importance_scores, default_mask=default_mask)
        except Exception:
            if old is not None:
                module.register_forward_pre_hook(old)
            raise
        if old is None:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """A pruned copy of a tensor."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        if default_mask is None:
            default_mask = rushlight.ones_like(t)
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: Module):
        """Make the masked values permanent."""
        masked, name = self.apply_mask(module), self._tensor_name
        parameter: Any = module._parameters.pop(f"{name}_orig")
        del module._buffers[f"{name}_mask"]
        parameter.data = masked.detach()
        setattr(module, name, parameter)


class PruningContainer(BasePruningMethod):
    """Several pruning methods for one parameter.

    Args:
        *args: the methods.

    Example:
        >>> layer = torch.nn.Linear(4, 1)
        >>> layer = torch.nn.utils.prune.l1_unstructured(layer, "weight", amount=1)
        >>> layer = torch.nn.utils.prune.random_unstructured(layer, "weight", amount=1)
        >>> (container,) = layer._forward_pre_hooks.values()
        >>> len(container)
        2
    """

    PRUNING_TYPE = "container"

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple = ()
        if args and not isinstance(args[0], (list, tuple)):
            self._tensor_name = args[0]._tensor_name
            for method in args:
                self.add_pruning_method(method)
        elif args:
            self._tensor_name = args[0][0]._tensor_name
            for method in args[0]:
                self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Append a method that prunes the same parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"PruningContainer of '{self._tensor_name}': can only add pruning methods acting "
                f"on it, not on '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        """The mask of the last method for the elements that earlier methods left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            chosen = mask == 1
        elif method.PRUNING_TYPE == "structured":
            # Slices that are pruned already are not looked at.
            dim = method.dim % t.dim()
            alive = mask.sum([d for d in range(t.dim()) if d != dim]) != 0
            chosen = (slice(None),) * dim + (alive,)
        elif method.PRUNING_TYPE == "global":
            chosen = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        if isinstance(method, PruningContainer):
            raise TypeError("a container cannot hold another one")
        partial = method.compute_mask(t[chosen], default_mask=mask[chosen])
        new = mask.clone()
        new[chosen] = partial.to(dtype=mask.dtype)
        return new


def _validate_pruning_amount_init(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount} is neither an int nor a float")
    number: Any = amount  # of which isinstance says no more than that it is one
    if not 0 <= number <= (math.inf if isinstance(amount, numbers.Integral) else 1):
        raise ValueError(
            f"amount={amount} should either be a float in [0, 1], a part, or a count of 0 or more"
        )


def _validate_pruning_amount(amount, tensor_size):
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of elements, which is {tensor_size}"
        )


def _compute_nparams_toprune(amount, tensor_size):
    """How many of `tensor_size` things an amount means."""
    _validate_pruning_amount(amount, tensor_size)
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


class Identity(BasePruningMethod):
    """Prunes nothing, but adds a mask.

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> method = torch.nn.utils.prune.Identity.apply(layer, "weight")
        >>> layer.weight_mask
        tensor([[1., 1.]])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        return default_mask


class _ElementPruning(BasePruningMethod):
    """Prunes a number of elements (int) or a part of them (float)."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: int | float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        mask = default_mask.clone(memory_format=rushlight.contiguous_format)
        n = _compute_nparams_toprune(self.amount, t.nelement())
        if n:
            mask.view(-1)[self._choose(t.reshape(-1), n)] = 0
        return mask

    @abstractmethod
    def _choose(self, t, n):
        """The indices of n elements of a vector."""


class RandomUnstructured(_ElementPruning):
    """Prunes random elements: a number of them (int) or a fraction (float).

    Args:
        amount: how many, or which fraction.

    Example:
        >>> layer = torch.nn.Linear(4, 1)
        >>> method = torch.nn.utils.prune.RandomUnstructured.apply(layer, "weight", amount=3)
        >>> int(layer.weight_mask.sum())
        1
    """

    def _choose(self, t: Tensor, n: int) -> Tensor:
        return rushlight.topk(rushlight.rand_like(t), k=n).indices


class L1Unstructured(_ElementPruning):
    """Prunes the elements of smallest magnitude: a number of them (int) or a fraction (float).

    Args:
        amount: how many, or which fraction.

    Example:
        >>> layer = torch.nn.Linear(4, 1)
        >>> method = torch.nn.utils.prune.L1Unstructured.apply(layer, "weight", amount=0.25)
        >>> int(layer.weight_mask.sum())
        3
    """

    def _choose(self, t: Tensor, n: int) -> Tensor:
        return rushlight.topk(t.abs(), k=n, largest=False).indices


class _SlicePruning(BasePruningMethod):
    """Prunes a number of slices along `dim` (int) or a part of them (float)."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to tensors of two dimensions or more, not "
                f"to one of shape {t.shape}"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        n = _compute_nparams_toprune(self.amount, t.shape[self.dim])
        if n == 0:
            return default_mask
        dim = self.dim % t.dim()
        slices = default_mask.new_zeros(t.shape[dim])
        slices[self._slices_to_keep(t, dim, n)] = 1
        shape = [1] * t.dim()
        shape[dim] = -1
        return default_mask * slices.reshape(shape)

    @abstractmethod
    def _slices_to_keep(self, t, dim, n):
        """An index of the slices that stay when n go."""


class RandomStructured(_SlicePruning):
    """Prunes random slices along `dim`.

    Args:
        amount: how many slices, or which fraction.
        dim: the dimension.

    Example:
        >>> layer = torch.nn.Linear(4, 2)
        >>> method = torch.nn.utils.prune.RandomStructured.apply(layer, "weight", amount=1, dim=0)
        >>> int(layer.weight_mask.sum())
        4
    """

    def _slices_to_keep(self, t: Tensor, dim: int, n: int) -> Tensor:
        lots = rushlight.rand(t.shape[dim])
        return lots > rushlight.kthvalue(lots, k=n).values


class LnStructured(_SlicePruning):
    """Prunes the slices along `dim` with the smallest n-norm.

    Args:
        amount: how many slices, or which fraction.
        n: the power of the norm.
        dim: the dimension.

    Example:
        >>> layer = torch.nn.Linear(4, 2)
        >>> method = torch.nn.utils.prune.LnStructured.apply(layer, "weight", 1, 2, 0)
        >>> int(layer.weight_mask.sum())
        4
    """

    def __init__(self, amount: Any, n: int, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _slices_to_keep(self, t, dim, n):
        lengths = rushlight.norm(t, p=self.n, dim=[d for d in range(t.dim()) if d != dim])
        return rushlight.topk(lengths, k=t.shape[dim] - n, largest=True).indices


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask.

    Args:
        mask: 1 or True where elements stay.

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> method = torch.nn.utils.prune.CustomFromMask.apply(
        ...     layer, "weight", torch.tensor([[1, 0]])
        ... )
        >>> layer.weight_mask
        tensor([[1., 0.]])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t, default_mask):
        if default_mask.shape != self.mask.shape:
            raise AssertionError("the mask must have the shape of the parameter")
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Module, name: str):
    """Give a parameter a mask of ones; returns the module.

    Args:
        module: the module.
        name: the parameter.

    Example:
        >>> torch.nn.utils.prune.identity(torch.nn.Linear(2, 1), "weight").weight_mask
        tensor([[1., 1.]])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Prune random elements of a parameter; returns the module.

    Args:
        module: the module.
        name: the name of the parameter.
        amount: how many elements (int), or which fraction (float).

    Example:
        >>> layer = torch.nn.utils.prune.random_unstructured(
        ...     torch.nn.Linear(4, 5), "weight", amount=3
        ... )
        >>> int((layer.weight == 0).sum())
        3
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: Any, importance_scores: Tensor | None = None
) -> Module:
    """Prune the elements of a parameter with the smallest magnitude (or score); returns the
    module.

    Args:
        module: the module.
        name: the name of the parameter.
        amount: how many elements (int), or which fraction (float).
        importance_scores: what to compare instead of magnitudes.

    Example:
        >>> layer = torch.nn.utils.prune.l1_unstructured(
        ...     torch.nn.Linear(4, 5), "weight", amount=0.5
        ... )
        >>> int((layer.weight == 0).sum())
        10
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Prune random slices of a parameter along `dim`; returns the module.

    Args:
        module: the module.
        name: the parameter.
        amount: how many slices, or which fraction.
        dim: the dimension.

    Example:
        >>> layer = torch.nn.utils.prune.random_structured(
        ...     torch.nn.Linear(4, 2), "weight", 1, dim=0
        ... )
        >>> int(layer.weight_mask.sum())
        4
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: Any,
    n: int,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prune the slices of a parameter along `dim` with the smallest n-norm; returns the module.

    Args:
        module: the module.
        name: the parameter.
        amount: how many slices, or which fraction.
        n: the power of the norm.
        dim: the dimension.
        importance_scores: what the norm is taken of instead of the parameter.

    Example:
        >>> layer = torch.nn.utils.prune.ln_structured(
        ...     torch.nn.Linear(4, 2), "weight", 1, n=1, dim=0
        ... )
        >>> int(layer.weight_mask.sum())
        4
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter by a mask; returns the module.

    Args:
        module: the module.
        name: the parameter.
        mask: 1 or True where elements stay.

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> torch.nn.utils.prune.custom_from_mask(
        ...     layer, "weight", torch.tensor([[1, 0]])
        ... ).weight_mask
        tensor([[1., 0.]])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: Any,
    importance_scores: Tensor | None = None,
    **kwargs: Any,
) -> None:
    """Prune the elements of several parameters as if they were one.

    Args:
        parameters: (module, name) pairs.
        pruning_method: an unstructured method's class; `kwargs` are its arguments.
        importance_scores: (module, name) -> scores, instead of the parameters' values.
        **kwargs: arguments of the method, such as `amount`.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
        >>> weights = [(net[0], "weight"), (net[1], "weight")]
        >>> method = torch.nn.utils.prune.L1Unstructured
        >>> torch.nn.utils.prune.global_unstructured(weights, method, amount=0.5)
        >>> int(net[0].weight_mask.sum() + net[1].weight_mask.sum())
        10
    """
    parameters = [(module, name) for module, name in parameters]
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores should be of type dict")
    present = [getattr(*place) for place in parameters]
    weights = [scores.get(*pair) for pair in zip(parameters, present, strict=True)]
    masks = [
        getattr(module, f"{name}_mask", rushlight.ones_like(parameter))
        for (module, name), parameter in zip(parameters, present, strict=True)
    ]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'global_unstructured(): Only "unstructured" PRUNING_TYPE supported, but '
            f"{pruning_method} is {method.PRUNING_TYPE!r}"
        )
    method._tensor_name = "all"
    vector = rushlight.nn.utils.parameters_to_vector
    mask = PruningContainer(method).compute_mask(vector(weights), vector(masks))
    parts = mask.split([parameter.numel() for parameter in present])
    for (module, name), parameter, part in zip(parameters, present, parts, strict=True):
        custom_from_mask(module, name, part.view_as(parameter))


def remove(module: Module, name: str):
    """Make pruning permanent: `name` is an ordinary parameter again; returns the module.

    Args:
        module: the module.
        name: the name of the parameter.

    Example:
        >>> layer = torch.nn.utils.prune.l1_unstructured(
        ...     torch.nn.Linear(4, 5), "weight", amount=0.5
        ... )
        >>> torch.nn.utils.prune.is_pruned(torch.nn.utils.prune.remove(layer, "weight"))
        False
    """
    key, hook = find_hook(module, BasePruningMethod, name, "_tensor_name")
    if hook is None:
        raise ValueError(
            f"Parameter '{name}' of {module} has to be pruned first: it has no mask to remove"
        )
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module: Module):
    """Whether a parameter of the module or of a submodule is pruned.

    Args:
        module: the module.

    Example:
        >>> torch.nn.utils.prune.is_pruned(torch.nn.Linear(2, 2))
        False
    """
    return any(
        isinstance(hook, BasePruningMethod)
        for submodule in module.modules()
        for hook in submodule._forward_pre_hooks.values()
    )
