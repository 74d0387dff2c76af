"""Functions of this library as programs: what `jit.script` compiles where a program calls them.

Those of `nn.functional` by their names, those of `rushlight` by theirs behind `torch_`, context
managers, and methods of layers (`LAYERS`, by the names of the layers); only what is no single op with the same
arguments, or no text that programs can be compiled from. `torch` is the ops. Nothing of it runs as
Python.
"""

from __future__ import annotations

from . import attention, modules, recurrent, transformer
from .activations import *  # noqa: F403
from .attention import multi_head_attention_forward  # noqa: F401
from .contexts import *  # noqa: F403
from .dropout import *  # noqa: F403
from .layers import *  # noqa: F403
from .losses import *  # noqa: F403
from .pooling import *  # noqa: F403
from .resample import *  # noqa: F403

LAYERS = {
    name: kind
    for module in (attention, modules, recurrent, transformer)
    for name, kind in vars(module).items()
    if isinstance(kind, type)
}
