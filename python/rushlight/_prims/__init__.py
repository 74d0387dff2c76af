"""`utils`: helpers of code over ops."""

from rushlight import _prims_common as utils

__all__ = ["utils"]
