"""Tensors as Python objects: identity, lifetime, subclasses, numpy, copies; small types."""

import copy
import gc
import pickle
import subprocess
import sys
import warnings
import weakref

import numpy as np
import pytest

import rushlight as torch
from rushlight import Tensor

# ---- identity and lifetime ----


def test_grad_is_one_object():
    x = torch.ones(3, requires_grad=True)
    x.sum().backward()
    assert x.grad is x.grad
    place = id(x.grad)
    junk = [torch.ones(1) for _ in range(100)]
    assert id(x.grad) == place
    del junk


def test_attributes_survive_while_the_core_holds_the_tensor():
    x = torch.ones(2, requires_grad=True)
    g = torch.ones(2)
    g.note = "kept"
    x.grad = g
    del g
    gc.collect()
    assert x.grad.note == "kept"


def test_weak_references():
    t = torch.ones(2)
    reference = weakref.ref(t)
    assert reference() is t
    del t
    assert reference() is None


def test_weak_reference_to_an_object_that_the_core_owns():
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.full((2,), 7.0)
    reference = weakref.ref(x.grad)
    gc.collect()
    g = reference()
    assert g is x.grad
    x.grad = None
    gc.collect()
    assert g.tolist() == [7.0, 7.0]  # it owns the memory again
    del g
    assert reference() is None


def test_cycles_are_collected():
    t = torch.ones(2)
    t.me = t
    reference = weakref.ref(t)
    del t
    gc.collect()
    assert reference() is None


def test_uninitialised_object_is_an_error_and_no_crash():
    raw = object.__new__
    with pytest.raises(TypeError):
        raw(Tensor)
    with pytest.raises(TypeError):
        torch._C.TensorBase(2)


def test_tensor_is_mutable_and_subclassable():
    Tensor.extra = 5
    try:
        assert torch.ones(1).extra == 5
    finally:
        del Tensor.extra
    t = torch.ones(1)
    t.name_of_mine = "x"
    assert vars(t) == {"name_of_mine": "x"}


# ---- attributes ----


def test_attributes():
    t = torch.zeros(2, 3, dtype=torch.float64)
    assert t.shape == t.size() == (2, 3) and isinstance(t.shape, torch.Size)
    assert (
        t.dtype is torch.float64 and t.device == torch.device("cpu") and t.layout is torch.strided
    )
    assert (t.ndim, t.nbytes, t.itemsize, t.numel(), t.element_size()) == (2, 48, 8, 6, 8)
    assert t.is_cpu and not t.is_cuda and not t.is_meta and t.is_leaf and not t.requires_grad
    assert t.T.shape == (3, 2) and t.mT.shape == (3, 2)
    assert t.names == (None, None)
    assert t.stride() == (3, 1) and t.stride(0) == 3 and t.size(-1) == 3


def test_assigning_grad_is_checked():
    x = torch.ones(2)
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None"):
        x.grad = 5
    with pytest.raises(RuntimeError, match="size"):
        x.grad = torch.ones(3)
    with pytest.raises(RuntimeError, match="dtype|type"):
        x.grad = torch.ones(2, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="own grad"):
        x.grad = x
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = 1
    x.grad = None


def test_data():
    x = torch.ones(2, requires_grad=True)
    x.data[0] = 5
    assert x.tolist() == [5, 1] and x._version == 0
    x.data = torch.zeros(3)
    assert x.shape == (3,)
    with pytest.raises(TypeError, match="Variable data has to be a tensor"):
        x.data = 1


# ---- construction ----


