"""Quantisation: networks whose layers multiply 8-bit codes.

A network is prepared (`prepare`), looks at data, and is converted (`convert`); or it is trained
with rounded weights (`prepare_qat`), or has its weights rounded at once (`quantize_dynamic`).
`quantize_fx` does the same with the graph of a network, which needs no stubs.
"""

from rushlight._lazy import lazy
from rushlight._texts.docstrings import describe_forwards as _describe_forwards
from rushlight.ao.quantization.fake_quantize import *  # noqa: F403
from rushlight.ao.quantization.fuse_modules import *  # noqa: F403
from rushlight.ao.quantization.observer import *  # noqa: F403
from rushlight.ao.quantization.qconfig import *  # noqa: F403
from rushlight.ao.quantization.qconfig_mapping import *  # noqa: F403
from rushlight.ao.quantization.quantization_mappings import *  # noqa: F403
from rushlight.ao.quantization.quantize import *  # noqa: F403
from rushlight.ao.quantization.stubs import *  # noqa: F403

with lazy(__name__):
    from rushlight.ao.quantization import fx, quantize_fx  # noqa: F401

_describe_forwards(globals())
