"""Stacks, modules and operations of profiles, their tables and traces."""

import json
import subprocess
import sys

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F
from rushlight.profiler import profile, record_function


class Inner(nn.Module):
    def forward(self, x):
        return x.exp() + 1


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.blocks = nn.Sequential(Inner(), Inner())

    def forward(self, x):
        return self.blocks(self.linear(x))


def first(p, name):
    return next(e for e in p.events() if e.name == name)


def double(x):
    return torch.mul(x, 2)


def test_stack():
    x = torch.ones(3)
    with profile(with_stack=True) as p:
        double(x)
        with record_function("again"):
            double(x)
    mul = first(p, "aten::mul")
    assert mul.stack[0].startswith("<built-in ") and "mul" in mul.stack[0]
    assert mul.stack[1].endswith(": double") and "test_profiler.py(" in mul.stack[1]
    assert mul.stack[2].endswith(": test_stack")
    double_event = mul.cpu_parent.cpu_parent
    assert double_event.is_python_function and double_event.activity_type == "python_function"
    assert double_event.name == mul.stack[1] and double_event.cpu_time_total >= mul.cpu_time_total
    # What the profiler itself calls is not shown.
    assert not [e for e in p.events() if "profiler/profiler.py" in e.name]
    assert p.count("mul") == 2
    assert all(e.stack == [] for e in profiled(double, x).events())


def profiled(function, *args, **options):
    with profile(**options) as p:
        function(*args)
    return p


def test_stack_of_modules_and_errors():
    net = Outer()

    def fails(x):
        try:
            net(x)
        except RuntimeError:
            return torch.neg(x)

    p = profiled(fails, torch.ones(2, 5), with_stack=True)
    assert first(p, "aten::neg").stack[1].endswith(": fails")
    p = profiled(net, torch.ones(2, 4), with_stack=True)
    names = [s for s in first(p, "aten::exp").stack if s.startswith("nn.Module: ")]
    assert names == ["nn.Module: Inner_0", "nn.Module: Sequential_0", "nn.Module: Outer_0"]
    assert [e.name for e in p.events() if "Inner" in e.name] == [
        "nn.Module: Inner_0",
        "nn.Module: Inner_1",
    ]
    assert first(p, "aten::exp").module_hierarchy == []


def test_generators_and_what_was_set_before():
    seen = []

    def watch(frame, event, argument):
        seen.append(event)

    def numbers():
        yield 1
        yield 2

    sys.setprofile(watch)
    try:
        p = profiled(lambda: [torch.ones(n) for n in numbers()], with_stack=True)
        assert sys.getprofile() is watch
    finally:
        sys.setprofile(None)
    assert seen
    assert [e.stack[1].rpartition(" ")[2] for e in p.events() if e.name == "aten::ones"] == [
        "<listcomp>" if sys.version_info < (3, 12) else "<lambda>"
    ] * 2
    assert len([e for e in p.events() if e.name.endswith(": numbers")]) == 3


def test_module_hierarchy(tmp_path):
    net = Outer()
    x = torch.ones(2, 4)
    with profile(with_modules=True) as p:
        net(x)
        torch.neg(x)
    where = {e.name: e.module_hierarchy for e in p.events()}
    assert where["aten::linear"] == ["TOP(Outer)::forward", "linear(Linear)::forward"]
    assert where["aten::neg"] == []
    assert [e.module_hierarchy[1:] for e in p.events() if e.name == "aten::exp"] == [
        ["blocks(Sequential)::forward", f"{i}(Inner)::forward"] for i in range(2)
    ]
    p.export_chrome_trace(str(tmp_path / "trace"))
    events = json.loads((tmp_path / "trace").read_text())["traceEvents"]
    linear = next(e for e in events if e["name"] == "aten::linear")
    assert linear["args"]["Module Hierarchy"] == "TOP(Outer)::forward.linear(Linear)::forward"
    module = next(e for e in events if e["name"] == "nn.Module: Linear_0")
    assert module["cat"] == "python_function" and module["args"]["Python module id"] == 0
    # Calls of another profile that ended do not come back.
    assert "nn.Module: Outer_0" not in {e.name for e in profiled(net, x).events()}