def test_values_out_of_range():
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.tensor(300, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.tensor([-129], dtype=torch.int8)
    assert torch.tensor(-1, dtype=torch.uint8).item() == 255
    assert torch.tensor([1.9, -1.9], dtype=torch.int64).tolist() == [1, -1]
    with pytest.raises(ValueError, match="Overflow"):
        torch.tensor(2**63)


@pytest.mark.parametrize(
    "data, error, message",
    [
        ([[1], [2, 3]], ValueError, "expected sequence of length 1 at dim 1"),
        ("abc", TypeError, "invalid data type 'str'"),
        (["a"], ValueError, "too many dimensions 'str'"),
        (object(), RuntimeError, "Could not infer dtype of object"),
        ([None], RuntimeError, "Could not infer dtype of NoneType"),
        ([1, [2]], TypeError, "list"),
        (1j, TypeError, "must be real number"),
    ],
)
def test_bad_data(data, error, message):
    with pytest.raises(error, match=message):
        torch.tensor(data, dtype=torch.float32) if data == 1j else torch.tensor(data)


def test_numpy_scalars_keep_their_dtype():
    assert torch.tensor([np.float64(1)]).dtype is torch.float64
    assert torch.tensor(np.int32(1)).dtype is torch.int32
    assert torch.tensor([1, 2.0, True]).dtype is torch.float32


def test_a_list_that_changes_while_it_is_read():
    """Conversions run Python code; nothing may be read that is gone."""

    class Evil:
        def __init__(self, victim):
            self.victim = victim

        def __index__(self):
            self.victim.clear()
            return 1

    victim = [1, 2, 3]
    victim.insert(1, Evil(victim))
    with pytest.raises((ValueError, RuntimeError, TypeError)):
        torch.tensor(victim, dtype=torch.int64)
    sizes = [2, 3]
    sizes.insert(0, Evil(sizes))
    torch.zeros(sizes)


def test_deep_nesting_is_an_error():
    data = 1
    for _ in range(100_000):
        data = [data]
    with pytest.raises((ValueError, RecursionError)):
        torch.tensor(data)


def test_legacy_constructor():
    assert torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor([2, 3]).tolist() == [2, 3]
    assert torch.Tensor(torch.Size([2])).shape == (2,)
    base = torch.ones(2)
    assert torch.Tensor(base).data_ptr() == base.data_ptr()
    with pytest.raises(TypeError, match="data must be a sequence"):
        torch.Tensor(2.0)
    with pytest.raises(TypeError, match="invalid combination"):
        torch.Tensor([1], [2])
    assert isinstance(torch.ones(1), torch.FloatTensor)
    assert not isinstance(torch.ones(1), torch.LongTensor)
    assert torch.ones(1).type() == "torch.FloatTensor"
    assert torch.ones(2).new(3).shape == (3,)


# ---- numpy ----


def test_array_keeps_the_memory():
    t = torch.arange(5.0)
    a = t.numpy()
    del t
    gc.collect()
    junk = torch.zeros(5)
    assert a.tolist() == [0, 1, 2, 3, 4]
    del junk
    t = torch.arange(4.0)
    a = t.numpy()
    t.data = torch.zeros(4)
    gc.collect()
    assert a.tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="resiz"):
        torch.from_numpy(a).resize_(100)


def test_tensor_keeps_the_array():
    a = np.arange(5)
    reference = weakref.ref(a)
    t = torch.from_numpy(a)
    del a
    gc.collect()
    assert reference() is not None and t.tolist() == [0, 1, 2, 3, 4]
    del t
    gc.collect()
    assert reference() is None


def test_read_only_arrays_are_copied():
    a = np.frombuffer(b"\x01\x02\x03", dtype=np.uint8)
    for read in (torch.from_numpy, torch.as_tensor, torch.asarray):
        with pytest.warns(UserWarning, match="not writable"):
            t = read(a)
        t[0] = 9
        assert a.tolist() == [1, 2, 3]
    with pytest.warns(UserWarning, match="buffer is not writable"):
        torch.frombuffer(b"abc", dtype=torch.uint8)[0] = 9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.tensor(a).tolist() == [1, 2, 3]  # a copy in any case


@pytest.mark.parametrize(
    "array", [np.ones(2, ">f4"), np.ones(2, "m8"), np.array(["a"]), np.array([object()])]
)
def test_arrays_that_have_no_dtype_here(array):
    with pytest.raises((TypeError, ValueError)):
        torch.from_numpy(array)


def test_frombuffer():
    data = bytearray(np.arange(4, dtype=np.int32).tobytes())
    t = torch.frombuffer(data, dtype=torch.int32)
    assert t.tolist() == [0, 1, 2, 3]
    t[0] = 7
    assert data[0] == 7
    assert torch.frombuffer(data, dtype=torch.int32, count=2, offset=4).tolist() == [1, 2]
    with pytest.raises(ValueError, match="must not be greater"):
        torch.frombuffer(data, dtype=torch.int32, count=9)
    with pytest.raises(ValueError, match="offset"):
        torch.frombuffer(data, dtype=torch.int32, offset=-1)


def test_import_does_not_load_numpy():
    code = "import sys, rushlight as t; repr(t.ones(2) + 1); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- copies ----


class Tagged(Tensor):
    pass


def test_deepcopy():
    x = torch.arange(4.0).requires_grad_()
    x.grad = torch.ones(4)
    x.note = [1]
    y = copy.deepcopy(x)
    assert y.tolist() == x.tolist() and y.requires_grad and y.grad.tolist() == [1] * 4
    assert y.note == [1] and y.note is not x.note and y.data_ptr() != x.data_ptr()
    with pytest.raises(RuntimeError, match="created explicitly by the user"):
        copy.deepcopy(x * 2)
    a = torch.arange(4.0)
    both = copy.deepcopy([a, a[1:]])
    both[0][1] = 9
    assert both[1][0] == 9


