"""`QConfigMapping`: which qconfig holds for which operation of a graph."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from rushlight.ao.quantization.qconfig import (
    QConfigAny,
    get_default_qat_qconfig,
    get_default_qconfig,
)

__all__ = [
    "QConfigMapping",
    "get_default_qat_qconfig_mapping",
    "get_default_qconfig_mapping",
]

# The keys of `to_dict`.
_GLOBAL = ""
_OBJECT_TYPE = "object_type"
_MODULE_NAME_REGEX = "module_name_regex"
_MODULE_NAME = "module_name"
_MODULE_NAME_OBJECT_TYPE_ORDER = "module_name_object_type_order"


class QConfigMapping:
    """The qconfigs of a network for `prepare_fx`: the most specific one holds, None leaves floats.

    From the least to the most specific: of all, of a class of modules, a function or a method's
    name, of modules whose name matches a regular expression, of a module and what it contains, and
    of one call among those of a kind within a module. The setters return the mapping.

    Example:
        >>> from rushlight.ao.quantization import QConfigMapping, default_qconfig
        >>> mapping = QConfigMapping().set_global(default_qconfig)
        >>> mapping = mapping.set_object_type(torch.nn.Linear, None).set_module_name("head", None)
        >>> list(mapping.module_name_qconfigs)
        ['head']
    """

    def __init__(self) -> None:
        self.global_qconfig: QConfigAny = None
        self.object_type_qconfigs: OrderedDict[Callable | str, QConfigAny] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, QConfigAny] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, QConfigAny] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[
            tuple[str, Callable | str, int], QConfigAny
        ] = OrderedDict()

    def set_global(self, global_qconfig: QConfigAny) -> QConfigMapping:
        """Set what holds where nothing else does."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Callable | str, qconfig: QConfigAny) -> QConfigMapping:
        """Set what holds for a class of modules, a function, or the name of a method."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: QConfigAny) -> QConfigMapping:
        """Set what holds where a regular expression matches a module's name; the first one wins."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: QConfigAny) -> QConfigMapping:
        """Set what holds for a module and all that it contains."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Callable | str, index: int, qconfig: QConfigAny
    ) -> QConfigMapping:
        """Set what holds for one call among those of a kind within a module.

        Args:
            module_name: the module that calls.
            object_type: a class of modules, a function, or the name of a method.
            index: which of its calls there, from 0 on.
            qconfig: the qconfig, or None.
        """
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def to_dict(self) -> dict[str, Any]:
        """The mapping as a dict of lists of tuples."""

        def rows(held: dict[Any, Any]) -> list[tuple[Any, ...]]:
            return [(*(k if isinstance(k, tuple) else (k,)), v) for k, v in held.items()]

        return {
            _GLOBAL: self.global_qconfig,
            _OBJECT_TYPE: rows(self.object_type_qconfigs),
            _MODULE_NAME_REGEX: rows(self.module_name_regex_qconfigs),
            _MODULE_NAME: rows(self.module_name_qconfigs),
            _MODULE_NAME_OBJECT_TYPE_ORDER: rows(self.module_name_object_type_order_qconfigs),
        }

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """Make a mapping from what `to_dict` gives."""
        made = cls()
        setters = {
            _OBJECT_TYPE: made.set_object_type,
            _MODULE_NAME_REGEX: made.set_module_name_regex,
            _MODULE_NAME: made.set_module_name,
            _MODULE_NAME_OBJECT_TYPE_ORDER: made.set_module_name_object_type_order,
        }
        made.set_global(qconfig_dict.get(_GLOBAL))
        for key, rows in qconfig_dict.items():
            if key != _GLOBAL and key not in setters:
                raise ValueError(
                    f"QConfigMapping.from_dict: unknown key {key!r}; it knows {list(setters)} and "
                    "'' for the qconfig of all"
                )
            for row in rows if key != _GLOBAL else ():
                setters[key](*row)
        return made

    def __repr__(self) -> str:
        lines = [f" {key or 'global'}: {value}" for key, value in self.to_dict().items() if value]
        return "\n".join(["QConfigMapping (", *lines, ")"])


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """The default qconfig for all of a network that is calibrated.

    Args:
        backend: as for `get_default_qconfig`.
        version: 0.

    Example:
        >>> from rushlight.ao.quantization import get_default_qconfig_mapping
        >>> get_default_qconfig_mapping().global_qconfig.weight().dtype
        torch.qint8
    """
    return QConfigMapping().set_global(get_default_qconfig(backend, version))


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """The default qconfig for all of a network that is trained with rounded numbers.

    Args:
        backend: as for `get_default_qat_qconfig`.
        version: 0 or 1.

    Example:
        >>> from rushlight.ao.quantization import get_default_qat_qconfig_mapping
        >>> get_default_qat_qconfig_mapping().global_qconfig.weight().dtype
        torch.qint8
    """
    return QConfigMapping().set_global(get_default_qat_qconfig(backend, version))