FLOPS = [
    ("aten::mm", lambda x: x @ x.T, 2 * 3 * 4 * 3),
    ("aten::addmm", lambda x: torch.addmm(x[:, :3], x, x.T), 72),
    ("aten::bmm", lambda x: torch.bmm(x[None], x.T[None]), 72),
    ("aten::baddbmm", lambda x: torch.baddbmm(x[None, :, :3], x[None], x.T[None]), 72),
    ("aten::add", lambda x: torch.add(x, x[0]), 12),
    ("aten::mul", lambda x: torch.mul(x[0], x), 4),
    ("aten::mul", lambda x: x * 2, 12),
    (
        "aten::convolution",
        lambda x: F.conv2d(
            torch.ones(2, 4, 5, 5), torch.ones(6, 2, 3, 3), groups=2, padding=1, stride=2
        ),
        2 * 2 * 6 * 9 * 2 * 9,
    ),
    ("aten::exp", torch.exp, 0),
]


@pytest.mark.parametrize(("name", "run", "flops"), FLOPS)
def test_flops(name, run, flops):
    x = torch.ones(3, 4)
    assert first(profiled(run, x, with_flops=True), name).flops == flops
    assert first(profiled(run, x), name).flops == 0


def test_flops_of_averages_and_tables():
    x = torch.ones(300, 400)

    def run():
        _ = x @ x.T
        _ = x.T @ x
        x.exp()

    p = profiled(run, with_flops=True)
    averages = p.key_averages()
    sums = {e.key: e.flops for e in averages}
    assert sums["aten::mm"] == 72_000_000 + 96_000_000 and sums["aten::exp"] == 0
    table = averages.table(sort_by="flops")
    assert "Total MFLOPs" in table and "168.000" in table and "--" in table
    assert table.index("aten::mm") < table.index("aten::exp")
    assert "FLOPs" not in profiled(run).key_averages().table()
    assert "FLOPs" not in profiled(x.exp, with_flops=True).key_averages().table()
    assert p.events()[0].input_shapes == []  # not asked for


def test_arguments(tmp_path):
    x = torch.ones(2, 3)

    def run():
        torch.cat([x, x], dim=1)
        torch.sum(x, dim=[0])

    with profile(record_shapes=True) as p:
        run()
    cat = first(p, "aten::cat")
    assert cat.input_shapes == [[], []]
    assert cat.structured_input_shapes == [[[2, 3], [2, 3]], []]
    assert cat.concrete_inputs == [None, 1] and cat.input_dtypes == ["TensorList", "Scalar"]
    total = first(p, "aten::sum")
    assert total.input_shapes == [[2, 3], [], [], []]
    assert total.concrete_inputs == [None, [0], False, None]
    assert total.structured_input_strides[0] == [3, 1] and total.input_dtypes[0] == "float"
    p.export_chrome_trace(str(tmp_path / "trace"))
    events = json.loads((tmp_path / "trace").read_text())["traceEvents"]
    arguments = next(e for e in events if e["name"] == "aten::sum")["args"]
    assert arguments["Input Dims"] == [[2, 3], [], [], []]
    assert arguments["Concrete Inputs"] == ["", "[0]", "False", ""]


def test_activities():
    kinds = torch.profiler.ProfilerActivity
    for activities in (["x"], [], "x", [kinds.CPU, 3]):
        with pytest.raises(AssertionError, match="no valid profiler activities"):
            profile(activities=activities)
    with pytest.raises(TypeError):
        profile(activities=3)
    alone = profile(activities=[kinds.CUDA])
    with pytest.raises(AssertionError, match="CUDA alone cannot be profiled"):
        alone.start()
    for activities in (None, [kinds.CPU], {kinds.CPU, kinds.CUDA}):
        with profile(activities=activities) as prof:
            torch.ones(2) + 1
        assert prof.count("add") == 1