def test_pickle():
    t = torch.arange(6).reshape(2, 3).T
    twin = pickle.loads(pickle.dumps(t))
    assert twin.tolist() == t.tolist() and twin.stride() == t.stride() and twin.dtype is t.dtype
    tagged = pickle.loads(pickle.dumps(torch.ones(2).as_subclass(Tagged)))
    assert type(tagged) is Tagged


@pytest.mark.parametrize(
    "thing",
    [
        torch.float32,
        torch.bool,
        torch.strided,
        torch.channels_last,
        torch.device("cuda:1"),
        torch.Size([1, 2]),
    ],
)
def test_small_types_pickle(thing):
    twin = pickle.loads(pickle.dumps(thing))
    assert twin == thing and type(twin) is type(thing)
    assert copy.deepcopy(thing) == thing


# ---- small types ----


def test_size():
    s = torch.Size([2, 3])
    assert repr(s) == "torch.Size([2, 3])" and s.numel() == 6 and s == (2, 3)
    for t in (s[:1], s.__add__((4,)), (4, *s[:0]) + s, s * 2):
        assert type(t) is torch.Size
    assert s[0] == 2
    with pytest.raises(TypeError, match=r"item 0 is 'float'"):
        torch.Size([1.0])


def test_device():
    d = torch.device("cuda:1")
    assert (d.type, d.index, str(d)) == ("cuda", 1, "cuda:1")
    assert repr(d) == "device(type='cuda', index=1)" and d == torch.device("cuda", 1)
    assert hash(d) == hash(torch.device("cuda", 1)) and d != torch.device("cuda")
    with pytest.raises(RuntimeError, match="must not include an index"):
        torch.device("cuda:1", 1)
    with pytest.raises(RuntimeError, match="at start of device string: gpu"):
        torch.device("gpu")
    with pytest.raises(RuntimeError):
        torch.device("cuda:-1")
    with torch.device("meta"):
        assert torch.zeros(3).is_meta
    assert torch.zeros(3).is_cpu


def test_dtype():
    assert repr(torch.float) == "torch.float32" and torch.float is torch.float32
    assert torch.float32.is_floating_point and torch.complex64.is_complex and torch.int8.is_signed
    assert torch.complex128.to_real() is torch.float64 and torch.float16.itemsize == 2
    with pytest.raises(TypeError):
        type(torch.float)()


def test_generator():
    g = torch.Generator()
    assert g.manual_seed(3) is g and g.initial_seed() == 3
    state = g.get_state()
    first = torch.rand(3, generator=g)
    g.set_state(state)
    assert torch.equal(torch.rand(3, generator=g), first)
    with pytest.raises(TypeError):
        g.set_state(torch.ones(3))
    with pytest.raises((TypeError, RuntimeError)):
        g.manual_seed("a")
    assert torch.rand(3, generator=None).shape == (3,)


def test_limits():
    for name in ("float16", "float32", "float64"):
        ours, theirs = torch.finfo(getattr(torch, name)), np.finfo(name)
        assert (ours.eps, ours.max, ours.min, ours.tiny, ours.bits) == (
            float(theirs.eps),
            float(theirs.max),
            float(theirs.min),
            float(theirs.tiny),
            theirs.bits,
        )
    for name in ("uint8", "int8", "int16", "int32", "int64"):
        ours, theirs = torch.iinfo(getattr(torch, name)), np.iinfo(name)
        assert (ours.max, ours.min, ours.bits) == (theirs.max, theirs.min, theirs.bits)
    with pytest.raises(TypeError):
        torch.finfo(torch.int32)
    with pytest.raises(TypeError):
        torch.iinfo(torch.float32)


def test_default_dtype_changes_what_floats_become():
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor([1.0]).dtype is torch.ones(1).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError, match="floating-point"):
        torch.set_default_dtype(torch.int32)


def test_storage():
    t = torch.arange(4, dtype=torch.int32)
    s = t.untyped_storage()
    assert s.nbytes() == len(s) == 16 and s.data_ptr() == t.data_ptr()
    assert s == t[1:].untyped_storage() and s[4] == 1
    with pytest.raises(IndexError):
        s[16]
    with pytest.raises(RuntimeError, match="tensors still use"):
        s.resize_(1)
    s[4] = 7
    assert t.tolist() == [0, 7, 2, 3]
    copy = torch.UntypedStorage(16).copy_(s)
    assert copy != s and copy.tolist() == s.tolist() and copy.untyped() is copy
    assert s.fill_(255) is s and t.tolist() == [-1] * 4 and copy.cpu() is copy
    assert s.to(device="meta").device.type == "meta" and len(s.to(device="meta")) == 16
    for wrong in (lambda: s.fill_(256), lambda: s.__setitem__(0, -1)):
        with pytest.raises(ValueError, match="from 0 to 255"):
            wrong()
    with pytest.raises(RuntimeError, match="size does not match"):
        s.copy_(torch.UntypedStorage(1))


