"""What a size can be; sizes are plain numbers here, so there are none."""

from rushlight import _refused

__all__ = ["ValueRanges"]

ValueRanges = _refused.kind("ValueRanges", __name__, "sizes are plain numbers")