def test_what_tables_refuse():
    with profile() as prof:
        torch.ones(2) + 1
    for table in (prof.table, prof.key_averages().table):
        with pytest.raises(AttributeError, match="sort_by must be the name .* but got 3"):
            table(sort_by=3)
        with pytest.raises(AttributeError, match="no 'nonsense'"):
            table(sort_by="nonsense")
        with pytest.raises(TypeError, match="header must be a str, not int"):
            table(header=5)


def test_tables():
    x = torch.ones(3)

    def run():
        with record_function("both"):
            double(x)
            torch.add(x, x)
            torch.add(x, 1)

    p = profiled(run, with_stack=True, profile_memory=True)
    by_stack = p.key_averages(group_by_stack_n=2)
    mul = next(e for e in by_stack if e.key == "aten::mul")
    assert len(mul.stack) == 2 and mul.stack[1].endswith(": double")
    assert "Source Location" in by_stack.table() and mul.stack[1] in by_stack.table()
    narrow = by_stack.table(max_src_column_width=12)
    assert narrow.count(mul.stack[1]) == 1  # as a name
    assert "..." + mul.stack[1][-9:] in narrow
    assert "Source Location" not in p.key_averages().table()
    overloads = p.key_averages(group_by_overload_name=True)
    assert {e.overload_name for e in overloads if e.key == "aten::add"} == {"Tensor"}
    assert "Overload Name" in overloads.table()
    both = next(e for e in p.events() if e.name == "both")
    assert both.cpu_memory_usage == 36 and both.self_cpu_memory_usage == 0
    text = p.events().table(time_unit="us", header="of a test", top_level_events_only=True)
    assert "of a test" in text and "ms" not in text and "aten::mul" not in text
    with pytest.raises(AttributeError):
        p.key_averages().table(sort_by="colour")


def test_export_stacks(tmp_path):
    x = torch.ones(1000, 1000)
    path = str(tmp_path / "stacks")
    p = profiled(double, x, with_stack=True)
    p.export_stacks(path)
    line = next(s for s in (tmp_path / "stacks").read_text().splitlines() if "function_mul>" in s)
    names, _, time = line.rpartition(" ")
    assert int(time) > 0 and " " not in names
    outer, inner = names.split(";")[-2:]
    assert outer.endswith(":_double") and inner.startswith("<built-in_")
    with pytest.raises(ValueError, match="metric"):
        p.export_stacks(path, "count")
    with pytest.raises(AssertionError):
        profiled(double, x).export_stacks(path)


def test_older_interface():
    with torch.autograd.profiler.profile(with_stack=True, with_flops=True) as p:
        double(torch.ones(3))
    mul = next(e for e in p.function_events if e.name == "aten::mul")
    assert mul.flops == 3 and mul.stack[1].endswith(": double")


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def test_nodes_of_backward(tmp_path):
    x = torch.ones(2, 3, requires_grad=True)
    w = torch.ones(3, 3, requires_grad=True)

    def step():
        (Doubled.apply(x.exp() @ w) + 1).sum().backward()

    for shapes in (False, True):
        p = profiled(step, record_shapes=shapes)
        evaluated = "autograd::engine::evaluate_function: "
        nodes = ["SumBackward0", "AddBackward0", "DoubledBackward", "MmBackward0", "ExpBackward0"]
        whole = [e for e in p.events() if e.name.startswith(evaluated)]
        leaves = [e for e in whole if e.name.endswith("torch::autograd::AccumulateGrad")]
        assert [e.name for e in whole if e not in leaves] == [evaluated + n for n in nodes]
        assert len(leaves) == 2 and all(e.sequence_nr == -1 for e in leaves)
        numbers = [e.sequence_nr for e in whole if e not in leaves]
        assert numbers == sorted(numbers, reverse=True) and numbers[-1] >= 0
        for e in whole:
            (inner,) = [c for c in e.cpu_children if c.name == e.name.removeprefix(evaluated)]
            assert (e.scope, inner.scope) == (0, 1) and inner.sequence_nr == e.sequence_nr
            assert not e.is_user_annotation and inner.cpu_time_total <= e.cpu_time_total
        matrix = first(p, "MmBackward0")
        assert matrix.input_shapes == ([[2, 3]] if shapes else [])
        assert [c.name for c in matrix.cpu_children].count("aten::mm") == 2
        assert [c.name for c in first(p, "ExpBackward0").cpu_children] == ["aten::mul"]
    rows = {row.key: row for row in p.key_averages()}
    assert rows["torch::autograd::AccumulateGrad"].count == 2
    assert rows[evaluated + "MmBackward0"].cpu_time_total >= rows["MmBackward0"].cpu_time_total
    for key in ("cpu_time_total", "self_cpu_time_total", "count", "cpu_memory_usage"):
        assert "MmBackward0" in p.key_averages().table(sort_by=key, row_limit=-1)
    # What all took is counted once.
    assert p.events().self_cpu_time_total < 1.01 * sum(
        e.cpu_time_total for e in p.events() if e.cpu_parent is None
    )
    p.export_chrome_trace(str(tmp_path / "trace"))
    events = json.loads((tmp_path / "trace").read_text())["traceEvents"]
    traced = next(e for e in events if e["name"] == "MmBackward0")
    assert traced["cat"] == "cpu_op" and traced["args"]["Sequence number"] == matrix.sequence_nr
    assert traced["args"]["Input Dims"] == [[2, 3]]


