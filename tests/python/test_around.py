"""What stands beside the tensors: samplers, settings, other devices, overrides, averages."""

import subprocess
import sys
import types

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.testing import assert_close
from rushlight.utils import benchmark
from rushlight.utils.data import DataLoader, IterableDataset, Sampler, WeightedRandomSampler

# ---- data ----


class Backwards(Sampler):
    def __init__(self, data):
        self.data = data

    def __iter__(self):
        return iter(range(len(self.data) - 1, -1, -1))

    def __len__(self):
        return len(self.data)


def test_a_sampler_of_ones_own():
    data = list(range(5))
    loader = DataLoader(data, sampler=Backwards(data), batch_size=2)
    assert [batch.tolist() for batch in loader] == [[4, 3], [2, 1], [0]] and len(loader) == 3


def test_weighted_samples():
    generator = torch.Generator().manual_seed(0)
    drawn = list(WeightedRandomSampler([0.0, 1.0, 3.0], 400, generator=generator))
    assert drawn.count(0) == 0 and 250 < drawn.count(2) < 350
    once = list(WeightedRandomSampler([1.0, 1.0, 1.0], 3, replacement=False))
    assert sorted(once) == [0, 1, 2]
    with pytest.raises(ValueError, match="num_samples"):
        WeightedRandomSampler([1.0], 0)


class Shares(IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        yield "alone" if info is None else f"{info.id} of {info.num_workers}"


def test_workers_know_their_share():
    assert torch.utils.data.get_worker_info() is None
    assert list(DataLoader(Shares(), batch_size=None)) == ["alone"]
    loader = DataLoader(Shares(), batch_size=None, num_workers=2)
    assert list(loader) == ["0 of 2", "1 of 2"]


# ---- settings ----


def test_settings_can_be_read_again():
    before = torch.get_printoptions()["precision"]
    torch.set_printoptions(precision=2)
    assert torch.get_printoptions()["precision"] == 2
    torch.set_printoptions(precision=before)
    assert torch.get_default_device() == torch.device("cpu")
    torch.set_default_device("meta")
    try:
        assert torch.get_default_device() == torch.device("meta")
    finally:
        torch.set_default_device(None)
    torch.set_deterministic_debug_mode("warn")
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_deterministic_debug_mode(0)
    assert torch.get_float32_matmul_precision() == "highest"
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled()
    assert not torch.is_inference_mode_enabled()
    seed = torch.seed()
    assert torch.initial_seed() == seed
    torch.manual_seed(0)


def test_flags_of_libraries():
    backends = torch.backends
    with backends.cudnn.flags(enabled=False, benchmark=True):
        assert not backends.cudnn.enabled and backends.cudnn.benchmark
    assert backends.cudnn.enabled
    with backends.opt_einsum.flags(strategy="greedy"):
        assert backends.opt_einsum.strategy == "greedy"
    for name in ("flash", "mem_efficient", "math", "cudnn"):
        enable = getattr(backends.cuda, f"enable_{name}_sdp")
        enabled = getattr(backends.cuda, f"{name}_sdp_enabled")
        enable(False)
        assert not enabled()
        enable(True)
        assert enabled()
    backends.mha.set_fastpath_enabled(False)
    assert not backends.mha.get_fastpath_enabled()
    backends.mha.set_fastpath_enabled(True)
    assert not any(
        module.is_available()
        for module in (backends.mkl, backends.nnpack, backends.cusparselt, backends.opt_einsum)
    )
    assert backends.openmp.is_available() and not backends.flags_frozen()
    assert not backends.mps.is_built() and not backends.mps.is_macos_or_newer(14, 0)
    assert backends.opt_einsum.get_opt_einsum() is None


def test_programs_run_as_they_are_written():
    compiler = torch.compiler

    def function(x):
        return x + 1

    for mark in (compiler.disable, compiler.allow_in_graph, compiler.assume_constant_result):
        assert mark(function) is function
    assert compiler.disable(recursive=False)(function) is function
    assert compiler.substitute_in_graph(len)(function) is function
    with compiler.set_stance("force_eager"):
        assert function(1) == 2
    with pytest.raises(RuntimeError, match="invalid torch.compile stance"):
        compiler.set_stance("lying")
    with pytest.raises(RuntimeError, match="force_backend"):
        compiler.set_stance("force_eager", force_backend="eager")
    answers = compiler.is_compiling(), compiler.is_dynamo_compiling(), compiler.is_exporting()
    assert answers == (False, False, False)
    assert compiler.reset() is None and compiler.cudagraph_mark_step_begin() is None


def test_modes_and_backends_that_there_are_not_are_refused():
    def function(x):
        return x + 1

    with pytest.raises(RuntimeError, match="Unrecognized mode='nonsense'.*reduce-overhead"):
        torch.compile(function, mode="nonsense")
    with pytest.raises(RuntimeError, match="Unrecognized mode=3"):
        torch.nn.Linear(2, 2).compile(mode=3)
    with pytest.raises(torch._dynamo.exc.InvalidBackend, match="Invalid backend: .*'nonsense'"):
        torch.compile(backend="nonsense")
    assert issubclass(torch._dynamo.exc.InvalidBackend, RuntimeError)
    assert torch.compile(function, mode="max-autotune")(1) == 2
    assert torch.compile(function, mode="its own", backend="eager")(1) == 2
    assert torch.compile(function, backend=lambda graph, inputs: graph)(1) == 2


# ---- devices ----


def test_devices_that_are_not_there():
    assert torch.mps.device_count() == 0 and torch.mps.empty_cache() is None
    torch.mps.manual_seed(1)
    assert torch.get_device_module("cpu") is torch.cpu
    assert torch.cpu.device_count() == 1 and torch.cpu.is_available()
    assert torch.cpu.current_device() in (0, "cpu") and torch.cpu.synchronize() is None
    assert torch.cpu.max_memory_reserved() >= torch.cpu.memory_reserved() >= 0
    with torch.cuda.device_of(torch.ones(1)):
        pass


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_gpus_are_asked_for_in_vain():
    assert not torch.cuda.is_initialized() or torch.backends.cuda.is_built()
    assert torch.cuda.get_rng_state_all() == [] and not torch.cuda.is_bf16_supported()
    torch.cuda.set_rng_state_all([])
    for ask in (
        torch.cuda.get_device_capability,
        torch.cuda.default_stream,
        torch.cuda.get_rng_state,
        torch.cuda.initial_seed,
        lambda: torch.cuda.set_device(0),
        lambda: torch.cuda.can_device_access_peer(0, 1),
    ):
        with pytest.raises((AssertionError, RuntimeError), match="CUDA|NVIDIA"):
            ask()


def test_the_environment_is_told():
    command = [sys.executable, "-m", "rushlight.utils.collect_env"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"rushlight version: {torch.version.rushlight}" in told and "oneDNN" in told


# ---- autograd ----


def test_old_ways_of_autograd():
    x = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    assert type(x) is torch.Tensor and x.requires_grad
    from rushlight.utils.checkpoint import checkpoint_sequential, detach_variable

    (twin,) = detach_variable((x,))
    assert twin.requires_grad and twin.grad_fn is None and twin.data_ptr() == x.data_ptr()
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2), nn.Tanh())
    out = checkpoint_sequential(model, 2, x, use_reentrant=False)
    assert_close(out, model(x))
    (grad,) = torch.autograd.grad(out.sum(), x)
    assert_close(grad, torch.autograd.grad(model(x).sum(), x)[0])


