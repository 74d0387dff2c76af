"""`monitor`, `futures`, sizes that stand for numbers, and small names that packages reach for."""

import datetime
from typing import ClassVar

import pytest

import rushlight as torch
from rushlight import monitor
from rushlight.futures import Future, collect_all, wait_all


@pytest.fixture
def events():
    seen = []
    handle = monitor.register_event_handler(seen.append)
    yield seen
    monitor.unregister_event_handler(handle)
    monitor.unregister_event_handler(handle)  # once more does nothing


def test_a_window_of_values_is_an_event(events):
    kinds = [monitor.Aggregation[n] for n in ("VALUE", "MEAN", "COUNT", "SUM", "MAX", "MIN")]
    stat = monitor.Stat("loss", kinds, datetime.timedelta(hours=1), 3)
    stat.add(4)
    stat.add(1)
    assert stat.count == 2 and set(stat.get().values()) == {0.0} and not events
    stat.add(3)
    expected = {"value": 3, "mean": 8 / 3, "count": 3, "sum": 8, "max": 4, "min": 1}
    assert events[0].name == "torch.monitor.Stat" and stat.count == 0
    assert events[0].data == {f"loss.{kind}": value for kind, value in expected.items()}
    assert stat.get()[monitor.Aggregation.SUM] == 8


def test_a_window_ends_with_its_time(events):
    stat = monitor.Stat("a", [monitor.Aggregation.COUNT], datetime.timedelta(0))
    stat.add(1)
    stat.add(1)
    assert [event.data for event in events] == [{"a.count": 1.0}] * 2


def test_events_reach_handlers(events):
    now = datetime.datetime.now()
    monitor.log_event(monitor.Event("begin", now, {"step": 1, "name": "x"}))
    assert events[0].timestamp == now and "begin" in repr(events[0])
    with pytest.raises(TypeError, match="strings, numbers and bools"):
        monitor.Event("begin", now, {"step": []})

    class Writer:
        calls: ClassVar[list] = []

        def add_scalar(self, name, value, walltime):
            self.calls.append((name, value, walltime))

        def add_text(self, name, value, walltime):
            self.calls.append((name, value, walltime))

    monitor.TensorboardEventHandler(Writer())(events[0])
    assert Writer.calls == [("step", 1, now.timestamp()), ("name", "x", now.timestamp())]


def test_futures_have_a_type():
    future: Future[int] = Future()
    after = future.then(lambda f: f.wait() + 1)
    future.set_result(1)
    assert wait_all([future, after]) == [1, 2] and Future[torch.Tensor] is not Future
    assert collect_all([future, after]).wait() == [future, after]


def test_sizes_that_stand_for_numbers():
    assert torch.sym_int(2.7) == 2 and torch.sym_float(2) == 2.0 and torch.sym_not(0) is True
    assert torch.sym_max(1, 2.0) == 2.0 and torch.sym_min(1, 2) == 1
    assert type(torch.sym_max(3, 2.0)) is float and torch.sym_sum([1, 2, 3]) == 6
    assert torch.sym_ite(True, 1, 2) == 1 and torch.sym_sqrt(9) == 3
    with pytest.raises(AssertionError):
        torch.sym_ite(True, 1, 2.0)
    assert not isinstance(3, torch.SymInt | torch.SymFloat | torch.SymBool)
    with pytest.raises(RuntimeError, match="makes no SymInt"):
        torch.SymInt(3)


def test_assertions_as_ops():
    aten, t = torch.ops.aten, torch.ones(2, 3)
    aten._assert_scalar(1, "")
    with pytest.raises(RuntimeError, match="why"):
        aten._assert_scalar.default(False, "why")
    aten._assert_tensor_metadata(t, [2, 3], [3, 1], torch.float32, device=torch.device("cpu"))
    for wrong in ({"size": [2, 2]}, {"dtype": torch.int8}, {"layout": torch.sparse_coo}):
        with pytest.raises(RuntimeError, match="mismatch! Expected: .*, Got: "):
            aten._assert_tensor_metadata.default(t, **wrong)
    with pytest.raises(RuntimeError, match="empty"):
        aten._assert_async.msg(torch.zeros(1), "empty")
    assert aten._functional_assert_scalar(1, "", t) is not t
    assert str(aten._assert_scalar.default._schema).endswith("(Scalar self, str assert_msg) -> ()")

    for name in ("", "_for_size"):
        constrain = getattr(torch, f"sym_constrain_range{name}")
        constrain(5, min=2, max=7)
        constrain(0)
        with pytest.raises(RuntimeError, match=r"Invalid value range for 5 between \[6, 9"):
            constrain(5, min=6)
        functional = getattr(aten, f"_functional_sym_constrain_range{name}")
        assert functional(5, 2, 7, t).equal(t)
        with pytest.raises(RuntimeError, match="Invalid value range for 1"):
            functional(1, 2, 7, t)
    torch.sym_constrain_range(-1)
    with pytest.raises(RuntimeError, match="between \\[0, "):
        torch.sym_constrain_range_for_size(-1)
    with pytest.raises(RuntimeError, match="Got min=3 max=2"):
        torch.sym_constrain_range(5, min=3, max=2)
    with pytest.raises(RuntimeError, match="must be greater than 2. got: 2"):
        torch.sym_constrain_range_for_size(1, max=2)

    def checked(x):
        aten._assert_async.msg(x, "zero")
        return x + 1

    graph = torch.fx.symbolic_trace(checked)
    graph.graph.eliminate_dead_code()
    with pytest.raises(RuntimeError, match="zero"):
        graph(torch.zeros(1))