def test_typed_storage_counts_elements():
    t = torch.arange(6.0)
    torch.storage._reset_warn_typed_storage_removal()
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        s = t[2:].storage()
    assert isinstance(s, torch.TypedStorage) and torch.is_storage(s)
    assert (len(s), s.size(), s.nbytes(), s.element_size()) == (6, 6, 24, 4)
    assert s.dtype is torch.float32 and s.type() == "torch.FloatStorage"
    assert isinstance(s, torch.FloatStorage) and not isinstance(s, torch.DoubleStorage)
    assert s[1] == 1.0 and s[-1] == 5.0 and list(s) == s.tolist() == [0, 1, 2, 3, 4, 5]
    s[0] = 9
    s[1:3] = 4
    assert t.tolist() == [9, 4, 4, 3, 4, 5] and s.data_ptr() == t.data_ptr()
    assert s.untyped() == t.untyped_storage() and s.device == t.device and not s.is_cuda
    with pytest.raises(RuntimeError, match="slices"):
        s[1:2]
    with pytest.raises(IndexError, match="out of range for storage of size 6"):
        s[6]
    with pytest.raises(TypeError, match="can't index"):
        s["a"]
    assert "[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 6]" in repr(s)


def test_typed_storages_are_converted_and_copied():
    torch.storage._reset_warn_typed_storage_removal()  # said once
    with pytest.warns(UserWarning, match="deprecated"):
        s = torch.FloatStorage([1, 2, 3])
        assert torch.LongStorage(2).dtype is torch.int64
        shared = torch.TypedStorage(wrap_storage=s.untyped(), dtype=torch.int32)
        assert len(torch.TypedStorage(5)) == 5 and len(torch.TypedStorage()) == 0
        with pytest.raises(TypeError, match="UntypedStorage"):
            torch.TypedStorage(wrap_storage=s)
        with pytest.raises(RuntimeError, match="either"):
            torch.TypedStorage(3, wrap_storage=s.untyped())
    assert shared[0] == 0x3F800000 and shared != s
    assert s.double().dtype is torch.float64 and s.float() is s and s.int().tolist() == [1, 2, 3]
    assert s.type("torch.LongStorage").dtype is s.type(torch.int64).dtype is torch.int64
    twins = [s.clone(), copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s))]
    assert all(twin.tolist() == [1, 2, 3] and twin != s for twin in twins)
    t = torch.ones(3)
    held = copy.deepcopy(
        [t, t.untyped_storage(), torch.TypedStorage._from_untyped(t.untyped_storage(), t.dtype)]
    )
    assert held[0].data_ptr() == held[2].data_ptr() != t.data_ptr()
    assert s.copy_(shared.clone()).tolist() == [0x3F800000, 0x40000000, 0x40400000]
    assert s.fill_(2) is s and s.tolist() == [2, 2, 2] and hash(s) != hash(shared)
    assert s.resize_(4).size() == 4 and s.tolist()[:3] == [2, 2, 2]
    assert s.cpu() is s and s.to(device="cpu") is s and s.get_device() == -1
    with pytest.raises(RuntimeError, match="size does not match"):
        s.copy_(shared.untyped())
    shared = s.clone().share_memory_()
    assert shared.is_shared() and not s.is_shared() and shared.tolist() == s.tolist()


# ---- nested data ----


def recursion_left(n=0):
    try:
        return recursion_left(n + 1)
    except RecursionError:
        return n


@pytest.mark.parametrize(
    "use",
    [
        torch.tensor,
        torch.as_tensor,
        torch.Tensor,
        torch.ones,
        lambda z: torch.tensor([z, z]),
        lambda z: torch.ones(3).new_tensor(z),
        lambda z: torch.ones(3)[z],
        lambda z: torch.ones(3)[[z]],
        lambda z: torch.ones(3)[z, 0],
        lambda z: torch.ones(3).__setitem__(z, 1),
        lambda z: torch.ones(3).__setitem__(0, z),
        lambda z: torch.ones(3).reshape(z),
        lambda z: torch.ones(3) + z,
    ],
)
def test_a_list_that_holds_itself_is_refused(use):
    first, later = [], [0]
    first.append(first)
    later.append(later)
    before = recursion_left()
    for z in (first, later):
        for _ in range(3):
            with pytest.raises((TypeError, ValueError, IndexError)):
                use(z)
    assert recursion_left() == before


