"""Switches for how modules change their parameters: `Module.to`, `load_state_dict` and so on."""

from __future__ import annotations

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether conversions give a module new parameters instead of new memory for its old ones."""
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether conversions give a module new parameters; False at first."""
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversions and `load_state_dict` exchange a parameter's contents with the new one's
    (`utils.swap_tensors`), so that who holds it sees the change, a tensor subclass's too."""
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether conversions exchange contents; False at first."""
    return _swap
