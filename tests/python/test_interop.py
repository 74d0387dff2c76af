"""Other libraries' data: DLPack, arrays inside lists, what is offered to whom, dispatch modes."""

import gc
import operator
import threading
import weakref

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from rushlight.utils.dlpack import DLDeviceType, from_dlpack, to_dlpack

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
DTYPES += ["complex64", "complex128"]


@pytest.mark.parametrize("name", DTYPES)
def test_dlpack_shares_memory_with_numpy(name):
    array = np.arange(12).reshape(3, 4).astype(name)[:, ::2]
    t = from_dlpack(array)
    assert t.dtype is getattr(torch, name) and t.stride() == (4, 2)
    t[1, 1] = 1
    assert array[1, 1] == 1
    back = np.from_dlpack(t)
    assert back.dtype == array.dtype and np.shares_memory(back, array)


def test_dlpack_capsules_are_used_once_and_freed():
    array = np.arange(6.0)
    alive = weakref.ref(array)
    capsule = to_dlpack(torch.from_numpy(array))
    del array
    gc.collect()
    assert alive() is not None  # the capsule holds its memory
    shared = from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="nobody has made a tensor of yet"):
        from_dlpack(capsule)
    del capsule, shared
    gc.collect()
    assert alive() is None
    to_dlpack(torch.ones(3))  # never taken over


def test_dlpack_keeps_the_source_alive():
    array = np.arange(1000.0)
    alive = weakref.ref(array)
    t = from_dlpack(array)
    del array
    gc.collect()
    assert t.sum().item() == 499500 and alive() is not None
    del t
    gc.collect()
    assert alive() is None


# What shares a tensor's memory, and what takes the tensor away from that memory.
SHARES = {
    "numpy": lambda t: t.numpy(),
    "dlpack": lambda t: from_dlpack(to_dlpack(t)),
    "dlpack with a version": lambda t: np.from_dlpack(t),
    "storage": lambda t: t.untyped_storage(),
    "part of the storage": lambda t: t.untyped_storage()[4:],
    "view": lambda t: t.view(-1),
    "detached": lambda t: t.detach(),
    "data": lambda t: t.data,
}
LEAVES = {
    "data": lambda t: setattr(t, "data", torch.ones(3)),
    "set_": lambda t: t.set_(torch.ones(3)),
    "swap_tensors": lambda t: torch.utils.swap_tensors(t, torch.ones(3)),
    "resize_": lambda t: t.set_(torch.ones(3).untyped_storage()),
}


@pytest.mark.parametrize("left", LEAVES)
@pytest.mark.parametrize("share", SHARES)
def test_memory_outlives_the_tensor_that_leaves_it(share, left):
    t = torch.full((1000,), 7.0)
    seen = SHARES[share](t)
    before = bytes(np.asarray(seen))
    LEAVES[left](t)
    del t
    others = [torch.full((1000,), 3.0) for _ in range(20)]  # take memory that is free
    assert bytes(np.asarray(seen)) == before, others


def test_dlpack_copies_what_may_not_be_written():
    array = np.arange(4.0)
    array.flags.writeable = False
    t = from_dlpack(array)
    t[0] = 7
    assert array[0] == 0
    with pytest.raises(BufferError, match="only be read"):
        from_dlpack(array, copy=False)


def test_dlpack_protocol():
    t = torch.arange(4.0)
    assert t.__dlpack_device__() == (DLDeviceType.kDLCPU, 0)
    assert "dltensor_versioned" in repr(t.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(t.__dlpack__())
    copy = from_dlpack(t, copy=True)
    copy[0] = 9
    assert t[0] == 0
    with pytest.raises(AssertionError, match="stream should be None"):
        t.__dlpack__(stream=3)
    with pytest.raises(BufferError):
        t.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="require gradient"):
        torch.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError):
        torch.ones(2, device="meta").__dlpack__()
    with pytest.raises(AssertionError):
        from_dlpack(to_dlpack(t), copy=True)


