"""Fake tensors: known values, one fake for one tensor, the mode that compares with real ones."""

import contextlib
import copy
import gc
import weakref

import numpy as np
import pytest

import rushlight as torch
import rushlight.fx.experimental.proxy_tensor
from rushlight import _prims_common as prims
from rushlight._subclasses import CrossRefFakeMode, FakeTensorMode
from rushlight._subclasses import settings as config
from rushlight._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorConverter,
    MetadataMismatchError,
    unset_fake_temporarily,
)
from rushlight.utils._mode_utils import all_same_mode, no_dispatch
from rushlight.utils._python_dispatch import TorchDispatchMode


def test_one_number_of_the_program_is_known():
    with FakeTensorMode():
        x = torch.tensor(4.0)
        assert isinstance(x, FakeTensor) and x.item() == 4
        assert (x * 2 + 1).item() == 9
        y = x.add_(1)
        assert x.item() == y.item() == 5
        assert torch.div(4, 4, rounding_mode="trunc").item() == 1
        assert torch.div(3, 2).shape == ()
        with pytest.raises(DataDependentOutputException):
            torch.tensor([1, 2])[0].item()
        state = torch.get_rng_state()
        assert torch.rand_like(x).constant is None
        with unset_fake_temporarily():
            assert torch.equal(torch.get_rng_state(), state)


def test_values_are_forgotten_where_they_are_written():
    with FakeTensorMode():
        x = torch.tensor([1.0])
        y = x[:]
        assert x.constant is not None and y.constant is not None
        y.add_(torch.rand([1]))
        assert x.constant is None and y.constant is None
        x = torch.tensor([1])
        x.resize_([2])
        assert x.shape == (2,) and x.constant is None
        x = torch.tensor([1])
        y = x.expand([4])
        assert y.constant is None
        y[0] = 1
        assert x.constant is None


def test_one_fake_for_one_tensor():
    x = torch.rand(2, 2, 2)
    mode = FakeTensorMode()
    fake = mode.from_tensor(x)
    assert mode.from_tensor(x) is fake and mode.from_tensor(fake) is fake
    part = mode.from_tensor(x[1])
    assert part._meta.untyped_storage()._cdata == fake._meta.untyped_storage()._cdata
    assert part.stride() == (2, 1) and part.storage_offset() == 4
    converter = FakeTensorConverter()
    fake = converter.from_real_tensor(mode, x)
    assert len(converter.tensor_memo) == 1
    del x, fake
    assert len(converter.tensor_memo) == 0
    meta = torch.rand(2, device="meta")
    fake = converter.from_meta_and_device(mode, meta, "cpu")
    assert fake.device.type == "cpu" and converter.from_meta_and_device(mode, meta, "cpu") is fake
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        FakeTensorMode().from_tensor(fake)


def test_a_mode_goes_at_once():
    x = torch.rand(4)
    mode = FakeTensorMode()
    y = mode.from_tensor(x)
    watched = weakref.ref(mode)
    gc.disable()
    try:
        del mode, y
        assert watched() is None
    finally:
        gc.enable()


