"""torch.onnx.export of branches and loops."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._higher_order_ops.while_loop import while_loop
from rushlight.export import Dim
from tests.python.onnx_judges import Calls, agreed, kinds


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        y = torch.cond(x.sum() > 0, lambda a: self.linear(a) + 1, lambda a: a - 1, (x * 1,))
        return torch.cond(y.max() > 5, lambda a, b: a + b, lambda a, b: a * b, (y, x)), y


def test_branches():
    x = torch.ones(2, 3)
    program = agreed(Branches(), x, others=[(-x,), (100 * x,)], output_names=["out", "y"])
    assert kinds(program).count("If") == 2
    assert {"linear.weight", "linear.bias"} <= {
        i.name for i in program.model_proto.graph.initializer
    }
    with pytest.raises(torch.onnx.OnnxExporterError, match="of which a size is open"):
        torch.onnx.export(Branches(), (x,), dynamic_shapes=({0: Dim("n")},))


def test_branches_inside_branches():
    def program(x):
        def inner(a):
            return torch.cond(a[0] > 10, lambda b: b * 2, lambda b: b * 3, (a,))

        return torch.cond(x.sum() > 0, inner, lambda a: -a, (x,))

    agreed(program, torch.ones(2), others=[(-torch.ones(2),), (torch.full((2,), 11.0),)])


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, n, x):
        def goes_on(i, a):
            return i < n

        return while_loop(
            goes_on, lambda i, a: (i + 1, torch.tanh(self.linear(a))), (torch.tensor(0), x)
        )


def test_loops():
    x = torch.randn(2, 3)
    program = agreed(
        Loop(), torch.tensor(3), x, others=[(torch.tensor(0), x), (torch.tensor(7), x)]
    )
    assert "Loop" in kinds(program)


def test_what_has_no_form():
    def program(x):
        return torch.cond(x.sum() > 0, torch.special.i0e, lambda a: a + 1, (x,))

    with pytest.raises(torch.onnx.OnnxExporterError, match=r"special_i0e\.default"):
        torch.onnx.export(Calls(program), (torch.ones(2),))
