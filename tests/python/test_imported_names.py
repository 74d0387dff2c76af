"""Names that packages import from PyTorch beside what they call: they work, or refuse clearly."""

import collections
import copy
import inspect
import io
import math
import typing
import warnings

import pytest

import rushlight as torch
from rushlight import nn


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.export.draft_export(nn.Linear(1, 1), (torch.ones(1, 1),)),
        lambda: torch.onnx.register_custom_op_symbolic("mine::op", abs, 9),
        lambda: torch.onnx.ExportableModule(),
        lambda: torch.utils.mkldnn.to_mkldnn(nn.Linear(1, 1)),
        lambda: torch.distributed.rpc.rpc_sync("w", abs),
        lambda: torch.distributed.tensor.experimental.context_parallel(),
    ],
)
def test_what_is_not_there_says_so_when_it_is_called(call):

    with pytest.raises(RuntimeError, match=r"rushlight has no .* yet: "):
        call()


def test_others_can_ask_whether_something_is_of_a_kind_that_is_not_there():
    assert not isinstance(1, torch.export.ExportedProgram)
    assert not isinstance(nn.Linear(1, 1), torch.quantization.FakeQuantizeBase)
    assert not torch.distributed.rpc.is_available()
    from rushlight.distributed._tensor import experimental
    from rushlight.distributed.algorithms.model_averaging import averagers

    assert experimental.local_map is torch.distributed.tensor.experimental.local_map
    assert not issubclass(int, averagers.PeriodicModelAverager)


def test_marks_of_quantised_places_leave_a_network_as_it_is():
    inner = nn.Linear(2, 3).eval()
    wrapped = torch.ao.quantization.QuantWrapper(inner)
    x = torch.randn(4, 2)
    assert torch.equal(wrapped(x), inner(x)) and not wrapped.training
    assert torch.ao.quantization.QuantStub("q").qconfig == "q"
    assert torch.quantization.QuantStub is torch.ao.quantization.QuantStub


def test_a_module_can_be_asked_for_its_signature():
    layer = nn.Sequential(nn.Linear(2, 3))
    assert [p.kind.name for p in inspect.signature(layer).parameters.values()] == [
        "VAR_POSITIONAL",
        "VAR_KEYWORD",
    ]
    assert list(inspect.signature(nn.Linear).parameters)[:2] == ["in_features", "out_features"]
    assert list(inspect.signature(layer.forward).parameters) == ["input"]


def test_states_are_loaded_by_arguments_of_their_names():
    class Own(nn.Linear):
        def _load_from_state_dict(
            self,
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        ):
            super()._load_from_state_dict(
                state_dict=state_dict,
                prefix=prefix,
                local_metadata=local_metadata,
                strict=strict,
                missing_keys=missing_keys,
                unexpected_keys=unexpected_keys,
                error_msgs=error_msgs,
            )

        def _save_to_state_dict(self, destination, prefix, keep_vars):
            super()._save_to_state_dict(destination=destination, prefix=prefix, keep_vars=keep_vars)

    a, b = Own(2, 2), Own(2, 2)
    assert a.load_state_dict(b.state_dict()).missing_keys == []
    assert torch.equal(a.weight, b.weight)
    members = a._named_members(get_members_fn=lambda m: m._parameters.items())
    assert [name for name, _ in members] == ["weight", "bias"]


def test_records_of_a_file_can_be_read_one_by_one(tmp_path):
    path = str(tmp_path / "a.pt")
    torch.save({"x": torch.arange(4.0)}, path)
    reader = torch.PyTorchFileReader(path)
    assert reader.has_record("data.pkl") and not reader.has_record("other")
    assert reader.get_record_size("data/0") == 16
    x = reader.get_storage_from_record("data/0", 4, torch.float32)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert reader.get_storage_from_record("data/0", 16, torch.UntypedStorage).nbytes == 16
    with open(path, "rb") as file:
        file.seek(reader.get_record_offset("data/0"))
        assert file.read(16) == reader.get_record("data/0")
    assert reader.version() == 3 and reader.serialization_id()
    with pytest.raises(RuntimeError, match="failed locating file other"):
        reader.get_record("other")
    with pytest.raises(RuntimeError, match="too few for 5 elements"):
        reader.get_storage_from_record("data/0", 5, torch.float32)
    with pytest.raises(RuntimeError, match="failed reading zip archive"):
        torch.PyTorchFileReader(io.BytesIO(b"text"))


