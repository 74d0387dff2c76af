"""Errors on their way out of a module's call."""


def note_error(error, module):
    """Say on an error which part of the outermost module was running.

    Every module that an error passes on its way out puts its own name for the part below in front,
    so the note ends as `in the forward pass of ResNet: layer4.1.fc (Linear)`.
    """
    notes = error.__dict__.setdefault("__notes__", [])
    state = error.__dict__.get("_module_path")
    if state is None:
        # An id and no reference: an error that is pickled or kept should not carry a model along.
        state = [len(notes), id(module), "", type(module).__name__]
        error.__dict__["_module_path"] = state
        notes.append("")
    place, inner, path, leaf = state
    if inner != id(module):
        for name, part in module.named_modules():
            if id(part) == inner:
                path = f"{name}.{path}" if path else name
                break
        else:
            return
        state[1:3] = id(module), path
    top = type(module).__name__
    notes[place] = "in the forward pass of " + (f"{top}: {path} ({leaf})" if path else top)
