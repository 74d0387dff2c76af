"""The text of a tensor: `repr(t)`, `str(t)` and `set_printoptions`.

The values are laid out in C++, which prints tensors alike (src/ops/tensor_text.cpp); what is here
adds what Python knows of a tensor beside them, and the settings.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

import rushlight
from rushlight import _C

if TYPE_CHECKING:
    from typing import Any

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]

_PROFILES: dict[str, dict] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


class _PrintOptions:
    """The settings in force, one set for the process."""

    def __init__(self) -> None:
        self.precision = 4
        self.threshold = 1000
        self.edgeitems = 3
        self.linewidth = 80
        self.sci_mode: bool | None = None


PRINT_OPTS = _PrintOptions()


def set_printoptions(
    precision: Any = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed.

    Args:
        precision: digits after the point of a float.
        threshold: number of elements above which only the edges are shown.
        edgeitems: elements shown at each end of a dimension that is cut.
        linewidth: columns of a line; text never breaks inside an element.
        profile: "default", "short" or "full": sets the four above, which then override it.
        sci_mode: True or False to force or forbid scientific notation; None decides by the values.

    Example:
        >>> torch.set_printoptions(precision=2)
        >>> torch.tensor([0.12345])
        tensor([0.12])
        >>> torch.set_printoptions(profile="default")
    """
    if profile is not None:
        name = str(profile).lower()
        if name in _PROFILES:
            vars(PRINT_OPTS).update(_PROFILES[name])
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    vars(PRINT_OPTS).update({name: value for name, value in given.items() if value is not None})
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions():
    """The current options as a dict."""
    return dict(vars(PRINT_OPTS))


@contextmanager
def printoptions(**kwargs):
    """`set_printoptions` for the length of a `with` block."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


def _contents(tensor: rushlight.Tensor, indent: int) -> str:
    """The text of the values of a tensor with at least one element, rows `indent` from the left."""
    o = PRINT_OPTS
    return _C._contents_text(
        tensor, indent, o.precision, o.threshold, o.edgeitems, o.linewidth, o.sci_mode
    )


def _tensor_str(self, indent):
    """The text of the values alone, rows `indent` from the left."""
    return _contents(self, indent)


def _gradient_suffix(tensor: rushlight.Tensor) -> str | None:
    try:
        grad_fn = tensor.grad_fn
    except RuntimeError:
        # A view that an in-place write under no_grad made underivable has no grad_fn to name.
        return "grad_fn=<Invalid>"
    if grad_fn is not None:
        name = type(grad_fn).__name__
        if name in ("CppFunction", "Node"):
            name = grad_fn.name().rsplit("::", 1)[-1]
        return f"grad_fn=<{name}>"
    return "requires_grad=True" if tensor.requires_grad else None


def _is_default_dtype(dtype: rushlight.dtype) -> bool:
    default = rushlight.get_default_dtype()
    if dtype in (default, rushlight.int64, rushlight.bool):
        return True
    return dtype is (rushlight.complex128 if default is rushlight.float64 else rushlight.complex64)


def _add_suffixes(text: str, suffixes: list[str], indent: int, force_newline: bool = False) -> str:
    """Append the suffixes, each on the line it still fits on, the first on one of its own if so."""
    parts = [text]
    width = len(text) - text.rfind("\n") + 1
    for i, suffix in enumerate(suffixes):
        if width + len(suffix) + 2 > PRINT_OPTS.linewidth or (force_newline and i == 0):
            parts.append(",\n" + " " * indent + suffix)
            width = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            width += len(suffix) + 2
    return "".join(parts) + ")"


def _part(name: str, values: rushlight.Tensor, indent: int) -> str:
    """The text of the indices or values of a sparse tensor."""
    prefix = f"{name}=tensor("
    text = _contents(values, indent + len(prefix)) if values.numel() else "[]"
    size = "" if values.numel() else f", size={tuple(values.shape)}"
    return prefix + text + size + ")"


def _sparse_str(tensor: rushlight.Tensor, values: rushlight.Tensor, prefix: str) -> str:
    from rushlight.sparse import _INDICES
    from rushlight.sparse._parts import sparse_parts

    indent = len(prefix)
    coo = values.layout is rushlight.sparse_coo
    names = ("indices",) if coo else _INDICES[values.layout]
    parts = zip((*names, "values"), sparse_parts(values), strict=True)
    text = (",\n" + " " * indent).join(_part(name, part, indent) for name, part in parts)
    suffixes = [f"size={tuple(values.shape)}", f"nnz={values._nnz()}"]
    if not _is_default_dtype(values.dtype):
        suffixes.append(f"dtype={values.dtype}")
    suffixes.append(f"layout={values.layout}")
    gradient = _gradient_suffix(tensor)
    if gradient is not None:
        suffixes.append(gradient)
    if coo:
        return _add_suffixes(
            prefix + text + ",\n" + " " * indent + suffixes[0], suffixes[1:], indent
        )
    return _add_suffixes(prefix + text, suffixes, indent)


def _str(tensor, *, tensor_contents=None):
    """What `repr(tensor)` gives, whatever modes are active."""
    from rushlight.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes():
        return _str_intern(tensor, tensor_contents=tensor_contents)


def _str_intern(tensor, *, tensor_contents=None):
    """The text of a tensor; `tensor_contents` replaces that of the values."""
    if level := rushlight._C._batch_level(tensor):
        depth = rushlight._C._level_depth(level)
        value = _str_intern(rushlight._C._batch_value(tensor))
        return f"BatchedTensor(lvl={depth}, bdim=0, value=\n    {value}\n)"
    kind = type(tensor)
    plain = kind is rushlight.Tensor or kind is rushlight.nn.Parameter
    prefix = "tensor(" if plain else kind.__name__ + "("
    values = tensor.detach()
    if values.layout is not rushlight.strided and tensor_contents is None:
        return _sparse_str(tensor, values, prefix)
    shape, dtype, device = tuple(values.shape), values.dtype, values.device
    suffixes = []
    if device.type != "cpu":
        suffixes.append(f"device='{device}'")
    if device.type == "meta":
        suffixes.append(f"size={shape}")
        if dtype is not rushlight.get_default_dtype():
            suffixes.append(f"dtype={dtype}")
        text = "..."
    elif values.numel() == 0:
        if len(shape) != 1:
            suffixes.append(f"size={shape}")
        if dtype is not rushlight.get_default_dtype():
            suffixes.append(f"dtype={dtype}")
        text = "[]"
    else:
        if not PRINT_OPTS.edgeitems:
            suffixes.append(f"size={shape}")
        if not _is_default_dtype(dtype):
            suffixes.append(f"dtype={dtype}")
        text = None
    if tensor_contents is not None:
        text = tensor_contents
    elif text is None:
        text = _contents(values, len(prefix))
    gradient = _gradient_suffix(tensor)
    if gradient is not None:
        suffixes.append(gradient)
    level = _C._forward_level_of(tensor)
    if level:
        suffixes.append(f"tangent={_C._tangent_of(tensor, level)}")
    said = _add_suffixes(prefix + text, suffixes, len(prefix))
    return said if plain or not isinstance(tensor, rushlight.nn.Parameter) else f"Parameter({said})"
