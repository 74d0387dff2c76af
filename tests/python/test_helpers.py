"""What stands around the framework: comparison, trees, profiles, timers, compile, processes."""

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import _C
from rushlight.testing import assert_close, make_tensor
from rushlight.utils import _pytree, benchmark

# ---- comparison ----


def test_assert_close_says_where():
    a = torch.arange(12.0).reshape(3, 4)
    b = a.clone()
    b[1, 2] += 0.5
    with pytest.raises(AssertionError, match=r"Mismatched elements: 1 / 12 \(8.3%\)") as error:
        assert_close(b, a)
    assert "Greatest absolute difference: 0.5 at index (1, 2)" in str(error.value)
    with pytest.raises(AssertionError, match=r"item \['x'\]\[1\]"):
        assert_close({"x": [a, b]}, {"x": [a, a]})
    assert_close(b, a, rtol=0, atol=0.5)
    assert_close([1, 2.0, None, True], [1, 2.0, None, True])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_assert_close_knows_dtypes(dtype):
    a = torch.ones(4, dtype=dtype)
    step = torch.finfo(dtype).eps
    assert_close(a, a + step)
    with pytest.raises(AssertionError):
        assert_close(a, a * 1.1)


def test_make_tensor():
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.float32, torch.complex64):
        t = make_tensor(5, 4, dtype=dtype, device="cpu")
        assert t.shape == (5, 4) and t.dtype is dtype
    t = make_tensor((4, 6), dtype=torch.float64, low=2, high=3, noncontiguous=True)
    assert not t.is_contiguous() and bool(((t >= 2) & (t < 3)).all())
    with pytest.raises(ValueError, match="low < high"):
        make_tensor(3, dtype=torch.int64, low=3, high=2)


# ---- trees ----


def test_sizes_are_trees():
    leaves, spec = _pytree.tree_flatten([torch.Size([2, 3]), 4])
    assert leaves == [2, 3, 4] and spec.unflatten(leaves) == [(2, 3), 4]
    assert type(_pytree.tree_map(str, torch.Size([2]))) is tuple


def test_trees_of_registered_classes():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    _pytree.register_pytree_node(
        Pair, lambda p: ([p.a, p.b], None), lambda values, context: Pair(*values)
    )
    tree = {"p": Pair(1, [2, 3])}
    leaves, spec = _pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3] and spec.unflatten(leaves)["p"].b == [2, 3]
    assert _pytree.tree_map(lambda x: x + 1, tree)["p"].a == 2
    with pytest.raises(ValueError, match="already registered"):
        _pytree.register_pytree_node(Pair, None, None)
    _pytree.SUPPORTED_NODES.pop(Pair)
    assert _pytree.tree_leaves(tree)[0] is tree["p"]
    assert _pytree.arg_tree_leaves(1, [2, (3,)], x={"a": 4}) == [1, 2, 3, 4]


# ---- profiles ----


def test_profile_events_nest(tmp_path):
    x = torch.ones(64, 64, requires_grad=True)
    with torch.profiler.profile(record_shapes=True, profile_memory=True) as p:
        with torch.profiler.record_function("forward"):
            y = (x @ x).relu().sum()
        y.backward()
    events = p.events()
    forward = next(e for e in events if e.name == "forward")
    mm = next(e for e in events if e.name == "aten::mm")
    assert mm.cpu_parent is forward and mm.input_shapes == [[64, 64], [64, 64]]
    assert mm.cpu_memory_usage == 64 * 64 * 4 and 0 < mm.cpu_time_total < forward.cpu_time_total
    assert forward.self_cpu_time_total < forward.cpu_time_total
    assert p.count("mm") == 3  # two of them in backward
    averages = p.key_averages(group_by_input_shape=True)
    table = averages.table(sort_by="cpu_time_total", row_limit=-1)
    assert "aten::mm" in table and "[[64, 64], [64, 64]]" in table and "# of Calls" in table
    assert (
        len(averages.table(row_limit=3).splitlines()) == len(table.splitlines()) - len(averages) + 3
    )
    p.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    import gzip

    with gzip.open(tmp_path / "trace.json.gz") as file:
        names = {e["name"] for e in json.load(file)["traceEvents"]}
    assert {"forward", "aten::mm"} <= names


