"""Names that were functorch's."""

from rushlight._functorch.make_functional import (
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)

__all__ = ["combine_state_for_ensemble", "make_functional", "make_functional_with_buffers"]
