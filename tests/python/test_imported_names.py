"""Names that packages import from PyTorch beside what they call: they work, or refuse clearly."""

import collections
import inspect
import io
import math

import pytest

import rushlight as torch
from rushlight import nn


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.export.export(nn.Linear(1, 1), (torch.ones(1, 1),)),
        lambda: torch.export.Dim("n"),
        lambda: torch.onnx.export(nn.Linear(1, 1), (), "x"),
        lambda: torch.onnx.ONNXProgram(),
        lambda: torch.ao.quantization.quantize_dynamic(nn.Linear(1, 1)),
        lambda: torch.quantization.MinMaxObserver(),
        lambda: torch.distributed.rpc.rpc_sync("w", abs),
        lambda: torch.distributed.tensor.experimental.context_parallel(),
    ],
)
def test_what_is_not_there_says_so_when_it_is_called(call):
    import rushlight.distributed.rpc
    import rushlight.distributed.tensor.experimental  # noqa: F401

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
    with pytest.raises(AttributeError, match="no op is named 'aten::_nothing_like_it'"):
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


def test_settings_of_threads():
    before = torch.get_num_interop_threads()
    assert before >= 1
    torch.set_num_interop_threads(3)
    assert torch.get_num_interop_threads() == 3
    torch.set_num_interop_threads(before)
    with pytest.raises(RuntimeError, match="positive number of threads"):
        torch.set_num_interop_threads(0)
    with pytest.raises(TypeError):
        torch.set_num_interop_threads("2")


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