def test_profile_schedule():
    done = []
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    with torch.profiler.profile(schedule=plan, on_trace_ready=lambda p: done.append(p)) as p:
        for _ in range(10):
            torch.ones(2).exp()
            p.step()
    assert len(done) == 2 and p.count("exp") == 2 and p.step_num == 10
    names = [e.trace_name for e in p.events() if e.is_range]
    assert names == ["ProfilerStep#6", "ProfilerStep#7"]
    action = torch.profiler.ProfilerAction
    assert [plan(i) for i in range(4)] == [
        action.NONE,
        action.WARMUP,
        action.RECORD,
        action.RECORD_AND_SAVE,
    ]


def test_old_profiler():
    with torch.autograd.profiler.profile() as p:
        torch.ones(2).exp()
        thread = threading.Thread(target=torch.ones(2).sin)
        thread.start()
        thread.join()
    assert p.key_averages().count("aten::exp") == 1 and p.key_averages().count("sin") == 0
    assert "aten::exp" in p.table() and p.total_average().count == len(p.function_events)
    with pytest.raises(RuntimeError):
        torch.autograd.profiler.profile().table()


def test_timer():
    x = torch.ones(8)
    m = benchmark.Timer("x + 1", globals={"x": x}, label="add", description="one").timeit(20)
    assert m.median > 0 and m.number_per_run == 20 and "add" in repr(m)
    blocks = benchmark.Timer("x + 1", globals={"x": x}, label="add", description="two")
    table = str(benchmark.Compare([m, blocks.blocked_autorange(min_run_time=0.01)]))
    assert "one" in table and "two" in table and "threads" in table
    with pytest.raises(NotImplementedError):
        benchmark.Timer("x", language="c++")


# ---- compile ----


def test_compiled_modules_share_state():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    compiled = torch.compile(model)
    assert isinstance(compiled, torch._dynamo.OptimizedModule)
    assert next(iter(compiled.state_dict())) == "_orig_mod.0.weight" and len(compiled) == 2
    compiled.eval()
    assert not model.training
    x = torch.ones(1, 2)
    assert torch.equal(compiled(x), model(x))
    compiled.tag = 3
    assert model.tag == 3 and compiled.tag == 3
    plain = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
    assert plain(x).tolist() == [[2, 2]]
    assert torch.compile(model, disable=True) is model


# ---- settings and namespaces ----


def test_settings_are_kept():
    assert not torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    assert torch.get_deterministic_debug_mode() == 2
    torch.use_deterministic_algorithms(False)
    with torch.backends.mkldnn.flags(enabled=False):
        assert not torch.backends.mkldnn.enabled
    assert torch.backends.mkldnn.enabled


