"""Layers, losses and containers: `rushlight.nn`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._lazy import lazy as _lazy

from . import functional, grad, init, modules, parameter
from .modules import *  # noqa: F403
from .parameter import (
    Buffer as Buffer,
)
from .parameter import (
    Parameter as Parameter,
)
from .parameter import (
    UninitializedBuffer as UninitializedBuffer,
)
from .parameter import (
    UninitializedParameter as UninitializedParameter,
)

if TYPE_CHECKING:
    from typing import Any

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [
        *modules.__all__,
        "Buffer",
        "Parameter",
        "UninitializedBuffer",
        "UninitializedParameter",
        "factory_kwargs",
        "functional",
        "grad",
        "init",
        "modules",
        "parameter",
    ]


def factory_kwargs(kwargs: Any) -> dict[str, Any]:
    """The arguments device, dtype and memory_format of a module, for tensor factories.

    They may also lie in a dict `factory_kwargs`; TypeError for others and for what is given twice.

    Args:
        kwargs: what a module was given, or None.

    Example:
        >>> torch.nn.factory_kwargs({"device": "cpu"})
        {'device': 'cpu'}
    """
    expected = {"device", "dtype", "memory_format"}
    if kwargs is None:
        return {}
    own = {key: value for key, value in kwargs.items() if key != "factory_kwargs"}
    if not own.keys() <= expected:
        raise TypeError(f"unexpected kwargs {own.keys() - expected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for key, value in own.items():
        if key in result:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        result[key] = value
    return result


with _lazy(__name__):
    from . import (  # noqa: F401
        _reduction,
        attention,
        intrinsic,
        parallel,
        qat,
        quantized,
        utils,
    )
    from .parallel import DataParallel  # noqa: F401
