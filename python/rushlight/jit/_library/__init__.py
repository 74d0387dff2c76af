"""Functions of this library as programs: what `jit.script` compiles where a program calls them.

Those of `nn.functional` by their names, those of `rushlight` by theirs behind `torch_`, those of
`vision.ops` behind `vision_`, context managers, and methods of layers (`LAYERS`, by the names of
the layers); only what is no single op with the same arguments, or no text that programs can be
compiled from. `torch` and `ops` are the ops. Nothing of it runs as Python.
"""

from __future__ import annotations

from . import attention, modules, recurrent, transformer
from .activations import *
from .attention import multi_head_attention_forward
from .contexts import *
from .dropout import *
from .layers import *
from .losses import *
from .pooling import *
from .resample import *
from .tensors import *
from .vision import *

LAYERS = {
    name: kind
    for module in (attention, modules, recurrent, transformer)
    for name, kind in vars(module).items()
    if isinstance(kind, type)
}
