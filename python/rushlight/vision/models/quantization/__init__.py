"""Networks that can be quantised, in their float forms."""

from ._quantizable import *  # noqa: F403
