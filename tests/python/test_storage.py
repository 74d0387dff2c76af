"""Storages: what they are made of, orders of bytes, what hangs on them, tensors made of them."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import rushlight as torch
from rushlight.multiprocessing.reductions import StorageWeakRef

KINDS = [d for d in torch._C._dtypes if d._computes]
pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


def test_bytes_are_made_of_a_size_or_of_values():
    assert torch.UntypedStorage().nbytes() == 0
    assert torch.UntypedStorage(3).nbytes() == 3
    assert torch.UntypedStorage([1, 2, 255]).tolist() == [1, 2, 255]
    for content in (0, 3, [1, 2]):
        on_meta = torch.UntypedStorage(content, device="meta")
        assert on_meta.device.type == "meta"
        assert on_meta.nbytes() == torch.UntypedStorage(content).nbytes()
        for read in (lambda s: s[0], lambda s: s.tolist()):
            with pytest.raises(NotImplementedError, match="Not available"):
                read(on_meta)
    with pytest.raises(ValueError, match="from 0 to 255"):
        torch.UntypedStorage([256])
    with pytest.raises(TypeError, match="size or bytes"):
        torch.UntypedStorage(1.5)
    with pytest.raises(RuntimeError, match="must not be negative"):
        torch.UntypedStorage(-1)


def test_what_a_program_hangs_on_it():
    storage = torch.UntypedStorage(2)
    storage.note, other = "mine", torch.UntypedStorage(2)
    storage.loop, other.loop = other, storage
    dead = weakref.ref(storage)
    del storage, other
    gc.collect()
    assert dead() is None


def test_copies_hold_their_own_bytes():
    tensor = torch.tensor([1, 2], dtype=torch.uint8)
    storage = tensor.untyped_storage()
    assert isinstance(storage, torch.UntypedStorage)
    assert issubclass(torch.UntypedStorage, torch._C.StorageBase)
    copies = [copy.copy(storage), storage.clone(), copy.deepcopy(storage)]
    copies.append(pickle.loads(pickle.dumps(storage)))
    tensor.fill_(7)
    assert [c.tolist() for c in copies] == [[1, 2]] * 4 and storage.tolist() == [7, 7]
    both = copy.deepcopy([tensor, storage])  # share memory as they did
    both[0][0] = 3
    assert both[1].tolist() == [3, 7] and tensor[0] == 7
    assert repr(storage).endswith("[torch.storage.UntypedStorage(device=cpu) of size 2]")


@pytest.mark.parametrize("dtype", KINDS)
def test_swapping_bytes_twice_changes_nothing(dtype):
    values = torch.tensor([0, 1, 2], dtype=dtype)
    storage = values.untyped_storage()
    before = storage.tolist()
    storage.byteswap(dtype)
    part = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    swapped = [b for i in range(0, len(before), part) for b in before[i : i + part][::-1]]
    assert storage.tolist() == swapped
    storage.byteswap(dtype)
    assert values.equal(torch.tensor([0, 1, 2], dtype=dtype))


def test_memory_of_other_objects_is_copied_in_its_order_of_bytes():
    data = bytearray([1, 2, 3, 4])
    assert torch.ByteStorage.from_buffer(data).tolist() == [1, 2, 3, 4]
    assert torch.ShortStorage.from_buffer(data, "big").tolist() == [258, 772]
    assert torch.IntStorage.from_buffer(data, "little").tolist() == [67305985]
    assert torch.ShortStorage.from_buffer(data, "big", 1, 2).tolist() == [772]
    assert torch.BoolStorage.from_buffer(b"\0\1\2").tolist() == [False, True, True]
    for args, error, message in [
        ((data,), TypeError, "byte_order"),
        ((data, "middle"), ValueError, "invalid byte_order"),
        ((data, "big", -1, 1), ValueError, "multiple of element size"),
        ((data, "big", 3), ValueError, "buffer has only 4 bytes"),
        ((data, "big", 1, 4), ValueError, "offset must be"),
    ]:
        with pytest.raises(error, match=message):
            torch.ShortStorage.from_buffer(*args)


@pytest.mark.parametrize("dtype", KINDS)
def test_tensors_of_storages(dtype):
    values = torch.tensor([0, 1, 1], dtype=dtype)
    for storage in (values.storage(), values.untyped_storage()):
        made = torch.tensor(storage, dtype=dtype)
        assert made.equal(values) and made.data_ptr() != values.data_ptr()
    other = torch.int64 if dtype is not torch.int64 else torch.float32
    with pytest.raises(RuntimeError, match="Expected a Storage of type"):
        torch.tensor(values.storage(), dtype=other)


def test_data_is_replaced_by_data_of_the_same_layout_alone():
    dense = torch.ones(2)
    sparse = torch.ones(3).to_sparse()
    for one, other in ((dense, sparse), (sparse, dense), (sparse, torch.eye(3).to_sparse_csr())):
        with pytest.raises(RuntimeError, match="incompatible tensor type"):
            one.data = other
    moved = torch.zeros(5).to_sparse()
    moved.data = sparse
    assert moved.shape == (3,) and moved.to_dense().equal(torch.ones(3))


def test_what_a_function_of_elements_gives_is_a_number():
    x = torch.tensor([1, 2])
    assert x.apply_(lambda k: k + k).tolist() == [2, 4]
    with pytest.raises(TypeError, match="expected a number, but got str"):
        x.apply_(lambda k: "text")
    with pytest.raises(TypeError, match="expected a number, but got str"):
        x.map_(x, lambda k, other: "text")


def test_nested_and_plain_tensors_differ_in_size():
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    for one, other in ((nested, torch.ones(2, 3)), (torch.ones(2, 3), nested)):
        assert not torch.is_same_size(one, other)
    assert torch.is_same_size(nested, nested.clone())


def test_weak_references():
    tensor = torch.ones(3)
    one, same = StorageWeakRef(tensor.untyped_storage()), StorageWeakRef(tensor[1:].storage())
    other = StorageWeakRef(torch.ones(3).untyped_storage())
    assert one == same and hash(one) == hash(same) and not one.expired()
    assert other.expired() and other != one
    address = tensor.untyped_storage()._cdata
    del tensor
    assert one.expired() and same.expired()
    again = [torch.ones(3) for _ in range(8)]  # one of them in the same place
    assert any(t.untyped_storage()._cdata == address for t in again)
    assert all(StorageWeakRef(t.untyped_storage()) != one for t in again)
    number = again[0].untyped_storage()._weak_ref()
    assert StorageWeakRef.from_weakref(number) == StorageWeakRef(again[0].untyped_storage())


def test_identities_of_tensors():
    a, b = torch.ones(2), torch.ones(2)
    assert a._cdata != b._cdata
    assert a.detach()._cdata != a._cdata
    held = [a]
    assert held[0]._cdata == a._cdata


def test_the_plain_name_is_that_of_floats():
    assert torch.Storage is torch.FloatStorage
    storage = torch.Storage([1.0, 2.0])
    assert isinstance(storage, torch.Storage) and storage.dtype == torch.float32
    assert isinstance(torch.ones(2).storage(), torch.Storage)
    assert not isinstance(torch.ones(2).double().storage(), torch.Storage)


def test_a_storage_moves_to_shared_memory_with_its_tensors():
    whole = torch.arange(6.0)
    part, turned = whole[2:], whole.view(2, 3).t()
    same = whole.untyped_storage()
    assert whole.share_memory_() is whole
    assert all(t.is_shared() for t in (whole, part, turned)) and same.is_shared()
    part[0] = 9
    assert whole.tolist() == [0, 1, 9, 3, 4, 5] and turned[2, 0] == 9
    address = whole.data_ptr()
    assert same.share_memory_() is same and whole.data_ptr() == address
    assert part.data_ptr() == address + 8
    with pytest.raises(RuntimeError, match="not resizable"):
        whole.resize_(100)
    for made in (torch.ones(3).untyped_storage(), torch.TypedStorage([1.0, 2.0])):
        values = made.tolist()
        assert made.share_memory_() is made and made.is_shared() and made.tolist() == values
    assert torch.ones(0).share_memory_().is_shared()
    with pytest.raises(RuntimeError, match="only available on CPU"):
        torch.empty(2, device="meta").untyped_storage().share_memory_()


def test_arrays_outlive_the_move_of_their_storage():
    t = torch.arange(4.0)
    array = t.numpy()
    t.share_memory_()
    gc.collect()
    churn = [torch.full((4,), 7.0) for _ in range(100)]
    assert array.tolist() == [0, 1, 2, 3] and t.tolist() == [0, 1, 2, 3] and churn
    del t
    gc.collect()
    assert array.tolist() == [0, 1, 2, 3]
    owned = np.arange(4.0)
    t = torch.from_numpy(owned)
    t.share_memory_()
    t[0] = 5
    assert owned[0] == 0 and t[0] == 5


def test_a_parameter_keeps_its_gradient_where_it_moves():
    layer = torch.nn.Linear(3, 2)
    tied = layer.weight
    graph = layer(torch.ones(1, 3)).sum()
    layer.share_memory()
    assert layer.weight is tied and tied.is_shared()
    graph.backward()
    assert tied.grad.tolist() == [[1, 1, 1]] * 2


def test_the_memory_before_the_move_is_given_back():
    torch.cpu.memory_stats()
    t = torch.ones(1 << 20)
    before = torch.cpu.memory_allocated()
    t.share_memory_()
    assert torch.cpu.memory_allocated() <= before - 4 * (1 << 20)
