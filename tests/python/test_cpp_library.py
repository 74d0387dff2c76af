"""Ops that C++ defines with TORCH_LIBRARY: from Python, with gradients, in other C++."""

import io
import os
import shutil
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.utils import cpp_extension

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
    pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler"),
]
SOURCE = Path(__file__).resolve().parent.parent / "cpp_programs" / "library.cpp"


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    path = cpp_extension.load(
        "twin", str(SOURCE), is_python_module=False, build_directory=str(folder)
    )
    assert os.path.realpath(path) in torch.ops.loaded_libraries
    return torch.ops.twin


def test_ops_of_a_library(twin):
    x = torch.arange(3.0, requires_grad=True)
    assert twin.scaled(x).tolist() == [0, 2, 4]
    assert twin.scaled(x, by=3.0).tolist() == [0, 3, 6]
    twin.scaled(x, 5.0).sum().backward()  # made of other ops, which record themselves
    assert x.grad is not None and x.grad.tolist() == [5, 5, 5]
    assert twin.joined([x, x]).shape == (6,)
    y, count, word = twin.parts(x, [1, 2], None, 4, "a")
    assert torch.equal(x, y) and count == 6 and word == "a!"
    assert twin.parts(x, [], x, None, "")[0].tolist() == [0, 2, 4]
    assert twin.words({"a": x}, ["b", "c"]) == {"a": 3, "b": 0, "c": 0}
    assert twin.scaled.more(x, [2.0, 3.0]).tolist() == [0, 5, 10]


def test_functions_of_kinds_of_devices(twin):
    assert twin.placed(torch.ones(2)).tolist() == [2, 2]
    assert twin.placed(torch.ones(2, 3, device="meta")).shape == (2, 3)


def test_ops_by_the_older_way(twin):
    assert torch.ops.older.count() == 3
    for dtype in (torch.float64, torch.float32, torch.float16):
        x = torch.arange(4, dtype=dtype)
        assert torch.ops.older.halved(x, [2, 2]).tolist() == [[0, 0.5], [1, 1.5]]


def test_what_is_written_and_what_differs(twin):
    x = torch.zeros(2)
    twin.fill_(x, value=3.0)
    assert x.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="nothing to join"):
        twin.joined([])
    with pytest.raises((TypeError, RuntimeError)):
        twin.scaled("a")
    with pytest.raises(AttributeError):
        twin.absent  # noqa: B018


def test_gradients_of_a_library(twin):
    x = torch.ones(3, requires_grad=True)
    out = twin.scaled_sum(x, 4.0)
    assert out.item() == 12
    out.backward()
    assert x.grad is not None and x.grad.tolist() == [4, 4, 4]
    assert not twin.passed(x).requires_grad  # its place in autograd falls through


def test_schemas_and_functions_for_other_devices(twin):
    schema = str(twin.scaled.default._schema)
    assert schema == "twin::scaled(Tensor x, float by=2.0) -> Tensor"

    @torch.library.register_fake("twin::scaled_sum")
    def _(x, by):
        return x.new_empty(())

    assert twin.scaled_sum(torch.empty(2, device="meta"), 1.0).shape == ()
    assert twin.boxed(torch.ones(2), 3).tolist() == [4, 4]
    with pytest.raises(NotImplementedError, match="Could not run 'twin::nowhere'"):
        twin.nowhere(torch.ones(1))
    with pytest.raises(NotImplementedError, match="import 'twin_python'"):
        twin.nowhere(torch.ones(1, device="meta"))


def test_calls_from_cpp(twin):
    x = torch.ones(2, requires_grad=True)
    assert twin.through_dispatcher(x).tolist() == [7, 7]  # 2 * 3 of the library, aten::add of 1


def test_a_fallback_sees_every_op(twin):
    result, names = twin.watched(torch.ones(2))
    assert result.tolist() == [4, 4]
    assert names == ["aten::add.Tensor/3", "twin::scaled/2"]


def test_objects_of_cpp_classes(twin):
    stack_of = torch.classes.twin.Stack
    stack = stack_of(["a", "b"])
    assert isinstance(stack, torch.ScriptObject) and isinstance(stack, stack_of)
    stack.push("c")
    assert stack.pop() == "c" and stack.size == 2 and len(stack.all()) == 2
    assert stack.repeat() == "ab" and stack.repeat(times=2) == "abab"
    stack.label = "x"
    assert stack.label == "x"
    with pytest.raises(AttributeError):
        stack.size = 3
    with pytest.raises(RuntimeError, match="the stack is empty"):
        stack_of([]).pop()
    with pytest.raises(TypeError):
        stack.push(3)
    assert stack_of.of_one("z").all() == ["z"]
    merged = stack.merged(stack_of(["z"]))
    assert merged.all() == ["a", "b", "z"] and merged == merged and merged != stack
    assert twin.depth(stack, 1) == 3
    with pytest.raises((TypeError, RuntimeError)):
        twin.depth(torch.ones(1), 1)
    with pytest.raises(RuntimeError, match="does not exist"):
        torch.classes.twin.Absent  # noqa: B018


def test_objects_are_copied_and_saved(twin, tmp_path):
    import copy
    import pickle

    stack = torch.classes.twin.Stack(["a", "b"])
    for other in (
        copy.deepcopy(stack),
        pickle.loads(pickle.dumps(stack)),
    ):
        other.push("c")
        assert other.all() == ["a", "b", "c"] and stack.all() == ["a", "b"]
    torch.save({"s": stack}, tmp_path / "s.pt")
    assert torch.load(tmp_path / "s.pt", weights_only=False)["s"].all() == ["a", "b"]


def test_a_file_that_is_no_library(tmp_path):
    (tmp_path / "no.so").write_bytes(b"no")
    with pytest.raises(OSError, match="Could not load this library"):
        torch.ops.load_library(tmp_path / "no.so")


def test_python_reads_what_cpp_pickles(twin):
    value = {"a": [1, 2.5, None], "b": (True, "x"), "t": torch.arange(3)}
    data = bytes(twin.pickled(value))
    back = torch.load(io.BytesIO(data))
    assert torch.equal(back.pop("t"), value["t"])
    assert back == {"a": [1, 2.5, None], "b": (True, "x")}
    file = io.BytesIO()
    torch.save(value, file)
    again = twin.unpickled(list(file.getvalue()))
    assert torch.equal(again.pop("t"), value["t"]) and again == back


def test_modes_and_calls_of_python_meet_ops_of_cpp(twin):
    from rushlight.utils._python_dispatch import TorchDispatchMode

    class Names(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Names() as names:
        twin.fill_(torch.zeros(2), value=1.0)
    assert "twin.fill_.default" in names.seen
    assert "twin::scaled" in torch._C._library_op_names() and "scaled" in dir(twin)
