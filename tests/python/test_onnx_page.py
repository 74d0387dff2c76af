"""docs/onnx.md: its list is that of the lowerings."""

from pathlib import Path

import rushlight
from rushlight import ops
from rushlight.onnx import _registry


def test_the_page_lists_all_lowerings():
    """`python -m rushlight.onnx._registry` writes the end of the page."""
    text = (Path(__file__).resolve().parents[2] / "docs/onnx.md").read_text()
    assert text.endswith(_registry.page())


def test_overloads_are_there():
    """An overload, or the one that writes in place and goes by it."""

    def is_there(overload):
        space, name, kind = overload.split(".")
        packets = [getattr(getattr(ops, space), n, None) for n in (name, f"{name}_")]
        return any(hasattr(packet, kind) for packet in packets if packet is not None)

    # The first call defines the op that stands for nodes.
    rushlight.onnx.ops.symbolic("mine::Op", [None], dtype=1, shape=[])
    assert not [o for o in _registry.lowerings() if not is_there(o)]


def test_lowerings_take_arguments_by_name_or_in_order():
    def by_name(g, self, dim):
        return self, dim

    def in_order(g, x, size):
        return x, size

    def with_default(g, self, flag=7):
        return self, flag

    named = {"self": 1, "n": 2, "dim": 3}
    assert _registry.call(by_name, None, named) == (1, 3)
    assert _registry.call(in_order, None, named) == (1, 2)
    assert _registry.call(with_default, None, named) == (1, 7)
    assert _registry.call(lambda g, *all_of_them: all_of_them, None, named) == (1, 2, 3)


def test_overloads_that_write_in_place():
    assert _registry.functional("aten.relu_.default") == "aten.relu.default"
    assert _registry.functional("aten.__and__.Tensor") == "aten.__and__.Tensor"
    assert _registry.lowering_of("aten.relu_.default") is _registry.lowering_of("aten.relu.default")
    assert _registry.lowering_of("aten.svd.default") is None