def test_import_starts_no_thread_and_loads_no_lapack():
    program = """
import os
import rushlight as torch
def loaded():
    return "openblas" in open("/proc/self/maps").read()
assert len(os.listdir("/proc/self/task")) == 1 and not loaded()
processors = os.sched_getaffinity(0)
torch.linalg.eigvalsh(torch.eye(30))
assert loaded() == (torch._C._libraries()["OpenBLAS"] is not None)
assert len(os.listdir("/proc/self/task")) == 1
assert os.sched_getaffinity(0) == processors
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_is_said_of_the_build_and_the_machine_is_so():
    folder = Path(torch.__file__).parent / "lib"
    assert torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    libraries = torch._C._libraries()  # asks OpenBLAS, and so loads it
    loaded = Path("/proc/self/maps").read_text()
    assert torch.backends.mkldnn.is_available() == ("libdnnl" in loaded)
    assert (libraries["OpenBLAS"] is not None) == ("openblas" in loaded)
    assert (torch.version.cuda is not None) == (folder / "librushlight_cuda.so").exists()
    shown = torch.__config__.show()
    assert "CPU capability" in shown and f"oneDNN: {libraries['oneDNN'] or 'none'}\n" in shown
    assert f"CUDA: {torch.version.cuda or 'none'}\n" in shown
    assert f"get_num_threads() : {torch.get_num_threads()}\n" in torch.__config__.parallel_info()
    assert shown in torch.utils.collect_env.get_pretty_env_info()
    assert not torch.backends.cudnn.is_available() and torch.backends.cudnn.version() is None
    assert not torch.backends.cudnn.is_acceptable(torch.ones(1))
    assert not torch.backends.mps.is_available() and not torch.xpu.is_available()
    assert torch.compiler.list_backends() == torch._dynamo.list_backends() == []


def test_accelerators():
    built = torch.backends.cuda.is_built()
    there = torch.cuda.is_available()
    expected = torch.device("cuda")
    assert torch.accelerator.current_accelerator() == (expected if built else None)
    assert torch.accelerator.current_accelerator(True) == (expected if there else None)
    assert torch.accelerator.device_count() == torch.cuda.device_count()
    assert (torch.cuda.get_arch_list() != []) == there


def test_the_accelerator_is_that_of_the_build(monkeypatch):
    """Another build and machine, by what tells them apart."""
    monkeypatch.setattr(_C, "_accelerator", lambda: torch.device("cuda"))
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert torch.accelerator.current_accelerator(check_available=True) == torch.device("cuda")


def test_modules_compile_in_place():
    model = torch.nn.Linear(2, 2)
    assert model.compile(backend="eager", fullgraph=True) is None
    assert model._compiled_call_impl is not None and list(model.state_dict()) == ["weight", "bias"]
    x = torch.ones(1, 2)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert torch.equal(twin(x), model(x)) and twin.weight is not model.weight
    with pytest.raises(RuntimeError, match="mode or options"):
        model.compile(mode="default", options={})


def test_fork_rng():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    with torch.random.fork_rng():
        torch.manual_seed(5)
        torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(ZeroDivisionError), torch.random.fork_rng(device_type="cpu"):
        torch.rand(3)
        1 / 0  # noqa: B018
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng(enabled=False):
        torch.rand(3)
    assert not torch.equal(torch.get_rng_state(), before)
    with pytest.raises(RuntimeError, match="no generators"):
        torch.random.fork_rng(devices=[0], device_type="meta").__enter__()


def test_fork_rng_keeps_the_generators_of_the_devices_that_are_named(monkeypatch):
    numbers = {f"cuda:{i}": torch.Generator().manual_seed(i) for i in range(3)}
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch._C, "_device_generator", numbers.get)

    def drawn(**options):
        before = [g.get_state() for g in numbers.values()]
        with torch.random.fork_rng(**options):
            for generator in numbers.values():
                torch.rand(2, generator=generator)
        after = [g.get_state() for g in numbers.values()]
        return [not torch.equal(a, b) for a, b in zip(before, after, strict=True)]

    assert drawn(devices=[0, "cuda:2"]) == [False, True, False]
    assert drawn(devices=[torch.device("cuda", 1)], device_type="cuda") == [True, False, True]
    assert drawn(devices=[]) == [True] * 3
    with pytest.warns(UserWarning, match="all 3 GPUs"):
        assert drawn() == [False] * 3


def test_the_interface_hash_is_that_of_the_headers(tmp_path):
    """Libraries of devices are compared by it: another kernel or another layout is another hash."""
    root = Path(__file__).parent.parent.parent
    script = root / "cmake" / "interface_hash.py"
    header, out = tmp_path / "kernels.h", tmp_path / "out" / "hash.h"

    def hash_of(text):
        header.write_text(text)
        subprocess.run([sys.executable, script, out, header], check=True)
        return out.read_text().split('"')[1]

    first = hash_of("struct Table { void (*add)(TensorIterator& it); };")
    assert hash_of("struct Table { void (*add)(const Tensor& out); };") != first
    assert hash_of("struct Table { void (*add)(TensorIterator& it); };") == first


# ---- torch._utils ----


def test_helpers_of_old():
    a, b = torch.arange(6.0).view(2, 3), torch.ones(2)
    flat = torch._utils._flatten_dense_tensors([a, b])
    assert flat.tolist() == [0, 1, 2, 3, 4, 5, 1, 1]
    back = torch._utils._unflatten_dense_tensors(flat, [a, b])
    assert torch.equal(back[0], a) and torch.equal(back[1], b)
    assert torch._utils._element_size(torch.complex64) == 8
    assert torch._utils._get_device_index("cuda:2") == 2
    assert torch._utils._get_device_index(torch.device("cpu"), allow_cpu=True) == -1
    for wrong in ("cpu", "cuda"):
        with pytest.raises(ValueError, match="Expected a"):
            torch._utils._get_device_index(wrong)
    typed = torch.TypedStorage._from_untyped(a.untyped_storage(), a.dtype)
    assert torch._utils._rebuild_tensor(typed, 1, (2, 2), (3, 1)).tolist() == [[1, 2], [4, 5]]
    rebuilt = torch._utils._rebuild_tensor_v2(typed, 0, (2,), (1,), True, {})
    assert rebuilt.requires_grad and rebuilt.data_ptr() == a.data_ptr()


def test_swap_tensors():
    a = torch.ones(2, requires_grad=True)
    b = torch.nn.Parameter(torch.zeros(3))
    a.tag = 1
    torch.utils.swap_tensors(a, b)
    assert a.tolist() == [0, 0, 0] and b.tolist() == [1, 1] and b.tag == 1
    assert isinstance(a, torch.nn.Parameter) and type(b) is torch.Tensor
    (b * 2).sum().backward()
    assert b.grad.tolist() == [2, 2] and a.grad is None


def test_hub(tmp_path):
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['os']\ndef model(n, *, scale=1):\n    'Makes one.'\n    return n * scale\n"
    )
    assert torch.hub.load(str(tmp_path), "model", 3, scale=2, source="local") == 6
    with pytest.raises(RuntimeError, match="Cannot find callable"):
        torch.hub.load(str(tmp_path), "other", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        torch.hub.load(str(tmp_path), "model", source="somewhere")
    torch.hub.set_dir(tmp_path / "hub")
    source = tmp_path / "weights.pt"
    torch.save({"w": torch.ones(2)}, source)
    loaded = torch.hub.load_state_dict_from_url(source.as_uri(), progress=False)
    assert loaded["w"].tolist() == [1, 1] and zipfile.is_zipfile(source)
    with pytest.raises(RuntimeError, match="invalid hash"):
        torch.hub.download_url_to_file(
            source.as_uri(), str(tmp_path / "copy"), hash_prefix="0" * 8, progress=False
        )
    assert not (tmp_path / "copy").exists()
    torch.hub.set_dir(torch.hub._get_torch_home())


def test_futures():
    from rushlight.futures import Future, collect_all, wait_all

    a, b = Future(), Future()
    both = collect_all([a, b]).then(lambda f: [x.value() for x in f.value()])
    thread = threading.Thread(target=a.set_result, args=(1,))
    thread.start()
    b.set_result(2)
    assert both.wait() == [1, 2] == wait_all([a, b])
    with pytest.raises(RuntimeError, match="once"):
        a.set_result(3)
    c = Future()
    c.set_exception(KeyError("x"))
    with pytest.raises(KeyError):
        c.wait()


# ---- processes ----


def _double(queue, answers):
    t = queue.get()
    t.mul_(2)  # seen by the sender
    answers.put((t.sum().item(), t.requires_grad, t.shape))
    queue.get()


def test_tensors_are_shared_between_processes():
    mp = torch.multiprocessing.get_context("spawn")
    queue, answers = mp.Queue(), mp.Queue()
    process = mp.Process(target=_double, args=(queue, answers))
    process.start()
    whole = torch.arange(6.0)
    t = whole.view(2, 3)[:, 1:]
    queue.put(t)
    total, requires_grad, shape = answers.get(timeout=60)
    assert t.is_shared() and not requires_grad and shape == (2, 2)
    assert total == t.sum().item() == 2 * (1 + 2 + 4 + 5)
    queue.put(None)
    process.join(60)
    assert process.exitcode == 0
    with pytest.raises(RuntimeError, match="Cowardly"):
        torch.multiprocessing.reductions.reduce_tensor(torch.ones(2, requires_grad=True) * 2)


def _work(i, kind):
    if i == 1 and kind == "raise":
        raise ValueError("from the worker")
    if i == 1 and kind == "exit":
        os._exit(7)
    if i == 1 and kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("kind", ["none", "raise", "exit", "kill"])
def test_spawn(kind):
    mp = torch.multiprocessing
    if kind == "none":
        mp.spawn(_work, args=(kind,), nprocs=2)
        return
    error = {
        "raise": (mp.ProcessRaisedException, "from the worker"),
        "exit": (mp.ProcessExitedException, "process 1 terminated with exit code 7"),
        "kill": (mp.ProcessExitedException, "terminated with signal SIGKILL"),
    }[kind]
    with pytest.raises(error[0], match=error[1]):
        mp.spawn(_work, args=(kind,), nprocs=2)


def _train(rank, folder, how):
    from rushlight import distributed as dist

    dist.init_process_group("gloo", f"file://{folder}/{how}", rank=rank, world_size=3)
    dist.barrier()
    if rank == 1:
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "late":
            dist.destroy_process_group()
            time.sleep(1)
        raise ValueError("what went wrong")
    try:
        dist.all_reduce(torch.ones(1))
    except RuntimeError as error:
        raise KeyError("no training") from error


@pytest.mark.skipif(
    not torch.distributed.is_gloo_available(),
    reason="built without Gloo",
)
@pytest.mark.parametrize("how", ["raise", "late", "kill"])
def test_spawn_raises_what_went_wrong(how, tmp_path):
    """Not that the others have lost the rank that failed, which they may notice first."""
    mp = torch.multiprocessing
    with pytest.raises((mp.ProcessRaisedException, mp.ProcessExitedException)) as caught:
        mp.spawn(_train, args=(str(tmp_path), how), nprocs=3)
    assert caught.value.error_index == 1
    said = "signal SIGKILL" if how == "kill" else "ValueError: what went wrong"
    assert said in str(caught.value)


# ---- ops of one's own ----


def test_custom_ops():
    @torch.library.custom_op("tests::scaled", mutates_args=())
    def scaled(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        return x * factor

    x = torch.ones(2, requires_grad=True)
    y = torch.ops.tests.scaled(x, factor=3.0)
    assert y.tolist() == [3, 3] and scaled(torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="no autograd formula"):
        y.sum().backward()
    with pytest.raises(NotImplementedError, match="fake"):
        scaled(torch.ones(2, device="meta"))
    scaled.register_fake(lambda x, factor=2.0: torch.empty_like(x))
    assert torch.ops.tests.scaled(torch.ones(2, 3, device="meta")).shape == (2, 3)

    def setup(ctx, inputs, output):
        ctx.factor = inputs[1]

    scaled.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=setup)
    torch.ops.tests.scaled.default(x, 5.0).sum().backward()
    assert x.grad.tolist() == [5, 5]
    assert scaled._schema == "(Tensor x, float factor=2.0) -> Tensor"
    with pytest.raises(AttributeError):
        _ = torch.ops.tests.other
    with pytest.raises(ValueError, match="annotation"):
        torch.library.infer_schema(lambda x: x, mutates_args=())


def test_libraries():
    lib = torch.library.Library("tests2", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="no implementation"):
        torch.ops.tests2.twice(torch.ones(1))
    lib.impl("twice", lambda x: x * 2, "CPU")
    assert torch.ops.tests2.twice(torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="could not parse dispatch key: Nonsense"):
        lib.impl("twice", lambda x: x, "Nonsense")
    torch.library.impl("tests2::later", "cpu", lambda x: x * 3)  # it waits for its op
    with pytest.raises(AttributeError):
        torch.ops.tests2.later  # noqa: B018
    lib.define("later(Tensor x) -> Tensor")
    assert torch.ops.tests2.later(torch.ones(1)).item() == 3


def test_an_autograd_kernel_stands_above_the_others():
    lib = torch.library.Library("tests3", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    calls = []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch._C._AutoDispatchBelowAutograd():
                return torch.ops.tests3.twice(x)

        @staticmethod
        def backward(ctx, grad):
            calls.append("backward")
            return grad * 2

    lib.impl("twice", Twice.apply, "Autograd")
    with pytest.raises(NotImplementedError, match="no implementation"):
        torch.ops.tests3.twice(torch.ones(1))

    @torch.library.impl(lib, "twice", "CPU")
    def on_cpu(x):
        calls.append("cpu")
        return x * 2

    x = torch.ones(2, requires_grad=True)
    y = torch.ops.tests3.twice(x)
    assert y.tolist() == [2, 2] and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2, 2] and calls == ["cpu", "backward"]


def test_a_composite_has_the_gradients_of_what_it_calls():
    lib = torch.library.Library("tests4", "FRAGMENT")
    lib.define("cubed(Tensor x, float scale=1.0) -> Tensor")
    lib.impl("cubed", lambda x, scale=1.0: x**3 * scale, "CompositeImplicitAutograd")
    x = torch.tensor([2.0], requires_grad=True)
    torch.ops.tests4.cubed(x, scale=2.0).backward()
    assert x.grad.item() == 24
    assert torch.ops.tests4.cubed(torch.ones(2, device="meta")).is_meta
    lib.impl("cubed", lambda x, scale=1.0: x * 0, "CPU")  # a device's own goes first
    assert torch.ops.tests4.cubed(x.detach()).item() == 0
    with pytest.raises(RuntimeError, match="no autograd formula"):
        torch.ops.tests4.cubed(x).backward()

    @torch.library.define(lib, "halved(Tensor x) -> Tensor")
    def halved(x):
        return x / 2

    assert torch.ops.tests4.halved(x).grad_fn is not None


# ---- TensorBoard ----


def _fields(data):
    """The fields of a message: (number, value), values of length-delimited ones as bytes."""
    import struct

    def varint(i):
        shift = value = 0
        while True:
            value |= (data[i] & 127) << shift
            shift += 7
            i += 1
            if data[i - 1] < 128:
                return value, i

    i, out = 0, []
    while i < len(data):
        key, i = varint(i)
        if key & 7 == 0:
            value, i = varint(i)
        elif key & 7 == 2:
            n, i = varint(i)
            value, i = data[i : i + n], i + n
        else:
            size, form = (8, "<d") if key & 7 == 1 else (4, "<f")
            value, i = struct.unpack(form, data[i : i + size])[0], i + size
        out.append((key >> 3, value))
    return out


def _records(path):
    import struct

    from rushlight.utils.tensorboard._events import _masked_crc

    data = path.read_bytes()
    i = 0
    while i < len(data):
        (n,) = struct.unpack("<Q", data[i : i + 8])
        (crc,) = struct.unpack("<I", data[i + 8 : i + 12])
        assert crc == _masked_crc(data[i : i + 8])
        event = data[i + 12 : i + 12 + n]
        assert struct.unpack("<I", data[i + 12 + n : i + 16 + n])[0] == _masked_crc(event)
        i += 16 + n
        yield dict(_fields(event))


def test_summary_writer(tmp_path):
    from rushlight.utils.tensorboard import SummaryWriter, _events

    # The check value of CRC-32C for "123456789" is 0xE3069283.
    crc = 0xE3069283
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert _events._masked_crc(b"123456789") == masked
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", torch.tensor(0.5), 300)
        writer.add_histogram("weights", torch.tensor([-1.0, 0.0, 2.0, 2.0]), 1)
        writer.add_image("picture", torch.rand(3, 4, 5))
        writer.add_text("note", "**hello**")
        writer.add_scalars("both", {"a": 1, "b": 2}, 7)
        writer.add_hparams({"lr": 0.1, "name": "x", "on": True}, {"accuracy": 0.9}, run_name="h")
        with pytest.raises(AssertionError):
            writer.add_image("picture", torch.rand(4, 5))
    (file,) = (p for p in tmp_path.iterdir() if p.is_file())
    events = list(_records(file))
    assert events[0][3] == b"brain.Event:2" and len(events) == 5
    loss = dict(_fields(dict(_fields(events[1][5]))[1]))
    assert events[1][2] == 300 and loss == {1: b"loss", 2: 0.5}
    import struct

    spread = dict(_fields(dict(_fields(dict(_fields(events[2][5]))[1]))[5]))
    assert (spread[1], spread[2], spread[3], spread[4], spread[5]) == (-1, 2, 4, 3, 9)
    limits = struct.unpack(f"<{len(spread[6]) // 8}d", spread[6])
    counts = struct.unpack(f"<{len(spread[7]) // 8}d", spread[7])
    assert sum(counts) == 4 and len(limits) == len(counts) and list(limits) == sorted(limits)
    picture = dict(_fields(dict(_fields(dict(_fields(events[3][5]))[1]))[4]))
    import io

    from PIL import Image

    assert Image.open(io.BytesIO(picture[4])).size == (5, 4)
    assert {p.name for p in tmp_path.iterdir() if p.is_dir()} == {"both_a", "both_b", "h"}


# ---- small modules that packages import ----


def test_an_ordered_set_keeps_the_order():
    from rushlight.utils._ordered_set import OrderedSet

    s = OrderedSet([3, 1, 2, 1])
    assert list(s) == [3, 1, 2] and s == {1, 2, 3} and s[1] == 1
    assert (
        list(s | [5, 3]) == [3, 1, 2, 5] and list(s - {1}) == [3, 2] and list(s & [2, 3]) == [3, 2]
    )
    assert list(s ^ [1, 7]) == [3, 2, 7] and s.issuperset([1]) and not s.issubset({1})
    s.difference_update([3])
    assert s.pop() == 2 and list(s) == [1]


def test_a_baton_is_held_by_one(tmp_path):
    from rushlight.utils.file_baton import FileBaton

    one, other = (FileBaton(tmp_path / "lock") for _ in range(2))
    assert one.try_acquire() and not other.try_acquire()
    one.release()
    other.wait()
    assert other.try_acquire()
    other.release()


def test_stacks_as_text():
    from rushlight.utils import _traceback

    taken = _traceback.CapturedTraceback.extract()
    assert "test_stacks_as_text" in taken.format()[-1]
    assert taken.summary()[-1].name == "test_stacks_as_text"
    try:
        raise ValueError
    except ValueError as error:
        assert "in test_stacks_as_text" in _traceback.format_traceback_short(error.__traceback__)


def test_devices_of_pieces_of_programs():
    from rushlight.utils._device import DeviceContext, set_device

    with DeviceContext("meta"):
        assert torch.ones(2).is_meta
    assert set_device("meta")(torch.zeros)(2).is_meta and not torch.ones(2).is_meta


def test_fake_modes_are_found():
    from rushlight import _guards
    from rushlight._subclasses import FakeTensorMode

    assert _guards.detect_fake_mode([torch.ones(1)]) is None
    assert _guards.TracingContext.try_get() is None
    with FakeTensorMode() as mode:
        fake = torch.ones(2)
        assert _guards.active_fake_mode() is mode
    assert _guards.detect_fake_mode({"a": [fake]}) is mode and _guards.active_fake_mode() is None
    with FakeTensorMode() as other:
        second = other.from_tensor(torch.ones(1))
    with pytest.raises(AssertionError, match="fake mode"):
        _guards.detect_fake_mode([fake, second])


def test_constants_are_part_of_a_trees_structure():
    import dataclasses

    from rushlight.utils import _pytree

    @dataclasses.dataclass(frozen=True)
    class Size:
        n: int

    _pytree.register_constant(Size)
    leaves, spec = _pytree.tree_flatten([Size(3), 1])
    assert leaves == [1] and _pytree.tree_unflatten([2], spec) == [Size(3), 2]
    with pytest.raises(TypeError, match="__eq__"):
        _pytree.register_constant(type("Plain", (), {}))


def test_old_places_of_optimisers_and_queues():
    from rushlight.multiprocessing import _atfork, pool, queue
    from rushlight.optim import _adafactor, _multi_tensor, _muon
    from rushlight.utils._triton import has_triton

    weight = torch.nn.Parameter(torch.ones(1))
    assert isinstance(_multi_tensor.RMSprop([weight]), torch.optim.RMSprop)
    assert _adafactor.Adafactor is torch.optim.Adafactor and _muon.Muon is torch.optim.Muon
    assert queue.SimpleQueue and pool.Pool and callable(_atfork.register_after_fork)
    assert not has_triton() and not torch.backends.xnnpack.enabled


def test_classes_of_tests_with_other_settings():
    from rushlight._dynamo import testing
    from rushlight._subclasses import settings as config

    class Cases:
        kept = 3

        def test_setting(self):
            return config.fake_tensor_propagate_real_tensors

        def test_fails(self):
            return None

    Cases.test_fails._fails_here = True
    patch = (config, "fake_tensor_propagate_real_tensors", "other")
    made = testing.make_test_cls_with_patches(
        Cases, "Other", "_other", patch, xfail_prop="_fails_here"
    )
    assert made.__name__ == "OtherCases" and made.kept == 3 and not hasattr(made, "test_setting")
    assert made().test_setting_other() == "other" and Cases().test_setting() is False
    assert made.test_fails_other.__unittest_expecting_failure__


def test_random_tensors_by_strides():
    from rushlight._dynamo.testing import rand_strided

    x = rand_strided((2, 3), (4, 1), extra_size=2)
    assert x.shape == (2, 3) and x.stride() == (4, 1) and x.std() > 0
    assert x.untyped_storage().nbytes() == 9 * 4
    assert rand_strided((2,), (1,), torch.int64).tolist() == [0, 0]
    assert rand_strided((2,), (1,), torch.float8_e5m2).dtype == torch.float8_e5m2