def test_gradients_of_sparse_rows_are_wanted():
    p = nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        torch.optim.SparseAdam([p]).step()


def test_averages_of_parameters():
    swa = torch.optim.swa_utils
    ema = swa.get_ema_avg_fn(0.9)
    assert_close(ema(torch.tensor(1.0), torch.tensor(2.0), 5), torch.tensor(1.1))
    mean = swa.get_swa_avg_fn()
    assert_close(mean(torch.tensor(1.0), torch.tensor(4.0), torch.tensor(2)), torch.tensor(2.0))
    with pytest.raises(ValueError, match="decay"):
        swa.get_ema_avg_fn(1.5)


def test_ops_of_ones_own_by_name():
    torch.library.define("around::scaled", "(Tensor x, float by) -> Tensor")
    torch.library.register_kernel("around::scaled", "cpu", lambda x, by: x * by)
    torch.library.impl_abstract("around::scaled", lambda x, by: torch.empty_like(x))
    torch.library.register_autograd(
        "around::scaled",
        lambda ctx, grad: (grad * ctx.by, None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]),
    )
    x = torch.ones(2, requires_grad=True)
    torch.ops.around.scaled(x, 3.0).sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert torch.ops.around.scaled(torch.ones(2, device="meta"), 2.0).is_meta


# ---- overrides ----