# ---- the boxed form ----


def test_ops_by_name():
    assert torch.ops.aten.add.Tensor(torch.ones(2), torch.ones(2)).tolist() == [2, 2]
    assert torch.ops.aten.exp(torch.zeros(1)).tolist() == [1]
    with pytest.raises(AttributeError, match="has no attribute 'no_such_op'"):
        torch.ops.aten.no_such_op  # noqa: B018
    assert torch.ops.aten.bernoulli(torch.ones(2), generator=None).tolist() == [1, 1]


def test_profiler_counts_ops():
    from rushlight.profiler import profile

    with profile() as p:
        (torch.ones(3) + 1).exp()
    assert p.count("add") == 1 and p.count("exp") == 1
    assert "add" in p.key_averages().table()


# ---- the alias ----


def test_nothing_is_copied_out_of_meta():
    meta = torch.empty(2, device="meta")
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        torch.zeros(2).copy_(meta)
    assert meta.copy_(torch.ones(2)).is_meta and meta.copy_(meta + 1).is_meta


def test_the_default_device_is_for_what_has_no_tensor_to_follow():
    there = torch.ones(2)
    torch.set_default_device("meta")
    try:
        assert torch.ones(2).is_meta and torch.rand(2).is_meta
        likes = [torch.zeros_like(there), torch.full_like(there, 2), torch.rand_like(there)]
        assert not any(t.is_meta for t in [*likes, there.new_ones(2)])
    finally:
        torch.set_default_device(None)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex64])
def test_storages_without_memory(dtype):
    storage = torch.TypedStorage([1, 2, 3, 4], dtype=dtype, device="meta")
    assert storage.size() == 4
    assert storage.data_ptr() == 0
    assert not storage.is_shared()
    for look in (
        lambda: storage[0],
        lambda: storage[9],
        storage.tolist,
        lambda: list(storage),
        storage.cpu,
        lambda: torch.TypedStorage(4, dtype=dtype).copy_(storage),
    ):
        with pytest.raises(NotImplementedError, match="meta"):
            look()
    with pytest.raises(RuntimeError, match="only available on CPU"):
        storage.share_memory_()


def test_types_of_storages():
    names = torch.storage._dtype_to_storage_type_map()
    assert torch.storage._storage_type_to_dtype_map() == {
        name: dtype for dtype, name in names.items()
    }
    for dtype, name in names.items():
        kind = getattr(torch, name)
        if dtype in torch.storage.CODES:  # of quantised tensors, whose codes have another dtype
            assert kind.dtype is dtype
        else:
            assert torch.empty(2, dtype=dtype).storage_type() is kind


@pytest.mark.parametrize("layout", ["strided", "sparse_coo", "sparse_csr", "sparse_bsc"])
def test_to_sparse_coo(layout):
    dense = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    blocks = {"blocksize": (1, 1)} if layout == "sparse_bsc" else {}
    given = (
        dense if layout == "strided" else dense.to_sparse(layout=getattr(torch, layout), **blocks)
    )
    made = given.to_sparse_coo()
    assert made.layout is torch.sparse_coo
    assert made.to_dense().tolist() == dense.tolist()


def test_resize_into_memory_formats():
    last, last_3d = (60, 1, 15, 3), (360, 1, 90, 18, 3)
    x = torch.arange(120.0)
    assert x.resize_((2, 3, 4, 5), memory_format=torch.channels_last).stride() == last
    assert x.is_contiguous(memory_format=torch.channels_last) and x[1, 2, 3, 4] == 119
    assert x.resize_((2, 3, 4, 5)).stride() == last  # of the same sizes: nothing changes
    version = x._version
    assert x.resize_((2, 3, 4, 5), memory_format=torch.contiguous_format).stride() == (60, 20, 5, 1)
    assert x._version == version + 1
    y = torch.zeros(1)
    assert y.resize_((2, 3, 4, 5, 6), memory_format=torch.channels_last_3d).stride() == last_3d
    like = torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert y.resize_as_(like).stride() == (60, 20, 5, 1)
    assert y.resize_as_(like, memory_format=torch.preserve_format).stride() == last
    for size, how in (((4, 2), torch.channels_last), ((2, 3, 4, 5), torch.preserve_format)):
        z = torch.zeros(3)
        with pytest.raises(RuntimeError, match="rank 4|Unsupported memory format"):
            z.resize_(size, memory_format=how)
        assert z.size() == (3,)
