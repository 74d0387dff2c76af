"""What `prepare_fx`, `convert_fx` and `fuse_fx` may be told beside qconfigs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig"]


class _Preserving:
    def __init__(self) -> None:
        self.preserved_attributes: list[str] = []

    def set_preserved_attributes(self, attributes: list[str]) -> Self:
        """Keep attributes of the network that its forward does not use."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Self:
        """Make a configuration of a dict whose keys are attributes of it."""
        made = cls()
        for key, value in given.items():
            if key not in vars(made):
                raise ValueError(
                    f"{cls.__name__}.from_dict: unknown key {key!r}; it knows {sorted(vars(made))}"
                )
            setattr(made, key, value)
        return made

    def to_dict(self) -> dict[str, Any]:
        """What was set, by names of attributes."""
        return {key: value for key, value in vars(self).items() if value}


class PrepareCustomConfig(_Preserving):
    """For `prepare_fx` and `prepare_qat_fx`. The setters return the configuration.

    Example:
        >>> from rushlight.ao.quantization.fx.custom_config import PrepareCustomConfig
        >>> config = PrepareCustomConfig().set_non_traceable_module_names(["decoder"])
        >>> config.to_dict()
        {'non_traceable_module_names': ['decoder']}
    """

    def __init__(self) -> None:
        super().__init__()
        self.non_traceable_module_names: list[str] = []
        self.non_traceable_module_classes: list[type] = []
        self.input_quantized_indexes: list[int] = []
        self.output_quantized_indexes: list[int] = []

    def set_non_traceable_module_names(self, module_names: list[str]) -> Self:
        """Make modules of these names one call of the graph, which stays as it is."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes: list[type]) -> Self:
        """Make modules of these classes one call of the graph, which stays as it is."""
        self.non_traceable_module_classes = module_classes
        return self

    def set_input_quantized_indexes(self, indexes: list[int]) -> Self:
        """Say which inputs come as codes."""
        self.input_quantized_indexes = indexes
        return self

    def set_output_quantized_indexes(self, indexes: list[int]) -> Self:
        """Say which outputs are given as codes."""
        self.output_quantized_indexes = indexes
        return self


class ConvertCustomConfig(_Preserving):
    """For `convert_fx`.

    Example:
        >>> from rushlight.ao.quantization.fx.custom_config import ConvertCustomConfig
        >>> ConvertCustomConfig().set_preserved_attributes(["width"]).preserved_attributes
        ['width']
    """


class FuseCustomConfig(_Preserving):
    """For `fuse_fx`.

    Example:
        >>> from rushlight.ao.quantization.fx.custom_config import FuseCustomConfig
        >>> FuseCustomConfig().set_preserved_attributes(["width"]).preserved_attributes
        ['width']
    """