class Own:
    """No tensor, but it answers as one."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, types


def own_function(a, b=None):
    if torch.overrides.has_torch_function((a, b)):
        return torch.overrides.handle_torch_function(own_function, (a, b), a, b=b)
    return "plain"


def test_functions_of_ones_own_can_be_overridden():
    o = torch.overrides
    assert own_function(1) == "plain" and own_function(Own())[0] is own_function
    assert o.has_torch_function_unary(Own()) and not o.has_torch_function_unary(torch.ones(1))
    assert o.has_torch_function_variadic(1, Own()) and not o.has_torch_function_variadic(1, 2)
    assert o.is_tensor_like(Own()) and not o.is_tensor_like(3)
    assert o.is_tensor_method_or_property(torch.Tensor.add)
    assert not o.is_tensor_method_or_property(torch.add)
    assert torch.add in o.get_overridable_functions()[torch]
    testing = o.get_testing_overrides()
    assert callable(testing[torch.add])

    @o.wrap_torch_function(lambda x: (x,))
    def wrapped(x):
        return "plain"

    assert wrapped(3) == "plain" and wrapped(Own())[1] == (Own,)
    with o.enable_reentrant_dispatch(), torch._C.DisableTorchFunctionSubclass():
        assert torch.ones(1).add(1).item() == 2


# ---- the rest ----


def test_helpers_of_measuring(tmp_path):
    assert benchmark.trim_sigfig(123456.0, 3) == 123000
    torch.testing.assert_allclose(torch.ones(2), torch.ones(2))
    with pytest.raises(AssertionError):
        torch.testing.assert_allclose(torch.ones(2), torch.zeros(2))
    numbers = []
    timed = benchmark.Timer("sum(range(10))").blocked_autorange(
        callback=lambda number, seconds: numbers.append(number), min_run_time=0.01
    )
    assert timed.number_per_run == numbers[0] and str(numbers[0]).strip("0") == "1"
    assert len(numbers) == len(timed.raw_times) and sum(timed.raw_times) >= 0.01
    assert timed.number_per_run * timed.median >= 1e-5
    slow = benchmark.Timer("time.sleep(0.02)", "import time").blocked_autorange(min_run_time=0.01)
    assert slow.number_per_run == 1
    handler = torch.profiler.tensorboard_trace_handler(str(tmp_path))
    with torch.profiler.profile(on_trace_ready=handler):
        torch.ones(2) + 1
    assert list(tmp_path.glob("*.json"))
    assert torch.multiprocessing.get_sharing_strategy() in (
        torch.multiprocessing.get_all_sharing_strategies()
    )


def test_help_of_a_hub_repository(tmp_path):
    """One that is in the cache, under the name of its branch."""
    folder = tmp_path / "owner_models_main"
    folder.mkdir()
    (folder / "hubconf.py").write_text("def model():\n    'Makes one.'\n    return 1\n")
    before = torch.hub.get_dir()
    torch.hub.set_dir(tmp_path)
    try:
        text = torch.hub.help("owner/models:main", "model", skip_validation=True, trust_repo=True)
    finally:
        torch.hub.set_dir(before)
    assert text == "Makes one."


def test_a_profiler_is_ended_from_outside():
    from rushlight import autograd

    profile = torch.profiler.profile()
    assert not autograd._profiler_enabled()
    profile.start()
    assert autograd._profiler_enabled()
    torch.ones(2).add(1)
    assert autograd._disable_profiler().count("aten::add") == 1
    assert not autograd._profiler_enabled()
    profile.stop()
    with pytest.warns(UserWarning, match="no active profiling session"):
        assert len(autograd._disable_profiler()) == 0


def test_questions_initialisations_and_properties_are_offered():
    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "seen"

    x = torch.ones(2, 2).as_subclass(Seen)
    testing = torch.overrides.get_testing_overrides()
    calls = {
        torch.is_complex: (),
        torch.is_floating_point: (),
        torch.numel: (),
        torch.nn.init.constant_: (1,),
        torch.nn.init.normal_: (),
        torch.nn.init.uniform_: (),
        torch.nn.init.kaiming_uniform_: (),
    }
    for function, rest in calls.items():
        assert function in testing and function(x, *rest) == "seen", function
    for name in dir(torch.Tensor):
        value = getattr(torch.Tensor, name)
        if isinstance(value, (types.GetSetDescriptorType, property)) and not name.startswith("_"):
            assert getattr(x, name) == "seen", name
