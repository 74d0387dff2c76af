"""Functions of this library as programs: what `jit.script` compiles where a program calls them.

Those of `nn.functional` by their names, those of `rushlight` by theirs behind `torch_`, context
managers, and the forwards of layers (`modules.py`); only what is no single op with the same
arguments, or no text that programs can be compiled from. `torch` is the ops. Nothing of it runs as
Python.
"""

from __future__ import annotations

from .activations import *  # noqa: F403
from .contexts import *  # noqa: F403
from .dropout import *  # noqa: F403
from .layers import *  # noqa: F403
from .losses import *  # noqa: F403
from .pooling import *  # noqa: F403
