"""Events of ranges: those that a program names, its steps, and the nodes of backward."""

from __future__ import annotations

from rushlight.profiler._events import FunctionEvent

__all__ = ["USER_SCOPE", "range_event"]

# Of `rushlight::RecordScope`: what is no function of the library. The number is PyTorch's, too.
USER_SCOPE = 7
_STEP = "ProfilerStep#"


def range_event(noted, thread):
    """The event of a range as `_profile_stop` tells it; steps share one name, as in PyTorch."""
    name, begin, end, shapes, scope, sequence = noted
    event = FunctionEvent(
        0,
        "ProfilerStep*" if name.startswith(_STEP) else name,
        thread,
        begin / 1e3,
        end / 1e3,
        scope=scope,
        fwd_thread=thread if sequence >= 0 else None,
        sequence_nr=sequence,
        input_shapes=[list(sizes) for sizes in shapes or []],
        is_user_annotation=scope == USER_SCOPE,
    )
    event.trace_name = name
    event.is_range = True
    return event