def test_dlpack_refuses_what_asks_for_something_else():
    t = torch.arange(4.0)
    for bad in ("cpu", 1, (1,), ("a", 0), (1, 0, 0)):
        with pytest.raises(TypeError, match="dl_device"):
            t.__dlpack__(dl_device=bad)
    assert '"dltensor"' in repr(t.__dlpack__(dl_device=(1, 3)))  # memory of processors is one
    for bad in ({"copy": "a"}, {"stream": "a"}, {"stream": 2.5}, {"max_version": 1}):
        with pytest.raises(TypeError):
            t.__dlpack__(**bad)
    for kind in (torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr()):
        with pytest.raises(BufferError, match="layout"):
            kind.__dlpack__()
    with pytest.raises(BufferError):
        torch.quantize_per_tensor(t, 0.1, 0, torch.quint8).__dlpack__()
    with pytest.raises(BufferError, match="meta"):
        from_dlpack(t, device="meta")
    for bad in ((1, 0), 3):
        with pytest.raises(AssertionError, match="unsupported device type"):
            from_dlpack(t, device=bad)


def test_dlpack_refuses_what_it_cannot_show():
    for bad in (3, "text", None):
        with pytest.raises(RuntimeError, match="invalid capsule"):
            from_dlpack(bad)
    with pytest.raises(ValueError, match="negative strides"):
        from_dlpack(np.arange(4)[::-1])
    with pytest.raises(BufferError):
        from_dlpack(np.array(["text"]))
    empty = from_dlpack(np.empty((0, 3)))
    assert empty.shape == (0, 3) and from_dlpack(np.full((), 3.0)).item() == 3


# ---- sequences of arrays ----


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", [None, "float64", "int64", "complex64", "float16"])
def test_lists_of_arrays(source, target):
    rows = [np.arange(i, i + 4).astype(source) for i in range(3)]
    dtype = None if target is None else getattr(torch, target)
    if source.startswith("complex") and target not in (None, "complex64"):
        with pytest.warns(np.exceptions.ComplexWarning):
            assert torch.tensor(rows, dtype=dtype).tolist() == np.real(rows).tolist()
        return
    t = torch.tensor(rows, dtype=dtype)
    expected = torch.from_numpy(np.array(rows))
    assert torch.equal(t, expected if dtype is None else expected.to(dtype))


def test_lists_of_arrays_of_any_layout():
    block = np.arange(24.0).reshape(2, 3, 4)
    for rows in (
        [block[0].T, block[1].T],
        [block[0, :, ::2], block[1, :, ::2]],
        [block[:, ::-1], block[:, ::-1]],
        [block.astype(">f8"), block],
        [np.array(3.0), np.array(4.0)],
        [list(block[0]), list(block[1])],
    ):
        assert torch.tensor(rows).tolist() == np.array(rows).tolist()
        assert torch.tensor(rows).shape == np.array(rows).shape
    assert torch.tensor([np.float32(1), np.float32(2)]).dtype is torch.float32
    assert torch.tensor([np.int64(1), 2.5]).dtype is torch.float32
    with pytest.raises(ValueError, match="expected sequence of length 4 at dim 1"):
        torch.tensor([np.ones(4), np.ones(3)])
    with pytest.raises((TypeError, ValueError)):
        torch.tensor([np.ones(4), np.ones((4, 2))])
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.tensor([np.array([300, 1])], dtype=torch.uint8)


def test_numpy_functions_take_tensors():
    t = torch.arange(6.0).reshape(2, 3)
    assert np.cumsum(t).tolist() == [0, 1, 3, 6, 10, 15] and np.asarray(t).shape == (2, 3)
    assert np.asarray(t, dtype=np.int32).dtype == np.int32
    assert np.array(t, copy=True).base is None
    np.testing.assert_allclose(t, np.arange(6.0).reshape(2, 3))
    assert np.sqrt(t).dtype in (np.float32, torch.float32)
    assert np.concatenate([t, t]).shape == (4, 3)
    for number in (np.float32(2), np.int64(2), np.float64(2), np.bool_(True)):
        assert (t + number).shape == (2, 3) and (t * number).dtype is torch.float32
    assert torch.ones(np.int64(2), np.int32(3)).shape == (2, 3)
    assert t[np.int64(1)].tolist() == [3, 4, 5] and t.sum(np.int64(1)).shape == (2,)


