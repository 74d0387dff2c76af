"""The ends of what a size can be; sizes are plain numbers here, so there are none."""

from rushlight import _refused

__all__ = ["IntInfinity", "NegativeIntInfinity"]

_WHY = "sizes are plain numbers"

IntInfinity = _refused.kind("IntInfinity", __name__, _WHY)
NegativeIntInfinity = _refused.kind("NegativeIntInfinity", __name__, _WHY)
