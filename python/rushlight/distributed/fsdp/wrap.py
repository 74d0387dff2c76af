"""Wrapping policies: which submodules are wrapped, as functions of modules and sizes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from rushlight import nn

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]


def always_wrap_policy(*args, **kwargs) -> bool:
    """Wrap every module.

    Args:
        args, kwargs: anything.

    Example:
        >>> from rushlight.distributed.fsdp.wrap import always_wrap_policy
        >>> always_wrap_policy()
        True
    """
    return True


def lambda_auto_wrap_policy(
    module: nn.Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[..., Any]
) -> bool:
    """Wrap modules for which a function is true.

    Args:
        module: the module.
        recurse: whether its parts are asked next.
        nonwrapped_numel: its parameters that are in no wrapped part.
        lambda_fn: the function of a module.

    For an example see `distributed.fsdp.wrap.size_based_auto_wrap_policy`.
    """
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: nn.Module,
    recurse: bool,
    nonwrapped_numel: int,
    transformer_layer_cls: Iterable[type[nn.Module]],
) -> bool:
    """Wrap modules of some classes.

    Args:
        module: the module in question.
        recurse: whether the question is to look at its children.
        nonwrapped_numel: how many elements are not wrapped yet.
        transformer_layer_cls: the classes to wrap.

    Example:
        >>> policy = torch.distributed.fsdp.wrap.transformer_auto_wrap_policy
        >>> policy(torch.nn.Linear(1, 1), False, 2, transformer_layer_cls={torch.nn.Linear})
        True
    """
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: nn.Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = 100_000_000,
    force_leaf_modules: set[type[nn.Module]] | None = None,
    exclude_wrap_modules: set[type[nn.Module]] | None = None,
) -> bool:
    """Wrap modules with many parameters.

    Args:
        module: the module.
        recurse: whether its parts are asked next.
        nonwrapped_numel: its parameters that are in no wrapped part.
        min_num_params: how many are many.
        force_leaf_modules: classes whose parts are not asked.
        exclude_wrap_modules: classes that are not wrapped.

    Example:
        >>> from rushlight.distributed.fsdp.wrap import size_based_auto_wrap_policy
        >>> layer = torch.nn.Linear(100, 100)
        >>> size_based_auto_wrap_policy(layer, False, nonwrapped_numel=10100, min_num_params=1000)
        True
    """
    leaves = {nn.MultiheadAttention} if force_leaf_modules is None else force_leaf_modules
    excluded = (
        {nn.ModuleList, nn.ModuleDict} if exclude_wrap_modules is None else exclude_wrap_modules
    )
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(leaves))
    return large and not isinstance(module, tuple(excluded))


class ModuleWrapPolicy:
    """Wraps modules of some classes.

    Args:
        module_classes: the classes.

    Example:
        >>> from rushlight.distributed.fsdp.wrap import ModuleWrapPolicy
        >>> policy = ModuleWrapPolicy({torch.nn.Linear})
    """

    def __init__(self, module_classes: Iterable[type[nn.Module]]) -> None:
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def __call__(self, module, recurse, *args, **kwargs) -> bool:
        return recurse or isinstance(module, tuple(self._module_classes))

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy:
    """Wraps modules for which a function is true, or returns arguments.

    Args:
        lambda_fn: the function.

    Example:
        >>> from rushlight.distributed.fsdp.wrap import CustomPolicy
        >>> policy = CustomPolicy(lambda module: isinstance(module, torch.nn.Linear))
    """

    def __init__(self, lambda_fn: Callable[[nn.Module], Any]) -> None:
        self._lambda_fn = lambda_fn

    def __call__(self, module, recurse, *args, **kwargs):
        return recurse or self._lambda_fn(module)


def _or_policy(module, recurse, nonwrapped_numel, policies) -> bool:
    """Those for which one of several policies says so."""
    arguments = {"module": module, "recurse": recurse, "nonwrapped_numel": nonwrapped_numel}
    return any(policy(**arguments) for policy in policies)


class _Wrapping:
    """What `wrap` does within `enable_wrap`."""

    kind: Any = None
    settings: ClassVar[dict[str, Any]] = {}


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any):
    """A context manager in which `wrap` wraps modules in a class, with these arguments.

    Args:
        wrapper_cls: the class.
        wrapper_kwargs: its arguments.

    For an example see `distributed.fsdp.wrap.wrap`.
    """
    before = _Wrapping.kind, _Wrapping.settings
    _Wrapping.kind, _Wrapping.settings = wrapper_cls, wrapper_kwargs
    try:
        yield
    finally:
        _Wrapping.kind, _Wrapping.settings = before


def wrap(module: nn.Module, **wrap_overrides: Any) -> nn.Module:
    """Wrap a module if this is called within `enable_wrap`.

    Args:
        module: the module.
        wrap_overrides: arguments in the place of those of `enable_wrap`.

    Example:
        >>> from rushlight.distributed.fsdp.wrap import enable_wrap, wrap
        >>> with enable_wrap(wrapper_cls=torch.nn.Sequential):
        ...     layer = wrap(torch.nn.Linear(2, 1))
        >>> type(layer).__name__
        'Sequential'
    """
    if _Wrapping.kind is None:
        return module
    return _wrap(module, _Wrapping.kind, **{**_Wrapping.settings, **wrap_overrides})


def _wrap(module, wrapper_cls, **kwargs):
    return wrapper_cls(module, **{**kwargs, **getattr(module, "_wrap_overrides", {})})


def _replace(root, chosen, kind):
    """Wrap the modules whose ids are in `chosen` (with their arguments), inner ones first."""
    done: dict[int, nn.Module] = {}

    def visit(module):
        if id(module) in done or isinstance(module, kind):
            return
        done[id(module)] = module
        for name, child in module._modules.items():
            if child is None:
                continue
            visit(child)
            if id(child) in chosen and done[id(child)] is child and child is not root:
                done[id(child)] = kind(child, **chosen[id(child)])
            module._modules[name] = done.get(id(child), child)

    visit(root)


def _auto_wrap(root, policy, kind, ignored_modules, ignored_params, settings):
    """Wrap what a policy names within a module, but not the module itself."""
    if isinstance(policy, (ModuleWrapPolicy, CustomPolicy)):
        chosen = {}
        for module in root.modules():
            if module is root or module in ignored_modules or isinstance(module, kind):
                continue
            said = policy(module, False)
            if not isinstance(said, (bool, dict)):
                raise ValueError(
                    "the lambda_fn of a CustomPolicy should return a bool or a dict of keywords, "
                    f"but it returned {said}"
                )
            if said is not False:
                chosen[id(module)] = {**settings, **(said if isinstance(said, dict) else {})}
        _replace(root, chosen, kind)
        return
    _recursive_wrap(
        root,
        auto_wrap_policy=policy,
        wrapper_cls=kind,
        ignored_modules=ignored_modules,
        ignored_params=ignored_params,
        only_wrap_children=True,
        **settings,
    )


def _recursive_wrap(
    module,
    auto_wrap_policy,
    wrapper_cls,
    ignored_modules,
    ignored_params,
    only_wrap_children=False,
    **kwargs,
):
    """Wrap inner modules first; what they took is not counted again. The module, and how much."""
    numel = sum(
        p.numel() for p in _parameters_outside(module, wrapper_cls) if p not in ignored_params
    )
    if not auto_wrap_policy(module=module, recurse=True, nonwrapped_numel=numel):
        return module, 0
    taken = 0
    for name, child in module.named_children():
        if child in ignored_modules or isinstance(child, wrapper_cls):
            continue
        wrapped, count = _recursive_wrap(
            child, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params, **kwargs
        )
        module._modules[name] = wrapped
        taken += count
    rest = numel - taken
    if not only_wrap_children and auto_wrap_policy(
        module=module, recurse=False, nonwrapped_numel=rest
    ):
        return _wrap(module, wrapper_cls, **kwargs), numel
    return module, taken


def _parameters_outside(module, wrapper_cls):
    """The parameters of a module that no unit within it has."""
    within = {id(p) for m in module.modules() if isinstance(m, wrapper_cls) for p in m.parameters()}
    return [p for p in module.parameters() if id(p) not in within]
