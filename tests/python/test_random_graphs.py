"""Graphs made at random run as a walk over their nodes says, before and after passes."""

import random

import pytest

from rushlight import _C

INT, BOOL = _C._parse_type("int"), _C._parse_type("bool")
SIMPLE = {
    "aten::add": lambda a, b: a + b,
    "aten::sub": lambda a, b: a - b,
    "aten::lt": lambda a, b: a < b,
    "prim::max": max,
}


class Builder:
    """Writes nodes over ints into a graph, with branches and loops that carry several values."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.graph = _C.Graph()

    def pick(self, seen):
        return self.random.choice(seen)

    def node(self, kind, *inputs):
        return self.graph.insertNode(self.graph.create(kind, list(inputs))).output()

    def condition(self, seen):
        return self.node("aten::lt", self.pick(seen), self.pick(seen))

    def branch(self, seen, depth):
        node = self.graph.create("prim::If", [self.condition(seen)], self.random.randint(0, 3))
        self.graph.insertNode(node)
        for block in (node.addBlock(), node.addBlock()):
            inner = self.block(block, seen, depth)
            for _ in node.outputs():
                block.registerOutput(self.pick(inner))
        return node

    def loop(self, seen, depth):
        most = self.graph.insertConstant(self.random.randint(0, 3))
        begins = self.condition(seen)
        carried = [self.pick(seen) for _ in range(self.random.randint(0, 3))]
        node = self.graph.create("prim::Loop", [most, begins, *carried], len(carried))
        self.graph.insertNode(node)
        block = node.addBlock()
        params = [block.addInputToBlock().setType(INT) for _ in range(len(carried) + 1)]
        inner = self.block(block, seen + params, depth)
        self.graph.setInsertPoint(block)
        block.registerOutput(self.condition(inner))
        for _ in carried:
            block.registerOutput(self.pick(inner if self.random.random() < 0.5 else params))
        return node

    def block(self, block, seen, depth):
        """What is in sight at the end of the block."""
        seen = list(seen)
        for _ in range(self.random.randint(1, 4)):
            self.graph.setInsertPoint(block)
            choice = self.random.random()
            if depth > 0 and choice < 0.25:
                node = self.branch(seen, depth - 1)
            elif depth > 0 and choice < 0.5:
                node = self.loop(seen, depth - 1)
            elif choice < 0.6:
                seen.append(self.graph.insertConstant(self.random.randint(-3, 3)))
                continue
            else:
                kind = self.random.choice(["aten::add", "aten::sub", "prim::max"])
                seen.append(self.node(kind, self.pick(seen), self.pick(seen)))
                continue
            seen += [value.setType(INT) for value in node.outputs()]
        self.graph.setInsertPoint(block)
        return seen

    def build(self):
        end = self.graph.return_node().owningBlock()
        seen = [self.graph.addInput().setType(INT) for _ in range(3)]
        seen = self.block(end, seen, 3)
        for _ in range(3):
            self.graph.registerOutput(self.pick(seen))
        return self.graph


def walk(block, values):
    """Runs the nodes of a block; what it returns."""
    for node in block.nodes():
        kind, inputs = node.kind(), [values[v] for v in node.inputs()]
        if kind == "prim::Constant":
            made = [node.output().toIValue()]
        elif kind == "prim::If":
            made = walk(node.blocks()[0 if inputs[0] else 1], values)
        elif kind == "prim::Loop":
            most, go_on, *made = inputs
            (body,) = node.blocks()
            number = 0
            while go_on and number < most:
                values.update(zip(body.inputs(), [number, *made], strict=True))
                go_on, *made = walk(body, values)
                number += 1
        else:
            made = [SIMPLE[kind](*inputs)]
        values.update(zip(node.outputs(), made, strict=True))
    return [values[v] for v in block.outputs()]


def check(graph, arguments):
    block = graph.return_node().owningBlock()
    expected = walk(block, dict(zip(graph.inputs(), arguments, strict=True)))
    assert list(graph._run(*arguments)) == expected, str(graph)
    return expected


@pytest.mark.parametrize("part", range(4))
def test_random_graphs(part):
    for seed in range(part * 60, part * 60 + 60):
        graph = Builder(seed).build()
        graph.lint()
        for arguments in ((0, 1, 2), (3, -1, 0)):
            expected = check(graph, arguments)
            changed = graph.copy()
            for _ in range(2):
                _C._jit_pass_peephole(changed)
                _C._jit_pass_constant_propagation(changed)
                _C._jit_pass_cse(changed)
                _C._jit_pass_dce(changed)
            _C._jit_pass_constant_pooling(changed)
            changed.lint()
            assert check(changed, arguments) == expected