def test_printing_and_leaving():
    class Counting(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.count += 1
            return func(*args, **(kwargs or {}))

    with FakeTensorMode() as mode:
        assert repr(torch.empty(2, 2)) == "FakeTensor(..., size=(2, 2))"
        on_meta = torch.empty(2, dtype=torch.int64, device="meta")
        assert repr(on_meta) == "FakeTensor(..., device='meta', size=(2,), dtype=torch.int64)"
        with unset_fake_temporarily():
            assert not isinstance(torch.ones(2), FakeTensor)
        with Counting() as counting, no_dispatch():
            torch.ones(2)
        assert counting.count == 0
    assert all_same_mode([mode, mode]) and not all_same_mode([mode, counting])
    assert not all_same_mode([])


def test_fakes_beside_real_tensors():
    with CrossRefFakeMode():
        y = torch.full((4, 4), 1).t() + torch.ones(4)
        assert y.shape == (4, 4) and torch.nonzero(y).shape == (16, 2)

    @torch.library.custom_op("fake_tests::f", mutates_args=())
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    f.register_fake(lambda x: x.new_empty(x.shape[0] + 1))
    with CrossRefFakeMode(), pytest.raises(MetadataMismatchError, match="shape"):
        f(torch.ones(2))
    with CrossRefFakeMode(lambda func: "fake_tests" in str(func)):
        f(torch.ones(2))


def test_helpers_of_code_over_ops():
    kinds = prims.ELEMENTWISE_TYPE_PROMOTION_KIND
    half, i = torch.ones(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.int64)
    assert prims.elementwise_dtypes(half, 2, type_promotion_kind=kinds.DEFAULT) == (
        torch.float32,
        torch.bfloat16,
    )
    assert prims.elementwise_dtypes(half, i, type_promotion_kind=kinds.NO_OPMATH) == (
        torch.bfloat16,
        torch.bfloat16,
    )
    assert prims.elementwise_dtypes(i, 2, type_promotion_kind=kinds.INT_TO_FLOAT) == (
        torch.float32,
        torch.float32,
    )
    assert prims.elementwise_dtypes(half, type_promotion_kind=kinds.ALWAYS_BOOL)[1] is torch.bool
    x = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert prims.suggest_memory_format(x) is torch.channels_last
    assert prims.make_channels_last_strides_for(x.shape) == x.stride()
    assert prims.make_contiguous_strides_for((2, 0, 3)) == (3, 3, 1)
    assert prims.make_contiguous_strides_for((2, 3, 4), row_major=False) == (12, 1, 3)
    assert prims.compute_elementwise_output_strides(x, x.half()) == x.stride()
    assert prims.get_higher_dtype(half, 1.0) is torch.float32
    assert prims.canonicalize_dims(3, (-1, 0)) == (2, 0)
    with pytest.raises(IndexError, match="out of range"):
        prims.canonicalize_dim(3, 3)
    prims.compare_tensor_meta(x, x.clone(), check_strides=True)
    with pytest.raises(MetadataMismatchError, match="Stride"):
        prims.compare_tensor_meta(x, x.contiguous(), check_strides=True)
    with pytest.raises(MetadataMismatchError, match="dtype"):
        prims.compare_tensor_meta(x, x.double())


@pytest.fixture
def real_tensors(monkeypatch):
    monkeypatch.setattr(config, "fake_tensor_propagate_real_tensors", True)


def test_real_tensors_are_carried_along(real_tensors):
    x = torch.randn(2, 3)
    mode = FakeTensorMode()
    fake, column = mode.from_tensor(x), mode.from_tensor(x[:, 1])
    assert fake.real_tensor is not x and torch.equal(fake.real_tensor, x)
    with mode:
        y = fake.mul(2)
        part = y[1:]
        y.add_(1)
        column.zero_()  # shares memory with the fake of x, not with x
        made, written = torch.ones(2), torch.tensor([1.0, 2])
        with pytest.raises(DataDependentOutputException):
            y.sum().item()
    assert torch.equal(y.real_tensor, x * 2 + 1) and torch.equal(part.real_tensor, (x * 2 + 1)[1:])
    assert fake.real_tensor[:, 1].eq(0).all() and not x[:, 1].eq(0).any()
    assert made.real_tensor.tolist() == [1, 1] and written.real_tensor.tolist() == [1, 2]


def test_real_tensors_go_through_backward_and_ops_of_ones_own(real_tensors):
    with FakeTensorMode():
        x = torch.full((2,), 3.0, requires_grad=True)
        x.square().sum().backward()
    assert isinstance(x.grad, FakeTensor) and x.grad.real_tensor.tolist() == [6, 6]
    with torch.library._scoped_library("fakes_test", "FRAGMENT") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x * 2, "CPU")
        torch.library.register_fake("fakes_test::twice", torch.empty_like, lib=lib)
        with FakeTensorMode():
            assert torch.ops.fakes_test.twice(torch.ones(3)).real_tensor.tolist() == [2, 2, 2]


def test_without_the_setting_there_are_no_real_tensors():
    mode = FakeTensorMode()
    assert not mode.propagate_real_tensors
    assert mode.from_tensor(torch.ones(2)).real_tensor is None


def test_what_a_fake_says_of_the_real_one():
    x = torch.rand(4, requires_grad=True)
    x.grad = torch.rand(4)
    mode = FakeTensorMode()
    fake = mode.from_tensor(x)
    assert isinstance(fake.grad, FakeTensor) and fake.grad.shape == (4,)
    assert fake.untyped_storage().device.type == "meta" and fake.untyped_storage().nbytes() == 16
    with mode:
        assert repr(torch.ones(2)) == "FakeTensor(..., size=(2,))"
        assert repr(x).startswith("tensor([")  # printing is no op of the program


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor([1.0, 2]),
        lambda: torch.tensor(np.zeros(2)),
        lambda: torch.as_tensor([1, 2]),
        lambda: torch.as_tensor(np.zeros(2), dtype=torch.float32),
        lambda: torch.asarray(np.zeros(2)),
        lambda: torch.from_numpy(np.zeros(2)),
        lambda: torch.Tensor([1, 2]),
        lambda: torch.Tensor(2),
        lambda: torch.FloatTensor([1, 2]),
        lambda: torch.zeros(3).new_tensor([1, 2]),
        lambda: torch.zeros(3).new([1, 2]),
    ],
)
def test_data_of_the_program_become_fakes(make):
    with FakeTensorMode():
        made = make()
    assert isinstance(made, FakeTensor) and made.shape == (2,)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_fakes(mode):
    index, offsets = torch.tensor([1, 2, 4, 5]), torch.tensor([0, 3])
    bag = torch.nn.EmbeddingBag(10, 3, mode=mode)
    with FakeTensorMode() as fakes:
        given = [fakes.from_tensor(t) for t in (index, bag.weight, offsets)]
        assert torch.nn.functional.embedding_bag(*given, mode=mode).shape == (2, 3)
    # Weights on meta take indices from anywhere.
    assert bag.to("meta")(index, offsets).is_meta


