"""Graphs as Python objects: what they are asked, how they are changed, and that they run."""

import contextlib
import gc
import io

import pytest

import rushlight as torch
from rushlight import _C
from rushlight.utils._python_dispatch import TorchDispatchMode


def branch_graph():
    """flag ? relu(x) : x + x."""
    graph = _C.Graph()
    x = graph.addInput("x")
    flag = graph.addInput("flag").setType(_C._parse_type("bool"))
    node = graph.insertNode(graph.create("prim::If", [flag]))
    yes, no = node.addBlock(), node.addBlock()
    graph.setInsertPoint(yes)
    relu = graph.insertNode(graph.create("aten::relu", [x]))
    yes.registerOutput(relu.output())
    graph.setInsertPoint(no)
    total = graph.create("aten::add", [x, x, graph.insertConstant(1)])
    graph.insertNode(total)
    no.registerOutput(total.output())
    graph.registerOutput(node.output())
    graph.lint()
    return graph


def test_a_graph_runs():
    graph = branch_graph()
    x = torch.tensor([-1.0, 2.0])
    assert graph._run(x, True).tolist() == [0, 2]
    assert graph._run(x, False).tolist() == [-2, 4]
    w = torch.tensor([3.0], requires_grad=True)
    graph._run(w, False).sum().backward()
    assert w.grad.tolist() == [2]
    with pytest.raises(RuntimeError, match="takes 2 arguments"):
        graph._run(x)


def test_a_graph_is_printed():
    assert str(branch_graph()) == (
        "graph(%x : Tensor,\n"
        "      %flag : bool):\n"
        "  %2 : Tensor = prim::If(%flag)\n"
        "    block0():\n"
        "      %3 : Tensor = aten::relu(%x)\n"
        "      -> (%3)\n"
        "    block1():\n"
        "      %4 : int = prim::Constant[value=1]()\n"
        "      %5 : Tensor = aten::add(%x, %x, %4)\n"
        "      -> (%5)\n"
        "  return (%2)\n"
    )


def test_nodes_are_asked():
    graph = branch_graph()
    (node,) = graph.nodes()
    assert node.kind() == "prim::If" and node == graph.findNode("prim::If")
    assert graph.findNode("aten::add") is not None
    assert graph.findNode("aten::add", recurse=False) is None
    add = graph.findAllNodes("aten::add")[0]
    assert add.schema().startswith("aten::add.Tensor(Tensor self")
    assert add.inputsSize() == 3 and add.inputsAt(2).toIValue() == 1
    assert add.namedInput("alpha") == add.inputsAt(2)
    assert add.owningBlock().owningNode() == node and add.owningGraph() == graph
    x = graph.inputs()[0]
    assert [(use.user.kind(), use.offset) for use in x.uses()] == [
        ("aten::relu", 0),
        ("aten::add", 0),
        ("aten::add", 1),
    ]
    assert x.node() == graph.param_node() and x.debugName() == "x" and x.offset() == 0
    assert [v.debugName() for v in graph.outputs()] == [node.output().debugName()]
    with pytest.raises(RuntimeError, match="3 inputs, not one"):
        add.input()
    with pytest.raises(IndexError, match="none at place 3"):
        add.inputsAt(3)
    with pytest.raises(TypeError, match="expected a Value"):
        add.addInput(3)


def test_nodes_are_changed():
    graph = branch_graph()
    add = graph.findNode("aten::add")
    two = graph.insertConstant(2)
    two.node().moveBefore(add)
    add.replaceInput(2, two)
    x = torch.tensor([1.0])
    assert graph._run(x, False).item() == 3
    with pytest.raises(RuntimeError, match="is used"):
        add.destroy()
    with pytest.raises(RuntimeError, match="block of its own"):
        graph.findNode("prim::If").moveBefore(add)
    graph.lint()
    neg = graph.create("aten::neg", [graph.inputs()[0]]).insertBefore(graph.findNode("prim::If"))
    graph.inputs()[0].replaceAllUsesAfterNodeWith(neg, neg.output())
    assert graph._run(x, False).item() == -3
    with pytest.raises(RuntimeError, match="cannot be taken out"):
        graph.return_node().destroy()
    # What was taken out can still be looked at.
    relu = graph.findNode("aten::relu")
    relu.owningBlock().returnNode().replaceInput(0, neg.output())
    relu.destroy()
    assert relu.kind() == "aten::relu" and relu.owningBlock() is None
    graph.lint()