def test_backward_of_modules_and_second_derivatives():
    net = Outer()
    p = profiled(lambda: net(torch.ones(2, 4)).sum().backward(), with_modules=True, with_stack=True)
    names = {e.name for e in p.events()}
    assert {"nn.Module: Linear_0", "nn.Module: Inner_1", "AddBackward0"} <= names
    assert first(p, "AddBackward0").module_hierarchy == []
    x = torch.ones(3, requires_grad=True)

    def twice():
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        g.sum().backward()

    p = profiled(twice)
    assert p.count("PowBackward0") == 2
    with profile() as outer, profile() as inner:
        (x * 2).sum().backward()
    assert outer.count("MulBackward0") == inner.count("MulBackward0") == 1
    (x * 2).sum().backward()  # nobody records


def test_steps_share_a_row(tmp_path):
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2)
    with profile(schedule=plan) as p:
        for _ in range(4):
            torch.ones(3).exp()
            p.step()
    steps = [e for e in p.events() if e.name == "ProfilerStep*"]
    assert [e.trace_name for e in steps] == ["ProfilerStep#2", "ProfilerStep#3"]
    assert all(
        e.is_user_annotation and "aten::exp" in [c.name for c in e.cpu_children] for e in steps
    )
    row = next(row for row in p.key_averages() if row.key == "ProfilerStep*")
    assert row.count == 2 and row.cpu_time_total == sum(e.cpu_time_total for e in steps)
    for key in ("cpu_time_total", "self_cpu_time_total"):
        assert "ProfilerStep*" in p.key_averages().table(sort_by=key)
    p.export_chrome_trace(str(tmp_path / "trace"))
    events = json.loads((tmp_path / "trace").read_text())["traceEvents"]
    assert [e["name"] for e in events if e["cat"] == "user_annotation"] == [
        e.trace_name for e in steps
    ]


@pytest.mark.parametrize(
    "begin",
    [
        "torch.profiler.profile().start()",
        "torch.profiler.profile().step()",
        "torch.autograd.profiler.profile().__enter__()",
        "torch.profiler.profile(with_stack=True, with_modules=True).start()",
    ],
)
@pytest.mark.parametrize("where", ["main", "thread"])
def test_a_profiler_that_nobody_ends(begin, where):
    """The thread that it records ends all the same, and so does the interpreter."""
    program = f"""
import threading
import rushlight as torch
def work():
    global p
    p = {begin}
    torch.nn.Linear(2, 2)(torch.ones(2)).sum().backward()
if {where == "main"}:
    work()
else:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
print("end")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