def test_files_can_be_written_record_by_record(tmp_path):
    path = str(tmp_path / "made.pt")
    torch.save({"x": torch.ones(2)}, str(tmp_path / "a.pt"))
    source = torch.PyTorchFileReader(str(tmp_path / "a.pt"))
    writer = torch.PyTorchFileWriter(path)
    for name in source.get_all_records():
        data = source.get_record(name)
        writer.write_record(name, data, len(data))
    storage = torch.tensor([1, 2, 3], dtype=torch.uint8).untyped_storage()
    writer.write_record("more", storage, 2)
    writer.write_end_of_file()
    assert torch.PyTorchFileReader(path).get_record("more") == b"\1\2"
    assert writer.archive_name() == "made"
    assert torch.equal(torch.load(path)["x"], torch.ones(2))


def test_batches_are_cut_for_devices_and_joined():
    from rushlight.nn.parallel.scatter_gather import gather, scatter, scatter_kwargs

    Pair = collections.namedtuple("Pair", "a b")
    x = torch.arange(6).reshape(3, 2)
    shares = scatter({"x": x, "n": 5, "p": Pair(x, [x])}, ["cpu", "cpu"])
    assert [share["x"].tolist() for share in shares] == [[[0, 1], [2, 3]], [[4, 5]]]
    assert shares[1]["n"] == 5 and type(shares[0]["p"]) is Pair
    assert torch.equal(gather([share["x"] for share in shares], "cpu"), x)
    assert torch.equal(gather([share["p"] for share in shares], "cpu").b[0], x)
    assert gather([torch.tensor(1.0), torch.tensor(2.0)], "cpu").tolist() == [1.0, 2.0]
    arguments, named = scatter_kwargs((x,), {}, ["cpu", "cpu"])
    assert len(arguments) == len(named) == 2 and named == ({}, {})
    assert scatter((), ["cpu"]) == [()] and gather([None, None], "cpu") is None
    with pytest.raises(ValueError, match="same number of keys"):
        gather([{"a": x}, {}], "cpu")


def test_ops_that_others_name():
    a, b, c = torch.ones(2, 2), torch.randn(2, 3), torch.randn(3, 2)
    found = torch.ops.aten._sparse_addmm.default(a, b, c, beta=2, alpha=3)
    assert torch.allclose(found, 2 * a + 3 * (b @ c))
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="no accelerator|none is available"):
            torch.ops.aten._pin_memory(a)
    with pytest.raises(AttributeError, match="'aten' object has no attribute '_nothing_like_it'"):
        _ = torch.ops.aten._nothing_like_it


def test_divergences_of_classes_of_others():
    from rushlight.distributions import kl

    class Theirs:
        pass

    @kl.register_kl(Theirs, Theirs)
    def zero(p, q):
        return 0

    try:
        assert torch.distributions.kl_divergence(Theirs(), Theirs()) == 0
    finally:
        del kl._KL_REGISTRY[Theirs, Theirs]
        kl._KL_MEMOIZE.clear()
    with pytest.raises(TypeError):
        kl.register_kl(Theirs(), Theirs)


def test_small_names():
    from rushlight._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
    from rushlight._subclasses.fake_tensor import FakeTensorMode, is_fake
    from rushlight._tensor_str import _tensor_str
    from rushlight.nn.modules.module import _EXTRA_STATE_KEY_SUFFIX, _addindent
    from rushlight.utils import _pytree
    from rushlight.utils.data._utils.collate import np_str_obj_array_pattern
    from rushlight.utils.data.dataloader import _collate_fn_t, _worker_init_fn_t

    assert _EXTRA_STATE_KEY_SUFFIX == "_extra_state"
    with FakeTensorMode():
        assert is_fake(torch.ones(2))
    assert not is_fake(torch.ones(2)) and not is_fake(3)
    assert _addindent("a\nb", 2) == "a\n  b"
    assert _tensor_str(torch.ones(2, 2), 0) == "[[1., 1.],\n [1., 1.]]"
    assert _tensor_str(torch.ones(0), 0) == "[]"
    pairs, context = _pytree._dict_flatten_with_keys({"a": 1})
    assert pairs == [(_pytree.MappingKey("a"), 1)] and context == ["a"]
    assert _pytree._list_flatten_with_keys([7])[0] == [(_pytree.SequenceKey(0), 7)]
    values, keys = _pytree._dict_flatten({"a": 1})
    assert _pytree._dict_unflatten(values, keys) == {"a": 1}
    assert _pytree._tuple_unflatten(*_pytree._list_flatten((1, 2))) == (1, 2)
    assert _pytree._list_unflatten([1], None) == [1]
    assert np_str_obj_array_pattern.search("<U3") and not np_str_obj_array_pattern.search("<f4")
    assert _collate_fn_t is not None and _worker_init_fn_t is not None
    assert torch.serialization.MAP_LOCATION is not None
    assert torch.Future is torch.futures.Future and torch.ScriptModule is torch.jit.ScriptModule
    with getattr(torch.backends, "__allow_nonbracketed_mutation")():
        pass
    with TransformGetItemToIndex():
        assert torch.arange(3)[torch.tensor(1)] == 1