def test_attributes():
    graph = _C.Graph()
    node = graph.create("prim::GetAttr", [graph.addInput()])
    assert node.s_("name", "weight") == node and node.s("name") == "weight"
    assert node.attributeNames() == ["name"] and node.kindOf("name") == "s"
    assert node.hasAttribute("name") and not node.hasAttribute("other")
    with pytest.raises(RuntimeError, match="'other' is undefined"):
        node.i("other")
    none = graph.insertConstant(None)
    assert none.node().attributeNames() == [] and none.node().mustBeNone()
    assert graph.insertConstant(torch.float32).toIValue() == 6
    assert graph.insertConstant([1, 2]).type().str() == "int[]"


def test_unknown_kinds_are_kept_and_do_not_run():
    graph = _C.Graph()
    graph.registerOutput(graph.insertNode(graph.create("my::op", [graph.addInput()])).output())
    assert "my::op(" in str(graph)
    with pytest.raises(NotImplementedError, match="my::op"):
        graph._run(torch.ones(1))


def test_types():
    for text, printed, kind in (
        ("List[int]", "int[]", "ListType"),
        ("Optional[Tensor]", "Tensor?", "OptionalType"),
        ("Dict(str, Tensor)", "Dict(str, Tensor)", "DictType"),
        ("Tuple[int, str]", "(int, str)", "TupleType"),
        ("NoneType", "NoneType", "NoneType"),
    ):
        made = _C._parse_type(text)
        assert (made.str(), made.kind()) == (printed, kind)
        assert made == _C._parse_type(printed) and hash(made) == hash(_C._parse_type(printed))
    assert _C._parse_type("List[int]").getElementType().annotation_str == "int"
    assert _C._parse_type("int").isSubtypeOf(_C._parse_type("Optional[int]"))
    with pytest.raises(RuntimeError, match="at character"):
        _C._parse_type("List[int")
    value = _C.Graph().addInput()
    value.inferTypeFrom(torch.ones(2, 3))
    assert value.type().str() == "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)"
    assert value.type().sizes() == [2, 3] and value.type().dtype() == torch.float32


def test_handles_keep_the_graph():
    node = branch_graph().findNode("aten::add")
    gc.collect()
    assert node.kind() == "aten::add" and node.owningGraph().inputs()[0].debugName() == "x"


def test_passes():
    graph = branch_graph()
    copy = graph.copy()
    flag = graph.inputs()[1]
    on = graph.insertConstant(True)
    on.node().moveBefore(graph.findNode("prim::If"))
    flag.replaceAllUsesWith(on)
    assert _C._jit_pass_constant_propagation(graph)
    _C._jit_pass_dce(graph)
    assert graph.findNode("prim::If") is None and copy.findNode("prim::If") is not None
    assert graph._run(torch.tensor([-1.0]), False).item() == 0


def test_programs_print_and_raise():
    graph = _C.Graph()
    text = graph.addInput("text").setType(_C._parse_type("str"))
    graph.insertNode(graph.create("prim::Print", [text, graph.insertConstant(1.5)]))
    graph.insertNode(graph.create("prim::RaiseException", [text], 0))
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), pytest.raises(torch.jit.Error, match="RuntimeError: q"):
        graph._run("q")
    assert shown.getvalue() == "q 1.5\n"
    assert not issubclass(torch.jit.Error, RuntimeError)


def test_errors_of_python_pass_through():
    graph = _C.Graph()
    x = graph.addInput("x")
    graph.registerOutput(graph.insertNode(graph.create("aten::relu", [x])).output())

    class Refuses(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError("refused")

    with Refuses(), pytest.raises(KeyError, match="refused"):
        graph._run(torch.ones(1))
    with pytest.raises(RuntimeError, match="Traceback of TorchScript"):
        graph._run("text")


def test_nodes_in_no_block_use_values_too():
    """A node that was made and never put anywhere does not hinder the graph from running."""
    graph = _C.Graph()
    x = graph.addInput("x")
    kept = graph.create("aten::relu", [x])
    node = graph.create("aten::neg", [x])
    graph.insertNode(node)
    graph.registerOutput(node.output())
    assert graph._run(torch.ones(2)).tolist() == [-1, -1] and kept is not None


def test_passes_refuse_what_is_not_well_formed():
    graph = _C.Graph()
    x = graph.addInput("x")
    graph.insertNode(graph.create("prim::If", [x], 1))  # without blocks
    for name in dir(_C):
        if name.startswith("_jit_pass_"):
            with pytest.raises(RuntimeError, match="well formed"):
                getattr(_C, name)(graph)


def test_lists_and_texts_that_memory_cannot_hold():
    unit = torch.jit.CompilationUnit(
        "def items(n: int):\n  return [1] * n\ndef tabs(s: str, n: int):\n  return s.expandtabs(n)\n"
    )
    for call in (lambda: unit.items(1 << 39), lambda: unit.tabs("\t\t", (1 << 63) - 1)):
        with pytest.raises(RuntimeError, match=r"too long|allocate memory"):
            call()