def test_small_names():
    from rushlight._utils import _import_dotted_name, _reorder_tensors_as, _take_tensors
    from rushlight.nn.modules.module import _IncompatibleKeys

    layer = torch.nn.Linear(2, 2)
    assert isinstance(layer.load_state_dict(layer.state_dict()), _IncompatibleKeys)
    a, b = torch.tensor([6.0]), torch.tensor([3.0])
    assert a.__div__(b).item() == 2 and a.__rdiv__(3).item() == 0.5
    assert a.__idiv__(b) is a and a.item() == 2
    assert torch.autograd._is_checkpoint_valid()
    torch._assert_async(torch.tensor(1.0))
    with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value"):
        torch._assert_async(torch.tensor(0.0))
    parsed = torch._C._nn._parse_to(torch.float64, non_blocking=True)
    assert parsed == (None, torch.float64, True, None)
    assert torch._C._get_accelerator().type in ("cpu", "cuda")
    assert torch._C._get_default_device() == "cpu"
    assert torch._C._get_privateuse1_backend_name() == "privateuseone"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = torch._C.nothing
    tensors = [torch.ones(3), torch.ones(4, dtype=torch.int32), torch.ones(3), torch.ones(2)]
    rows = list(_take_tensors(tensors, 30))
    assert [[t.numel() for t in row] for row in rows] == [[3, 3], [2], [4]]
    flat = [t for row in rows for t in row]
    assert all(x is y for x, y in zip(_reorder_tensors_as(flat, tensors), tensors, strict=True))
    assert _import_dotted_name("rushlight.nn.Linear") is torch.nn.Linear


def test_recorders_of_graphs_refuse():
    assert torch.onnx.is_in_onnx_export() is False
    assert torch.onnx.TrainingMode.EVAL is not torch.onnx.TrainingMode.TRAINING
    assert torch.cuda.is_current_stream_capturing() is False
    for name, args in [
        ("CUDAGraph", ()),
        ("graph", (None,)),
        ("graph_pool_handle", ()),
        ("make_graphed_callables", (len, ())),
    ]:
        with pytest.raises(RuntimeError, match=f"no torch.cuda.{name} yet"):
            getattr(torch.cuda, name)(*args)


def test_a_file_as_memory(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(16)))
    private = torch.UntypedStorage.from_file(path, False, 16)
    private[0] = 9
    assert private.tolist() == [9, *range(1, 16)] and path.read_bytes()[0] == 0
    assert torch.UntypedStorage.from_file(str(path)).nbytes() == 16
    shared = torch.UntypedStorage.from_file(str(path), shared=True, nbytes=20)
    shared[0] = 7
    assert path.read_bytes() == bytes([7, *range(1, 16), 0, 0, 0, 0])
    new = torch.UntypedStorage.from_file(str(tmp_path / "new"), shared=True, nbytes=4)
    new.fill_(1)
    assert (tmp_path / "new").read_bytes() == bytes([1] * 4)
    (tmp_path / "empty").write_bytes(b"")
    assert torch.UntypedStorage.from_file(tmp_path / "empty").nbytes() == 0
    assert not private.resizable()
    for wrong, message in [
        (lambda: torch.UntypedStorage.from_file(str(tmp_path / "none")), "unable to open file"),
        (lambda: torch.UntypedStorage.from_file(str(path), False, 99), "too few bytes"),
        (lambda: torch.UntypedStorage.from_file(str(path), False, -1), "must not be negative"),
        (lambda: torch.UntypedStorage.from_file(str(tmp_path)), "unable to mmap"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            wrong()


def test_parts_of_a_storage_lie_in_its_memory():
    whole = torch.UntypedStorage(8).fill_(0)
    part = whole[2:6]
    part.fill_(5)
    assert whole.tolist() == [0, 0, 5, 5, 5, 5, 0, 0] and whole[-3] == 5 and whole[2] == 5
    assert part.data_ptr() == whole.data_ptr() + 2 and whole[6:2].nbytes() == 0
    address = part.data_ptr()
    with pytest.raises(RuntimeError, match="not resizable|resiz"):
        whole.resize_(1000)
    del whole
    assert part.tolist() == [5] * 4 and part.data_ptr() == address
    assert torch.asarray(part[1:3], dtype=torch.uint8).tolist() == [5, 5]
    with pytest.raises(RuntimeError, match="only a step of 1 is supported"):
        _ = part[::2]
    with pytest.raises(IndexError):
        _ = part[4]
    with pytest.raises(TypeError):
        _ = part["a"]
    with pytest.raises(RuntimeError, match="without memory"):
        torch.empty(3, device="meta").untyped_storage()[0:2]