def test_placements_of_spread_tensors():
    from rushlight.distributed.tensor.placement_types import Shard, _StridedShard

    strided = _StridedShard(1, split_factor=2)
    assert isinstance(strided, Shard) and strided == _StridedShard(1, split_factor=2)
    assert strided != _StridedShard(1, split_factor=3) and strided.is_shard(1)


def test_parts_of_attention():
    from rushlight.nn.functional import (
        _canonical_mask,
        _in_projection,
        _in_projection_packed,
        _mha_shape_check,
        _none_or_dtype,
        has_torch_function_variadic,
    )
    from rushlight.nn.modules.activation import NonDynamicallyQuantizableLinear
    from rushlight.nn.modules.conv import _pair, _single, _triple
    from rushlight.nn.modules.transformer import (
        _detect_is_causal_mask,
        _get_clones,
        _get_seq_len,
    )

    x, w = torch.randn(2, 3, 4), torch.randn(12, 4)
    q, k, v = _in_projection_packed(x, x + 1, x + 2, w)
    for one, other in zip((q, k, v), _in_projection(x, x + 1, x + 2, *w.chunk(3)), strict=True):
        assert torch.equal(one, other) and one.shape == (2, 3, 4)
    with pytest.raises(AssertionError, match="query weights"):
        _in_projection(x, x, x, w, w[:4], w[:4])
    hidden = torch.tensor([True, False])
    assert _canonical_mask(hidden, "a", None, "b", torch.float32).tolist() == [-math.inf, 0]
    with pytest.warns(UserWarning, match="mismatched a and b"):
        _canonical_mask(hidden, "a", torch.float32, "b", torch.float32)
    assert _canonical_mask(None, "a", None, "b", torch.float32) is None
    assert _mha_shape_check(x, x, x, None, None, 2) and not _mha_shape_check(
        *x, x[0], None, None, 2
    )
    assert _none_or_dtype(None) is None and _none_or_dtype(x) is torch.float32
    assert not has_torch_function_variadic(x, x)
    assert isinstance(NonDynamicallyQuantizableLinear(1, 1), torch.nn.Linear)
    assert (_single(1), _pair(1), _triple((1, 2, 3))) == ((1,), (1, 1), (1, 2, 3))
    assert (
        _get_seq_len(x, True) == 3 and _get_seq_len(x, False) == 2 and _get_seq_len(x[0], True) == 3
    )
    layer = torch.nn.Linear(1, 1)
    assert [type(m) for m in _get_clones(layer, 2)] == [torch.nn.Linear] * 2
    causal = torch.nn.Transformer.generate_square_subsequent_mask(3)
    assert _detect_is_causal_mask(causal) and not _detect_is_causal_mask(causal.zero_())


def test_versions_compare_as_versions():
    import pickle

    from rushlight.torch_version import TorchVersion

    v = TorchVersion("2.13.0+cpu")
    assert v > "2.9" and v >= (2, 13) and v < "2.14" and v != "2.13.0" and v > "2.13.0"
    assert TorchVersion("2.13.0") == (2, 13) and TorchVersion("2.8.0rc1") < "2.8"
    assert TorchVersion("2.8.0.dev1") < "2.8.0a0" and TorchVersion("2.8.post1") > "2.8"
    assert isinstance(torch.__version__, TorchVersion) and torch.__version__ == str(
        torch.__version__
    )
    assert pickle.loads(pickle.dumps(v)) == v and hash(v) == hash("2.13.0+cpu")
    assert v != None and v != 3  # noqa: E711  # what it is compared with is the test
    with pytest.raises(TypeError):
        v > 3  # noqa: B015
    stream = io.BytesIO()
    torch.save({"version": v}, stream)
    stream.seek(0)
    assert type(torch.load(stream)["version"]) is TorchVersion


