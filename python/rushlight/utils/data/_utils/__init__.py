"""Parts of the loader, some of which programs import by PyTorch's names.

`signal_handling`, and what stands here beside the modules, serve loaders of other packages that
have processes of their own; the loader of this package needs none of it (see `channel.py`).
"""

import atexit
import importlib.util

from rushlight._lazy import lazy
from rushlight._raised import ExceptionWrapper

__all__ = ["ExceptionWrapper"]

with lazy(__name__):
    from rushlight.utils.data._utils import (  # noqa: F401
        collate,
        fetch,
        pin_memory,
        signal_handling,
        worker,
    )

IS_WINDOWS = False
HAS_NUMPY = importlib.util.find_spec("numpy") is not None
MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between looks at processes that may have ended

python_exit_status = False  # whether the interpreter is about to end


def _set_python_exit_flag() -> None:
    global python_exit_status
    python_exit_status = True


atexit.register(_set_python_exit_flag)
