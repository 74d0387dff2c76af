"""Errors on their way out of a module's call."""

from rushlight import Tensor


def _tensors_text(args):
    """What a module was given: ", which was given float32 (5, 8)"; nothing without tensors."""
    given = [arg for arg in args if isinstance(arg, Tensor)]
    texts = [f"{str(t.dtype).removeprefix('torch.')} {tuple(t.shape)}" for t in given]
    return f", which was given {' and '.join(texts)}" if texts else ""


def note_error(error, module, args):
    """Say on an error which part of the outermost module was running, and on what.

    Every module that an error passes on its way out puts its own name for the part below in front,
    so the note ends as
    `in the forward pass of ResNet: layer4.1.fc (Linear), which was given float32 (5, 8)`.
    """
    notes = error.__dict__.setdefault("__notes__", [])
    state = error.__dict__.get("_module_path")
    if state is None:
        # An id and no reference: an error that is pickled or kept should not carry a model along.
        state = [len(notes), id(module), "", type(module).__name__, _tensors_text(args)]
        error.__dict__["_module_path"] = state
        notes.append("")
    place, inner, path, leaf, given = state
    if inner != id(module):
        for name, part in module.named_modules():
            if id(part) == inner:
                path = f"{name}.{path}" if path else name
                break
        else:
            return
        state[1:3] = id(module), path
    top = type(module).__name__
    where = f"{top}: {path} ({leaf})" if path else top
    notes[place] = f"in the forward pass of {where}{given}"