def test_types_of_results_before_and_after_a_call():
    import pickle
    import subprocess
    import sys

    program = (
        "import pickle, rushlight as torch; kind = torch.return_types.kthvalue; "
        "r = torch.kthvalue(torch.arange(3), 1); assert type(r) is kind, type(r); "
        "assert kind.n_fields == 2 and pickle.loads(pickle.dumps(r)).values == 0"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert isinstance(torch.topk(torch.ones(2), 1), torch.return_types.topk)
    kinds = torch.return_types.max, torch.return_types.sort, torch.return_types.frexp
    assert all(issubclass(kind, tuple) for kind in kinds)
    with pytest.raises(AttributeError, match="no attribute 'add'"):
        torch.return_types.add  # noqa: B018
    assert pickle.loads(pickle.dumps(torch.max(torch.eye(2), 0))).indices.tolist() == [0, 1]


def test_small_numbers_count_as_zero_on_all_threads():
    tiny = torch.full((1 << 20,), 1e-40)
    with pytest.raises(TypeError):
        torch.set_flush_denormal(1)
    assert torch.set_flush_denormal(True)
    try:
        assert not (tiny * 0.5).view(torch.int32).any()
    finally:
        torch.set_flush_denormal(False)
    assert (tiny * 0.5).view(torch.int32).all()


def test_settings_of_the_compiler_of_scripts_are_kept():
    assert torch._C._jit_set_profiling_mode(False) is True
    assert torch._C._jit_set_profiling_mode(True) is False
    assert torch._C._jit_override_can_fuse_on_cpu(True) is None
    assert torch._C._get_graph_executor_optimize() is True
    torch._C._set_graph_executor_optimize(False)
    assert torch._C._get_graph_executor_optimize() is False
    torch._C._set_graph_executor_optimize(True)
    assert torch._C._log_api_usage_once("x") is None and not torch._C._jit_can_fuse_on_cpu()


def test_what_the_build_has():
    assert torch.has_openmp and torch.has_spectral and isinstance(torch.has_lapack, bool)
    assert torch.has_mkl == torch.backends.mkl.is_available()
    assert torch.has_cuda == torch.backends.cuda.is_built() and torch.has_mps is False
    assert torch.has_mkldnn == torch.backends.mkldnn.is_available() and torch.has_cudnn is False


def test_functions_by_their_inner_modules():
    from rushlight import _VF

    x = torch.ones(2, 2)
    assert torch.equal(_VF.add(x, x), x + x) and "lstm" in dir(_VF)
    assert torch._C._VariableFunctions.add is torch.add and isinstance(x, torch._C._TensorBase)
    with pytest.raises(AttributeError):
        _VF.nothing  # noqa: B018


# ---- versions ----


@pytest.mark.parametrize("order", [["1.9", "1.10", "2.0a0+git", "2.0rc1", "2.0", "2.0+cpu", "2.1"]])
def test_versions_compare_as_such(order):
    from rushlight.torch_version import TorchVersion

    for i, a in enumerate(order):
        for j, b in enumerate(order):
            assert (TorchVersion(a) < b, TorchVersion(a) >= b) == (i < j, i >= j), (a, b)
            assert (TorchVersion(a) == b, TorchVersion(a) != b) == (i == j, i != j)
    assert (1, 9) < TorchVersion("1.10.2+cpu") < (2, 0)
    assert TorchVersion("1.2") == "1.2.0" and hash(TorchVersion("1.2")) == hash("1.2")
    assert TorchVersion("2.0") != "none" and not TorchVersion("2.0") >= "none"
    with pytest.raises(TypeError):
        assert TorchVersion("2.0") > 2


def test_a_version_lies_in_files_of_plain_data():
    assert torch.__version__ >= (0, 0, 1)
    file = io.BytesIO()
    torch.save({"made by": torch.__version__}, file)
    file.seek(0)
    assert torch.load(file)["made by"] == torch.__version__


# ---- dtypes that are names ----


def test_dtypes_of_a_few_bits_are_names_with_sizes_and_signs():
    for bits in range(1, 8):
        signed, unsigned = getattr(torch, f"int{bits}"), getattr(torch, f"uint{bits}")
        assert signed.is_signed and not unsigned.is_signed and signed.itemsize == 1
        assert repr(unsigned) == f"torch.uint{bits}" and copy.copy(signed) is signed
        with pytest.raises(NotImplementedError, match="makes no such tensors"):
            torch.zeros(2, dtype=unsigned)
    assert torch.float8_e8m0fnu.is_floating_point and not torch.float8_e8m0fnu.is_signed
    assert torch.float4_e2m1fn_x2.is_floating_point and torch.bits16.itemsize == 2
    with pytest.raises(RuntimeError, match="isSignedType not supported"):
        _ = torch.bits8.is_signed


def test_quantised_dtypes_are_names_that_make_no_plain_tensor():
    names = [torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4]
    assert len(set(names)) == 5 and all(isinstance(d, torch.dtype) for d in names)
    assert [d.itemsize for d in names] == [1, 1, 4, 1, 1]
    assert repr(torch.quint8) == "torch.quint8" and not torch.quint8.is_floating_point
    assert copy.deepcopy(torch.qint8) is torch.qint8 and torch.qint8.to_real() is torch.qint8
    with pytest.raises(RuntimeError, match="isSignedType not supported"):
        _ = torch.qint8.is_signed
    for call in (
        lambda: torch.zeros(2, dtype=torch.quint8),
        lambda: torch.ones(2).to(torch.qint8),
        lambda: torch.tensor([1], dtype=torch.qint32),
        lambda: torch.set_default_dtype(torch.qint32),
        lambda: torch.qint8.to_complex(),
    ):
        with pytest.raises(NotImplementedError, match="makes no such tensors"):
            call()


# ---- results with names ----


def test_the_types_of_results_are_there_before_any_op_ran():
    # Of an op that no other test of this process calls first: the type is made once.
    assert torch.return_types.cummax is type(torch.ones(2).cummax(0))
    assert torch.return_types.linalg_svd([1, 2, 3]).Vh == 3
    with pytest.raises(AttributeError, match="add"):
        _ = torch.return_types.add


# ---- modules ----


def test_members_of_a_module_by_names():
    from rushlight.nn.utils import _named_member_accessor as members

    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    access = members.NamedMemberAccessor(model)
    weight = model[0].weight
    other = torch.zeros(3, 2)
    assert access.swap_tensor("0.weight", other) is weight and model[0].weight is other
    before, missing = access.swap_tensors_dict({"0.weight": weight, "0.more": other}, True)
    assert before["0.weight"] is other and missing == ["0.more"] and model[0].more is other
    access.swap_tensors_dict(before, allow_missing=True)
    assert model[0].weight is other and not hasattr(model[0], "more")
    with pytest.raises(RuntimeError, match="Missing key"):
        access.swap_tensors_dict({"0.weight": weight, "0.more": other})
    assert model[0].weight is other and not hasattr(model[0], "more")
    mean = access.get_tensor("1.running_mean")
    access.set_tensors_dict({"1.running_mean": mean + 1})
    assert torch.equal(model[1].running_mean, mean + 1)
    assert access.check_keys(["0.weight"])[1] == [] and access.check_keys(["a"])[1] == ["a"]
    first = model[0]
    assert access.swap_submodule("0", nn.Identity()) is first
    with pytest.raises(AttributeError, match="has no attribute"):
        access.get_tensor("1.nothing")
    with pytest.raises(TypeError, match="not an instance of torch.Tensor"):
        members.set_tensor(model[1], "weight", 1)
    with pytest.raises(KeyError):
        members.swap_submodule(model, "a.b", first)


def test_a_tracker_knows_the_modules_that_run():
    from rushlight.utils.module_tracker import ModuleTracker

    tracker = ModuleTracker()
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    seen = []
    model[0].register_forward_hook(lambda *_: seen.append((set(tracker.parents), tracker.is_bw)))
    model[0].register_full_backward_hook(
        lambda *_: seen.append((set(tracker.parents), tracker.is_bw))
    )
    with tracker:
        model(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == [
        ({"Global", "Sequential"}, False),
        ({"Global", "Sequential", "Sequential.0"}, True),
    ]
    assert tracker.parents == {"Global"}


def test_hooks_of_all_modules_have_their_names():
    from rushlight.nn.modules import module

    handle = module.register_module_parameter_registration_hook(lambda *_: None)
    assert handle.id in module._global_parameter_registration_hooks
    handle.remove()
    assert not module._global_parameter_registration_hooks
    assert not module._global_forward_pre_hooks


def test_uninitialized_tensors_have_a_kind():
    assert isinstance(nn.UninitializedParameter(), nn.parameter.UninitializedTensorMixin)
    assert isinstance(nn.UninitializedBuffer(), nn.parameter.UninitializedTensorMixin)
    assert not isinstance(nn.Parameter(), nn.parameter.UninitializedTensorMixin)


# ---- weak references ----


def test_dicts_of_tensors_hold_their_keys_weakly():
    from rushlight.utils import weak

    a, b = torch.ones(2), torch.ones(2)
    table = weak.WeakTensorKeyDictionary({a: 1})
    table[b] = 2
    assert table[a] == 1 and table[b] == 2 and len(table) == 2 and 3 not in table
    assert {id(k) for k in table} == {id(a), id(b)} and (table | {a: 5})[a] == 5
    reference = weak.TensorWeakRef(b)
    assert reference() is b
    del b
    assert reference() is None and len(table) == 1 and dict(table.items())[a] == 1
    with pytest.raises(TypeError):
        weak.TensorWeakRef(1)


# ---- decorators, schedules, threads ----


def test_contexts_of_programs_decorate():
    from rushlight.utils import _contextlib

    class Entered(_contextlib._DecoratorContextManager):
        count = 0

        def __enter__(self):
            Entered.count += 1

        def __exit__(self, *error):
            pass

    assert Entered()(abs)(-2) == 2 and Entered.count == 1
    assert _contextlib.context_decorator(lambda: Entered(), abs)(-3) == 3 and Entered.count == 2
    assert issubclass(torch.no_grad, _contextlib._NoParamDecoratorContextManager)


def test_a_schedule_can_be_asked_for_its_rates():
    from rushlight.optim import lr_scheduler

    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    schedule = lr_scheduler.StepLR(optimizer, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with lr_scheduler._enable_get_lr_call(schedule):
            assert schedule.get_lr() == [1.0]
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()


def test_threads_between_ops_are_set_once(monkeypatch):
    from rushlight import _settings

    monkeypatch.setattr(_settings, "_interop_threads", None)
    assert torch.get_num_interop_threads() > 0
    with pytest.raises(RuntimeError, match="positive"):
        torch.set_num_interop_threads(0)
    torch.set_num_interop_threads(3)
    assert torch.get_num_interop_threads() == 3
    with pytest.raises(RuntimeError, match="cannot set"):
        torch.set_num_interop_threads(3)


# ---- vmap, for functions in the place of its own ----


def test_vmap_calls_what_programs_put_in_the_place_of_its_parts(monkeypatch):
    from rushlight._transforms import vmap as parts

    seen = []

    def inputs(dims, leaves, level, spec):
        seen.append(dims)
        return taken(dims, leaves, level, spec)

    taken = parts._create_batched_inputs
    monkeypatch.setattr(parts, "_create_batched_inputs", inputs)
    assert torch.equal(torch.vmap(torch.sum)(torch.ones(2, 3)), torch.full((2,), 3.0))
    assert seen == [[0]]


# ---- what others see ----


def test_operands_of_einsum_are_shown_one_by_one():
    class Seen:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, len(args)

    assert torch.einsum("i,i", Seen(), Seen()) == (torch.einsum, 3)
    assert torch.einsum("i,i", [Seen(), Seen()]) == (torch.einsum, 3)
    x = torch.ones(2)
    assert torch.einsum("i,i", [x, x]).item() == torch.einsum(x, [0], x, [0]).item() == 2


def test_marks_for_a_profiler_refuse_when_they_are_set():
    from rushlight.cuda import nvtx

    for call in (nvtx.range_push, nvtx.mark, nvtx.range_start, nvtx.range_end):
        with pytest.raises(RuntimeError, match="NVTX functions not installed"):
            call("here")
    with pytest.raises(RuntimeError, match="NVTX functions not installed"):
        nvtx.range_pop()
    with pytest.raises(RuntimeError, match="NVTX functions not installed"), nvtx.range("here"):
        pass


def test_annotations_of_layers_are_types():
    for layer in (nn.CrossEntropyLoss(), nn.Linear(1, 1)):
        hints = typing.get_type_hints(layer, globalns={}, localns={})
        assert hints["training"] is bool


def test_activations_take_attributes():
    for f in (nn.functional.sigmoid, nn.functional.tanh, nn.functional.softsign):
        f.marked = True
        assert f.marked and f.__module__ == "rushlight.nn.functional"
        del f.marked
    assert nn.functional.sigmoid(torch.zeros(1)).item() == 0.5
    traced = torch.fx.symbolic_trace(lambda x: nn.functional.tanh(x))
    assert torch.equal(traced(torch.ones(2)), torch.tanh(torch.ones(2)))


def test_old_types_of_gpu_tensors():
    kind = torch.cuda.FloatTensor
    assert repr(kind) == "<class 'torch.cuda.FloatTensor'>" and kind is not torch.FloatTensor
    assert not isinstance(torch.ones(1), (kind, torch.cuda.HalfTensor))
    assert torch.cuda._initialized is torch.cuda.is_initialized()
    if not torch.cuda.is_available():
        with pytest.raises(TypeError, match=r"type torch\.cuda\.FloatTensor not available"):
            kind(2)


def test_what_optimisers_of_others_import():
    from rushlight.optim import optimizer as o

    params = [torch.ones(2, requires_grad=True), nn.Parameter(torch.ones(2))]
    assert o._default_to_fused_or_foreach(params, False, use_fused=True) == (True, False)
    assert o._default_to_fused_or_foreach(params, False) == (False, False)
    assert o._default_to_fused_or_foreach(params, True, use_fused=True) == (False, False)
    assert o._get_capturable_supported_devices(supports_xla=False)[0] == "cuda"
    assert o._get_scalar_dtype() is torch.float32
    assert o._to_scalar(torch.ones(1)).shape == () and o._to_scalar(0.1) == 0.1
    tensors, grads = [torch.ones(1, dtype=torch.complex64), torch.ones(1)], [*params]
    grads[0] = torch.ones(1, dtype=torch.complex64)
    o._view_as_real(tensors, grads)
    assert [t.shape for t in tensors] == [(1, 2), (1,)] and grads[0].shape == (1, 2)
    o._device_dtype_check_for_fused(params[0])
    with pytest.raises(RuntimeError, match="fused=True"):
        o._device_dtype_check_for_fused(torch.ones(1, dtype=torch.int64))
    assert o._disable_dynamo_if_unsupported()(len) is len and o._stack_if_compiling(1) == 1
    groups = o.Optimizer._group_tensors_by_device_and_dtype([params])
    assert [len(lists[0]) for lists, _ in groups.values()] == [2]

    class Steps(o.Optimizer):
        def step(self):
            return "step"

    seen = []
    mine = Steps(params, {})
    mine._patch_step_function()  # a second time changes nothing
    mine.register_step_post_hook(lambda *_: seen.append(1))
    assert mine.step() == "step" and seen == [1]


def test_parts_of_attention_in_functional():
    f = nn.functional
    x, w = torch.randn(2, 3, 4), torch.randn(12, 4)
    parts = f._in_projection_packed(x, x, x, w)
    apart = f._in_projection(x, x, x, *w.chunk(3))
    assert all(torch.allclose(a, b) for a, b in zip(parts, apart, strict=True))
    with pytest.raises(AssertionError, match="expecting key weights shape"):
        f._in_projection(x, x, x, w[:4], w, w[:4])
    mask = f._canonical_mask(torch.tensor([True, False]), "mask", None, "", torch.float32)
    assert mask.tolist() == [-float("inf"), 0]
    with pytest.warns(UserWarning, match="mismatched"):
        f._canonical_mask(mask, "a", torch.bool, "b", torch.float32)
    assert f._none_or_dtype(None) is None and f._none_or_dtype(x) is torch.float32
    assert f._mha_shape_check(x, x, x, None, None, 2)
    with pytest.warns(UserWarning, match="Implicit dimension"):
        assert f._get_softmax_dim("softmax", 2, 3) == 1
    assert torch._shape_as_tensor(x).tolist() == [2, 3, 4]


def test_facts_about_programs(monkeypatch):
    monkeypatch.delenv("TORCH_VITAL", raising=False)
    assert not torch.set_vital("Loader", "used", "True") and torch.read_vitals() == ""
    monkeypatch.setenv("TORCH_VITAL", "ON")
    assert torch.set_vital("Loader", "used", "True")
    assert torch.read_vitals() == "[TORCH_VITAL] Loader.used\t\t True\n"
    from rushlight import _settings

    _settings._vitals.clear()
