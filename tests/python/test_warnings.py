"""Warnings name the line of the program that led to them: this file is the program."""

import ast
import contextlib
import functools
import warnings
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight._warnings import warn
from rushlight.nn import functional as F
from rushlight.optim import lr_scheduler

PACKAGE = Path(torch.__file__).parent


def scheduler():
    return lr_scheduler.StepLR(optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1), 1)


def stepped(s):
    s.optimizer.step()
    return s


class Softmax(nn.Module):
    """Its forward is the program's: the warning is on its line."""

    def forward(self, x):
        return F.softmax(x)


class Old(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def wrapped(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)

    return call


@contextlib.contextmanager
def around():
    yield


class Bad(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield from range(4)

    def __len__(self):
        return 1


def x():
    return torch.ones(2, 3, requires_grad=True)


SCHEDULER = scheduler()
SEQUENTIAL = nn.Sequential(nn.Linear(3, 3), nn.Softmax())
LOADER = torch.utils.data.DataLoader(Bad(), batch_size=1)

# One warning each, from Python and from C++ (those that come once in a process among them), through modules,
# wrappers, iterators and context managers. A case is one line.
CASES = {
    "reduction": lambda: F.mse_loss(x(), x(), size_average=True),
    "reduction_of_module": lambda: nn.MSELoss(reduce=True),
    "softmax": lambda: F.softmax(x()),
    "softmax_in_modules": lambda: SEQUENTIAL(x()),
    "sizes_differ": lambda: F.mse_loss(torch.ones(2), torch.ones(2, 1)),
    "sizes_differ_in_module": lambda: nn.L1Loss()(torch.ones(2), torch.ones(2, 1)),
    "upsample": lambda: F.upsample(torch.ones(1, 1, 2, 2), scale_factor=2),
    "sigmoid": lambda: nn.init.uniform(torch.ones(2)),
    "empty_init": lambda: nn.init.kaiming_uniform_(torch.ones(0, 2)),
    "rnn_dropout": lambda: nn.LSTM(3, 3, dropout=0.5),
    "clip": lambda: nn.utils.clip_grad_norm([x()], 1.0),
    "weight_norm": lambda: nn.utils.weight_norm(nn.Linear(2, 2)),
    "scheduler_order": lambda: scheduler().step(),
    "scheduler_epoch": lambda: stepped(SCHEDULER).step(3),
    "get_lr": lambda: SCHEDULER.get_lr(),
    "out_resized": lambda: torch.add(torch.ones(3), 1, out=torch.ones(2)),
    "copy_of_tensor": lambda: torch.tensor(torch.ones(2)),
    "create_graph": lambda: x().sum().backward(create_graph=True),
    "transposed": lambda: torch.ones(2, 2, 2).T,
    "default_type": lambda: torch.set_default_tensor_type(torch.FloatTensor),
    "checkpoint": lambda: torch.utils.checkpoint.checkpoint(
        torch.exp, torch.ones(2), use_reentrant=True
    ),
    "grad_of_inner": lambda: (x() * 2).grad,
    "typed_storage": lambda: torch.ones(2).storage(),
    "detect_anomaly": lambda: torch.autograd.detect_anomaly(),
    "profiler": lambda: torch.profiler.schedule(wait=1, warmup=0, active=1),
    "loader": lambda: (len(LOADER), list(LOADER)),
    "wrapped": wrapped(lambda: F.softmax(x())),
    "vmap_old": lambda: torch._vmap_internals.vmap(torch.exp),
    "sample_n": lambda: torch.distributions.Normal(0.0, 1.0).sample_n(2),
    "in_own_module": lambda: Softmax()(x()),
    "state_by_position": lambda: nn.Linear(1, 1).state_dict({}),
    "one_element": lambda: torch.ones(1).std(),
    "complex_to_real": lambda: torch.ones(2, dtype=torch.complex64).float(),
}
# Where it is another line than the case's.
ELSEWHERE = {"in_own_module": Softmax.forward}


def lines_of(function):
    function = getattr(function, "__wrapped__", function)
    return {line for _, _, line in function.__code__.co_lines() if line is not None}


@pytest.mark.parametrize("name", CASES)
def test_the_line_is_the_programs(name):
    torch.set_warn_always(True)
    torch.storage._reset_warn_typed_storage_removal()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            CASES[name]()
    finally:
        torch.set_warn_always(False)
    assert caught
    where = lines_of(ELSEWHERE.get(name, CASES[name]))
    for warning in caught:
        assert (warning.filename, warning.lineno in where) == (__file__, True), warning


def said(call):
    """What a call warns of."""
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
    finally:
        torch.set_warn_always(False)
    assert all(w.category is UserWarning for w in caught)
    return [str(w.message) for w in caught]


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_no_degrees_of_freedom(name):
    spread = getattr(torch, name)
    few = [
        lambda: spread(torch.ones(1)),
        lambda: spread(torch.ones(3, 1), 1),
        lambda: spread(torch.ones(3, 2), 1, correction=2),
        lambda: spread(torch.ones(0)),
        lambda: spread(torch.ones(0, 3), 1),
        lambda: spread(torch.ones(1, dtype=torch.complex64)),
    ]
    for call in few:
        (message,) = said(call)
        assert message.startswith(f"{name}(): degrees of freedom is <= 0")
    enough = [
        lambda: spread(torch.ones(2)),
        lambda: spread(torch.ones(3, 1), 1, correction=0),
        lambda: spread(torch.ones(2, 2), (0, 1), correction=3),
        lambda: spread(torch.ones(1, device="meta")),
    ]
    assert not [message for call in enough for message in said(call)]


def test_lost_imaginary_parts():
    z = torch.ones(2, dtype=torch.complex64)
    casts = [
        z.float,
        lambda: z.to(torch.int32),
        lambda: torch.zeros(2).copy_(z),
        lambda: torch.zeros(2).__setitem__(slice(None), z),
    ]
    for cast in casts:
        (message,) = said(cast)
        assert message.startswith("Casting complex values to real discards the imaginary part")
    leaf = torch.ones(2, requires_grad=True)
    others = [
        z.bool,
        lambda: z.real.double(),
        lambda: z.to("meta").float(),
        lambda: z.to(torch.complex128),
        lambda: torch.zeros(2, dtype=torch.complex64).copy_(torch.ones(2)),
        lambda: (leaf * z).abs().sum().backward(),
        lambda: torch.autograd.grad((leaf.double() * z).real.sum(), leaf),
    ]
    assert not [message for call in others for message in said(call)]
    assert leaf.grad.is_contiguous()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        z.float(), z.float()
    assert len(caught) <= 1  # once in a process


def test_a_warning_of_backward():
    """Backward runs functions of nodes below `backward()`, whose line counts."""
    leaf = torch.ones(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(False):
        y = (leaf - 1).sqrt() * 0
    with warnings.catch_warnings(record=True) as caught, pytest.raises(RuntimeError, match="nan"):
        warnings.simplefilter("always")
        with torch.autograd.set_detect_anomaly(True):
            y.sum().backward()
    assert caught and all(w.filename == __file__ for w in caught)
    assert all(
        "y.sum().backward()" in Path(__file__).read_text().splitlines()[w.lineno - 1]
        for w in caught
    )


def test_once_for_each_line_and_as_an_error():
    """Filters of Python see module, line and category, as of any warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            F.softmax(torch.ones(2, 2))
        F.softmax(torch.ones(2, 2))
    assert len(caught) == 2
    with warnings.catch_warnings():
        warnings.filterwarnings("error", module=__name__.replace(".", r"\."))
        with pytest.raises(UserWarning, match="Implicit dimension"):
            F.softmax(torch.ones(2, 2))
        with pytest.raises(UserWarning, match="resized"):
            torch.add(torch.ones(3), 1, out=torch.ones(2))


def test_between():
    """What stands between a program and the package is neither's line."""

    @contextlib.contextmanager
    def of_package():
        warn("entered", FutureWarning)
        yield

    with around(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec("def use(f):\n    return f()\n", globals_of_package := {"__name__": "contextlib"})
        globals_of_package["use"](
            lambda: globals_of_package["use"](functools.partial(warn, "text"))
        )
    assert caught[0].filename == __file__


# Files that call `warnings.warn` themselves, and why.
OWN = {"_warnings.py": "the helper"}


def calls_of_warn(tree):
    """Calls of `warnings.warn` and its like, by whatever name, as (line, text)."""
    named = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "warnings":
            named |= {
                alias.asname or alias.name for alias in node.names if alias.name.startswith("warn")
            }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            f = node.func
            is_module = isinstance(f, ast.Attribute) and f.attr in ("warn", "warn_explicit")
            if is_module and isinstance(f.value, ast.Name) and f.value.id == "warnings":
                yield node.lineno
            if isinstance(f, ast.Name) and f.id in named:
                yield node.lineno


def test_the_package_warns_by_one_function():
    wrong, seen = [], 0
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        text = path.read_text()
        seen += text.count("warn(")
        found = list(calls_of_warn(ast.parse(text)))
        assert name not in OWN or found, f"{name} need not be listed"
        wrong += [f"{name}:{line}" for line in found if name not in OWN]
    assert not wrong, wrong
    assert seen > 100


def test_a_thread_of_the_package_warns_somewhere():
    """Without a line of a program the outermost frame is named, and nothing is lost."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile("warn('alone')", str(PACKAGE / "made_up.py"), "exec"), {"warn": warn})
    assert [str(w.message) for w in caught] == ["alone"]
