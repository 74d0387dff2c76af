"""What the constructors of the stateless modules compute."""

import warnings


def _probability(p):
    """A dropout probability, checked."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


def _reduction(reduction, size_average, reduce):
    """A loss's reduction; the two old flags come first if given, and warn."""
    if size_average is None and reduce is None:
        return reduction
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = ("mean" if size_average else "sum") if reduce else "none"
    warnings.warn(
        "size_average and reduce args will be deprecated, please use "
        f"reduction='{reduction}' instead.",
        stacklevel=4,
    )
    return reduction


def _one_or_two(p):
    """The exponent of a hinge loss, checked."""
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    return p


def _positive_margin(margin):
    """The margin of the triplet loss, checked."""
    if margin <= 0:
        raise ValueError(
            f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead"
        )
    return margin


def _repeated(value, n):
    """A tuple of `n` for a single int; a tuple of what any iterable holds."""
    return tuple(value) if hasattr(value, "__iter__") else (value,) * n