def test_comparisons_with_arrays_compare_or_say_why_not():
    t = torch.ones(2)
    unaligned = np.frombuffer(b"\0" * 17, np.uint8)[1:].view(np.float64)
    assert (t == unaligned).tolist() == [False, False] and (t != unaligned).all()
    for array in (np.ones(2, ">f8"), np.zeros(2, [("a", "i1"), ("b", "f8")])["b"]):
        for compare in (operator.eq, operator.ne):
            with pytest.raises(ValueError, match=r"byte order|strides"):
                compare(t, array)
    for array in (np.array(["a"]), np.array([None, 1])):  # of types that no tensor has
        assert (t == array) is False and (t != array) is True


# ---- __torch_function__ ----


class Seen:
    """Answers every call with the function's name."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func


def test_functions_in_python_are_offered_too():
    x = Seen()
    functional = torch.nn.functional
    assert functional.normalize(x) is functional.normalize
    assert functional.cross_entropy(x, x) is functional.cross_entropy
    assert torch.einsum("i->", x) is torch.einsum
    assert torch.split(x, 1) is torch.split
    assert torch.add(x, 1) is torch.add
    assert torch.overrides.resolve_name(torch.Tensor.add) == "torch.Tensor.add"
    assert torch.overrides.resolve_name(functional.normalize) == "torch.nn.functional.normalize"


def test_offered_functions_are_like_functions():
    import copy
    import inspect
    import pickle

    fold = torch.nn.functional.fold  # written in Python
    assert pickle.loads(pickle.dumps(fold)) is fold
    assert copy.deepcopy(fold) is fold
    assert fold.__name__ == "fold" and "output_size" in inspect.signature(fold).parameters
    assert "fold" in inspect.getsource(fold) and fold.__defaults__ is not None

    class Holder:
        unique = torch.unique

    assert inspect.ismethod(Holder().unique)
    x = torch.arange(4.0)
    assert [p.tolist() for p in x.split(2)] == [[0, 1], [2, 3]]
    with pytest.raises(TypeError):
        type(fold)(3)


# ---- dispatch modes ----


class Log(TorchDispatchMode):
    def __init__(self):
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_dispatch_mode_sees_ops_of_both_passes():
    x = torch.ones(2, 3, requires_grad=True)
    with Log() as log:
        y = ((x * 2 + 1).exp()).sum()
        y.backward()
    assert log.names[:4] == [
        "aten.mul.Tensor",
        "aten.add.Tensor",
        "aten.exp.default",
        "aten.sum.default",
    ]
    assert len(log.names) > 4 and x.grad.shape == (2, 3)
    assert (x + 1).requires_grad


def test_dispatch_mode_may_answer_itself():
    class Twos(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten.add.Tensor:
                assert args[1] == 1 and not kwargs
                return torch.full_like(args[0], 2.0)
            return func(*args, **(kwargs or {}))

    with Twos():
        assert (torch.zeros(2) + 1).tolist() == [2, 2]
    assert (torch.zeros(2) + 1).tolist() == [1, 1]


def test_dispatch_mode_with_views_writes_and_factories():
    x = torch.arange(6.0)
    with Log() as log:
        v = x.view(2, 3)
        v.mul_(2)
        v[0].add_(1, alpha=3)
        z = torch.zeros(2, dtype=torch.int64)
        values, indices = v.max(dim=1)
        parts = x.split(4)
    assert x.tolist() == [3, 5, 7, 6, 8, 10] and z.dtype is torch.int64
    assert values.tolist() == [7, 10] and indices.tolist() == [2, 2] and len(parts) == 2
    seen = ["aten.view.default", "aten.mul_.Tensor", "aten.select.int", "aten.add_.Tensor"]
    assert log.names[:4] == seen and log.names[-1] == "aten.split.sizes"


def test_views_under_a_mode_are_views():
    x = torch.arange(6.0, requires_grad=True) * 1
    with Log():
        v = x.view(2, 3)
        v.mul_(2)
        pieces = x.split(4)
    assert v._base is x and x.grad_fn.name() == "torch::autograd::CopySlices"
    assert v._version == x._version and pieces[0].grad_fn.name().startswith("Split")
    with pytest.raises(RuntimeError, match="multiple views"):
        pieces[0].add_(1)
    v.sum().backward()

    class Other(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.overloadpacket is torch.ops.aten.view:
                return torch.ones(7, requires_grad=True)  # no view at all
            if func.overloadpacket is torch.ops.aten.select:
                return args[0]  # the whole
            return func(*args, **(kwargs or {}))

    y = torch.arange(6.0, requires_grad=True) * 1
    with Other():
        ones, whole = y.view(2, 3), y[0]
    assert not ones._is_view() and ones.shape == (7,) and ones.requires_grad
    assert whole is not y and whole._base is y and whole.shape == (6,)
    whole.add_(1)
    assert y.tolist() == [1, 2, 3, 4, 5, 6] and y.grad_fn is not None


@pytest.mark.parametrize("answer", [None, 3, "text", (1, 2)])
def test_wrong_answers_raise(answer):
    class Wrong(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return answer

    with Wrong(), pytest.raises(TypeError):
        torch.ones(2).exp()
    with Wrong(), pytest.raises((TypeError, RuntimeError)):
        torch.ones(2).max(dim=0)


def test_errors_in_a_mode_come_through():
    class Fails(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError("mine")

    x = torch.ones(2)
    with Fails(), pytest.raises(KeyError, match="mine"):
        x.exp()
    assert x.exp().shape == (2,)


def test_modes_nest_and_leave_in_any_order():
    from rushlight.profiler import profile

    x = torch.ones(2)
    outer, inner = Log(), Log()
    with outer, inner:
        x.exp()
    assert outer.names == inner.names == ["aten.exp.default"]
    outer.__enter__()
    p = profile()
    p.start()
    inner.__enter__()
    outer.__exit__(None, None, None)  # before those that were entered later
    x.sin()
    p.stop()
    x.cos()
    inner.__exit__(None, None, None)
    x.tan()
    assert inner.names[1:] == ["aten.sin.default", "aten.cos.default"] and p.count("sin") == 1
    assert outer.names == ["aten.exp.default"]
    with pytest.raises(RuntimeError, match="not active"):
        inner.__exit__(None, None, None)

    class Leaves(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.__exit__(None, None, None)

    with pytest.raises(RuntimeError, match="while it runs"), Leaves():
        x.exp()


def test_modes_can_be_hidden_and_belong_to_their_thread():
    x = torch.ones(2)
    with Log() as log:
        with _disable_current_modes():
            x.exp()
        thread = threading.Thread(target=x.sin)
        thread.start()
        thread.join()
        x.cos()
    assert log.names == ["aten.cos.default"]


def test_ops_by_overload():
    aten = torch.ops.aten
    assert aten.add.Tensor is not aten.add.Scalar and aten.add.Tensor.name() == "aten::add.Tensor"
    assert (
        aten.add.Scalar(torch.ones(2), 1, 2).tolist()
        == [3, 3]
        == aten.add(torch.ones(2), 2).tolist()
    )
    schema = aten.sum.dim_IntList._schema
    assert str(schema).startswith(
        "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *"
    )
    assert [a.name for a in schema.arguments if a.kwarg_only] == ["dtype"] and not schema.is_mutable
    assert aten.exp_.default._schema.arguments[0].alias_info.is_write and aten.view.default.is_view
    assert (
        "rushlight" not in str(aten.add)
        and torch.ops.rushlight._matmul.default.namespace == "rushlight"
    )
    assert aten.mm.default.overloadpacket is aten.mm and str(aten.mm.default) == "aten.mm.default"
    assert aten.zeros.default([2], dtype=torch.int64).dtype is torch.int64
    with pytest.raises(AttributeError):
        _ = aten.mm.no_such_overload
    with pytest.raises(RuntimeError, match="unexpected keyword"):
        aten.mm.default(torch.ones(2, 2), torch.ones(2, 2), foo=1)


def test_sparse_tensors_have_no_array():
    for force in (False, True):
        for x in (torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr()):
            with pytest.raises(TypeError, match="to_dense"):
                x.numpy(force=force)
