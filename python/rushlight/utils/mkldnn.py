"""`to_mkldnn`, for compatibility: tensors in oneDNN's own layouts do not exist here."""

from rushlight import _refused

__all__ = ["to_mkldnn"]

to_mkldnn = _refused.function(
    "torch.utils.mkldnn.to_mkldnn",
    "modules call oneDNN by themselves where it is faster, on tensors as they are",
)