def test_writes_by_masks_change_no_shape():
    x, mask = torch.zeros(3, 4, 5), torch.ones(3, 4, dtype=torch.bool)
    with FakeTensorMode() as mode:
        fake, where = mode.from_tensor(x), mode.from_tensor(mask)
        for indices, values in (
            ([where], torch.zeros(())),
            ([where], torch.zeros(7, 5)),
            ([where[:, 0]], torch.zeros(2, 4, 5)),
            ([None, where[0]], torch.zeros(3, 2, 5)),
        ):
            assert fake.index_put(indices, values).shape == (3, 4, 5)
            fake[tuple(slice(None) if i is None else i for i in indices)] = values
        with pytest.raises(DynamicOutputShapeException):
            _ = fake[where]
        with pytest.raises(RuntimeError):
            fake.index_put([where], torch.zeros(7, 4))


@pytest.mark.parametrize("shape", [(4,), (2, 4), (2, 3, 4), (2, 2, 3, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_results_of_linear_are_written(shape, bias):
    layer = torch.nn.Linear(4, 4, bias=bias)
    net, x = torch.nn.Sequential(layer, torch.nn.ReLU(inplace=True)), torch.randn(shape)
    with torch.no_grad():
        program = torch.export.export(net, (x,))
    assert torch.equal(program.module()(x), net(x))
    assert torch.equal(torch.export.export(net, (x,)).module()(x), net(x))
    traced = torch.fx.experimental.proxy_tensor.make_fx(net)(x)
    assert torch.allclose(traced(x), net(x), atol=1e-6)  # addmm rounds otherwise
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = net(mode.from_tensor(x))
        assert not layer(mode.from_tensor(x))._is_view()
    assert fake.shape == x.shape


@pytest.mark.parametrize("fake", [False, True])
def test_values_that_nobody_knows_are_not_looked_at(fake):
    mode = FakeTensorMode() if fake else contextlib.nullcontext()
    device = "cpu" if fake else "meta"
    with mode:
        i = torch.zeros(2, 3, dtype=torch.long, device=device)
        p = torch.ones(2, 3, device=device)
        assert torch.nn.functional.one_hot(i, 4).shape == (2, 3, 4)
        for options in ({}, {"replacement": True}):
            assert torch.multinomial(p, 2, **options).shape == (2, 2)
        for counts in (i[:, 0], i[0, :1]):
            assert torch.repeat_interleave(p, counts, 0, output_size=4).shape == (4, 3)
        if not fake:
            assert torch.nn.functional.rrelu(p, training=True).shape == (2, 3)
        with pytest.raises(RuntimeError):
            torch.nn.functional.one_hot(i)
        with pytest.raises(RuntimeError, match="positive"):
            torch.nn.functional.one_hot(i, 0)


def test_one_hot_rows_are_exported():
    class Rows(torch.nn.Module):
        def forward(self, i):
            return torch.nn.functional.one_hot(i, 3)

    i = torch.tensor([[0, 2], [1, 1]])
    program = torch.export.export(Rows(), (torch.zeros_like(i),))
    assert torch.equal(program.module()(i), torch.eye(3, dtype=torch.long)[i])


@pytest.mark.parametrize("inplace", [False, True])
def test_random_slopes_of_fakes(inplace):
    """In training each element below zero has a slope of its own: how many there are, a fake does not know."""
    with FakeTensorMode():
        x = torch.empty(3, 4, requires_grad=True)
        y = torch.nn.functional.rrelu(x * 1, training=True, inplace=inplace)
        y.sum().backward()
        assert y.shape == x.grad.shape == (3, 4)


@pytest.mark.parametrize("within", [False, True])
def test_copies_are_fakes_of_the_same_mode(within):
    """In the mode or outside of it, with what programs have attached, and without the values that nobody has."""
    mode = FakeTensorMode()
    with mode:
        layer = torch.nn.Linear(2, 3)
        layer.tied = layer.weight
        layer.weight.note = ["mine"]
        layer(torch.ones(1, 2)).sum().backward()
        part = torch.ones(3, 2).t()
    with mode if within else contextlib.nullcontext():
        copied = copy.deepcopy(layer)
        assert copied.tied is copied.weight and copied.weight is not layer.weight
        assert len(list(copied.parameters())) == 2 and copied.weight.fake_mode is mode
        assert copied.weight.note == ["mine"] and copied.weight.note is not layer.weight.note
        assert copied.weight.grad.shape == (3, 2) and copied.weight.device.type == "cpu"
        for t in (copy.copy(part), copy.deepcopy(part)):
            assert t.fake_mode is mode and t.stride() == (1, 2) and (t + part).shape == (2, 3)
        leaf = copy.copy(part.clone().requires_grad_())
        assert leaf.requires_grad and leaf.is_leaf
        with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
            copy.deepcopy(leaf * 2)


def test_the_innermost_of_fake_modes_makes_tensors():
    outer, inner = FakeTensorMode(), FakeTensorMode()
    with outer:
        with outer:
            assert (torch.ones(2) + 1).fake_mode is outer
        with inner:
            assert (torch.ones(2) + 1).fake_mode is inner
            torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()
        assert (torch.ones(2) + 1).fake_mode is outer
