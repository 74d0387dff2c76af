"""What PyTorch promises of old names and of arguments that are refused."""

import pickle
import sys

import pytest

import rushlight as rl


def test_default_types_by_tensor_types():
    before = rl.get_default_dtype()
    try:
        with pytest.warns(UserWarning, match=r"deprecated as of PyTorch 2\.1"):
            rl.set_default_tensor_type(rl.DoubleTensor)
        assert rl.get_default_dtype() == rl.float64 and rl.ones(1).dtype == rl.float64
        with pytest.warns(UserWarning):
            rl.set_default_tensor_type("torch.FloatTensor")
        assert rl.get_default_dtype() == rl.float32
        with pytest.warns(UserWarning), pytest.raises(TypeError, match="only floating-point"):
            rl.set_default_tensor_type(rl.IntTensor)
        with pytest.raises(TypeError, match="invalid type object"):
            rl.set_default_tensor_type(rl.float32)
        if not rl.cuda.is_available():
            for kind in (rl.cuda.FloatTensor, "torch.cuda.FloatTensor"):
                with pytest.warns(UserWarning), pytest.raises(TypeError, match="no CUDA device"):
                    rl.set_default_tensor_type(kind)
            assert rl.ones(1).is_cpu  # where they were before
    finally:
        rl.set_default_dtype(before)


def test_tensor_types_say_what_they_are_and_are_no_bases():
    kinds = (rl.FloatTensor, rl.cuda.FloatTensor, rl.sparse.FloatTensor)
    assert [kind.is_cuda for kind in kinds] == [False, True, False]
    assert [kind.is_sparse for kind in kinds] == [False, False, True]
    for kind in kinds:
        with pytest.raises(TypeError, match="is not an acceptable base type"):
            type("Own", (kind,), {})


def test_edges_that_are_refused():
    x, y = (rl.ones(2, requires_grad=True).clone() for _ in range(2))
    edge = rl.autograd.graph.get_gradient_edge(y)
    with pytest.raises(RuntimeError, match="cannot be used when the given input is a GradientEdge"):
        rl.autograd.grad(x.sum(), (x, edge), allow_unused=True, materialize_grads=True)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_dimensions_without_batch(dims):
    layer = getattr(rl.nn, f"InstanceNorm{dims}d")(4)
    size = [4] + [2] * (layer._get_no_batch_dim() - 1)
    assert layer(rl.rand(size)).shape == tuple(size)


def test_gradients_of_convolutions_have_two_names():
    assert rl.nn.functional.grad is rl.nn.grad


def test_names_of_devices_that_are_not_here():
    for name in ("mps", "xpu", "hpu", "mtia", "xla", "vulkan"):
        device = rl.device(name, 1)
        assert (device.type, device.index, str(device)) == (name, 1, f"{name}:1")
        assert repr(device) == f"device(type='{name}', index=1)" and device != rl.device("cpu", 1)
        assert pickle.loads(pickle.dumps(device)) == device
        assert not rl.is_autocast_enabled(name) and not rl.amp.is_autocast_available(name)
    uses = (
        lambda d: rl.zeros(2, device=d),
        lambda d: rl.empty(0, device=d),
        lambda d: rl.tensor([1.0], device=d),
        lambda d: rl.ones(2).to(d),
        lambda d: rl.nn.Linear(2, 2).to(d),
        lambda d: rl.Generator(d),
    )
    for use in uses:
        with pytest.raises(NotImplementedError, match="mps devices by name alone"):
            use(rl.device("mps"))
        with pytest.raises(AssertionError, match="Torch not compiled with XPU enabled"):
            use("xpu")
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda, .* device type at start"):
        rl.device("npu")


def test_numbers_come_first():
    x = rl.tensor([3, 2])
    assert rl.add(7, x).tolist() == [10, 9] and rl.sub(1, x, alpha=2).tolist() == [-5, -3]
    assert rl.mul(0.5, x).tolist() == [1.5, 1] and rl.multiply(2, x).dtype == rl.int64
    assert rl.div(6, x).tolist() == rl.true_divide(6, x).tolist() == rl.divide(6, x).tolist()
    assert rl.div(7, x, rounding_mode="floor").tolist() == rl.floor_divide(7, x).tolist() == [2, 3]
    assert rl.subtract(1, x).tolist() == [-2, -1] and rl.add(1, 2).item() == 3
    assert rl.mul(2.0, rl.ones(2, dtype=rl.float16)).dtype == rl.float16
    w = rl.ones(2, requires_grad=True)
    rl.div(3.0, w).sum().backward()
    assert w.grad.tolist() == [-3, -3]
    with pytest.raises(TypeError):
        rl.add("1", x)


def test_tensors_set_on_other_memory():
    x = rl.arange(6.0)
    y = rl.ones(2)
    assert y.set_(x, 1, (2, 2)) is y and y.tolist() == [[1, 2], [3, 4]] and y._version == 1
    y[0, 0] = 9
    assert x[1] == 9
    assert rl.ones(2).set_(x.untyped_storage(), 2, (2,), (2,)).tolist() == [2, 4]
    assert rl.ones(2, dtype=rl.int32).set_(x.untyped_storage()).shape == (6,)
    assert rl.ones(2).set_().shape == (0,) and rl.ones(2).set_(x).stride() == (1,)
    assert rl.ones(1).set_(rl.ones(2), 0, (10,)).shape == (10,)  # the memory grows
    with pytest.raises(RuntimeError, match="Could not set tensor of type"):
        rl.ones(2, dtype=rl.int32).set_(x)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        rl.ones(2, requires_grad=True).set_(x)
    with pytest.raises(RuntimeError, match="invalid storage offset"):
        rl.ones(2).set_(x, -1, (1,))
    with pytest.raises(RuntimeError, match="different device"):
        rl.ones(2).set_(rl.ones(2, device="meta"))
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        rl.ones(2).set_(x, 0)


def test_sizes_of_storages_are_those_of_their_bytes():
    empty, full = (rl.zeros(n).untyped_storage() for n in (0, 1000))
    assert sys.getsizeof(full) - sys.getsizeof(empty) == 4000


def test_arrays_of_parameters_where_nothing_is_recorded():
    w = rl.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        w.numpy()
    with rl.no_grad():
        w.numpy()[0] = 3
    assert w[0] == 3


def test_running_transforms_are_told():
    seen = []

    def f(x):
        seen.append(rl._C._are_functorch_transforms_active())
        return x.sum()

    x = rl.ones(2)
    f(x)
    rl.func.grad(f)(x)
    rl.func.jvp(f, (x,), (x,))
    rl.vmap(f)(x[None])
    rl.func.vjp(f, x)[1](rl.tensor(1.0))
    with pytest.raises(ZeroDivisionError):
        rl.func.grad(lambda x: 1 / 0)(x)
    f(x)
    assert seen == [False, True, True, True, True, False]


def test_overloads_know_their_op():
    add = rl.ops.aten.add
    assert add.Tensor.overloadpacket is add.Tensor._overloadpacket is add
