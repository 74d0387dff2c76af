"""Functions of a program in the place of the table's ops: `Library("aten", "IMPL")`."""

import gc
import threading

import pytest

import rushlight as torch
from rushlight import _C
from rushlight.library import Library, _scoped_library, fallthrough_kernel, get_kernel

aten = torch.ops.aten


def test_on_a_device_until_the_library_is_destroyed():
    calls = []

    def my_sum(*args, **kwargs):
        calls.append((args, kwargs))
        return args[0].clone()

    x = torch.tensor([1, 2])
    with _scoped_library("aten", "IMPL") as library:
        library.impl("aten::sum", my_sum, "CPU")
        assert torch.sum(x).tolist() == [1, 2] and x.sum().tolist() == [1, 2]
        assert calls == [((x,), {})] * 2 or len(calls) == 2
        assert x.sum(0).item() == 3  # another overload
        assert torch.ones(2, device="meta").sum().shape == ()
    assert torch.sum(x).item() == 3 and not _C._is_below_autograd()


def test_a_library_that_is_forgotten_takes_its_functions_along():
    library = Library("aten", "IMPL", "CPU")
    library.impl(aten.neg.default, lambda x: x + 10)
    assert (-torch.ones(1)).item() == 11
    del library
    gc.collect()
    assert (-torch.ones(1)).item() == -1


def test_gradients_are_those_of_the_op():
    a, b = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0])
    with _scoped_library("aten", "IMPL", "CPU") as library:
        library.impl("mul.Tensor", lambda x, y: (x + y).detach())
        y = a * b
        assert y.tolist() == [4, 6] and type(y.grad_fn).__name__ == "MulBackward0"
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(b, torch.ones(2))
            assert torch.autograd.forward_ad.unpack_dual(dual.detach() * a).primal.tolist() == [
                4,
                6,
            ]
    y.sum().backward()
    assert a.grad is not None and a.grad.tolist() == [3, 4]


def test_for_autograd():
    class Triple(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with _C._AutoDispatchBelowAutograd():
                return aten.neg.default(x) * 3

        @staticmethod
        def backward(ctx, grad):
            return grad * 100

    x = torch.ones(2, requires_grad=True)
    with _scoped_library("aten", "IMPL") as library:
        library.impl("neg", Triple.apply, "Autograd")
        y = torch.neg(x)
        y.sum().backward()
        with torch.inference_mode():
            assert torch.neg(x).tolist() == [-1, -1]
    assert y.tolist() == [-3, -3] and x.grad is not None and x.grad.tolist() == [100, 100]


def test_keysets_and_redispatch():
    seen = []

    def keyed(keyset, x):
        seen.append(keyset)
        return aten.neg.default.redispatch(keyset & _C._after_autograd_keyset, x)

    with _scoped_library("aten", "IMPL") as library:
        library.impl("neg", keyed, "AutogradCPU", with_keyset=True)
        assert torch.neg(torch.ones(1)).item() == -1
    (keys,) = seen
    assert keys == _C._dispatch_keys(torch.ones(1)) and keys.has(_C.DispatchKey.AutogradCPU)
    assert [k.name for k in keys & _C._after_autograd_keyset] == ["CPU"]
    assert keys.remove(_C.DispatchKey.CPU).add(_C.DispatchKey.CPU) == keys
    assert keys.raw_repr() == (keys | keys).raw_repr() and len({keys, keys - keys}) == 2


def test_the_op_itself_can_be_had():
    kernel = get_kernel("aten::neg", "CPU")
    x = torch.ones(2, requires_grad=True)
    with _scoped_library("aten", "IMPL", "CPU") as library:
        library.impl("neg", lambda x: kernel.call_boxed(None, x) + 10)
        y = torch.neg(x)
        assert y.tolist() == [9, 9] and y.requires_grad
        assert torch.ops.aten.neg.default(x).tolist() == [9, 9]
    with pytest.raises(NotImplementedError):
        get_kernel("aten::neg", "Autograd")


def test_other_forms_and_composites():
    x = torch.ones(2)
    with _scoped_library("aten", "IMPL", "CPU") as library:
        library.impl("neg_", lambda x: x.fill_(9))
        library.impl("add.out", lambda a, b, *, alpha=1, out: out.fill_(5))
        library.impl("matmul", lambda a, b: torch.zeros(7))
        library.impl("empty.memory_format", lambda *args, **kwargs: torch.full((3,), 7.0))
        library.impl("sort", lambda x, dim=-1, descending=False: (x * 2, x.long()))
        library.impl("split.Tensor", lambda x, n, dim=0: [x[:1], x[1:]])
        y = torch.zeros(2)
        version = y._version
        assert torch.neg_(y) is y and y.tolist() == [9, 9] and y._version > version
        assert torch.add(x, x, out=y) is y and y.tolist() == [5, 5]
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).shape == (7,)
        assert torch.empty(1).tolist() == [7, 7, 7]
        assert torch.sort(x)[0].tolist() == [2, 2]
    assert torch.empty(1).shape == (1,)


def test_modes_subclasses_and_vmap_come_first():
    from rushlight.utils._python_dispatch import TorchDispatchMode

    log, x = [], torch.ones(1)

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append(str(func))
            return func(*args, **(kwargs or {}))

    with _scoped_library("aten", "IMPL", "CPU") as library:
        library.impl("neg", lambda x: x + x)
        with Log():
            y = torch.neg(x)
        assert y.item() == 2 and log == ["aten.neg.default"]
        assert torch.vmap(torch.neg)(torch.ones(3)).tolist() == [2, 2, 2]


def test_what_runs_in_other_threads_and_what_raises():
    with _scoped_library("aten", "IMPL", "CPU") as library:
        library.impl("neg", lambda x: x * 0 + 4)
        found = []
        threads = [
            threading.Thread(target=lambda: found.append(torch.neg(torch.ones(1)).item()))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [4] * 4

        def fails(x):
            raise KeyError("mine")

        library.impl("abs", fails)
        with pytest.raises(KeyError, match="mine"):
            torch.abs(torch.ones(1))
        library.impl("abs", lambda x: "no tensor")
        with pytest.raises((TypeError, RuntimeError)):
            torch.abs(torch.ones(1))
    assert torch.abs(-torch.ones(1)).item() == 1


def test_refusals():
    library = Library("aten", "IMPL", "CPU")
    with pytest.raises(TypeError, match="required to be a callable"):
        library.impl("sum", 3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(RuntimeError, match="inconsistent with the dispatch key"):
        library.impl("sum", torch.neg, "Conjugate")
    with pytest.raises(RuntimeError, match="could not parse dispatch key"):
        Library("aten", "IMPL").impl("sum", torch.neg, "Nowhere")
    with pytest.raises(RuntimeError, match="does not match namespace"):
        library.impl("mine::sum", torch.neg)
    with pytest.raises(RuntimeError, match="a name or an OpOverload"):
        library.impl(3, torch.neg)
    with pytest.raises(NotImplementedError):
        Library("aten", "IMPL").impl("sum", torch.neg, "SparseCPU")
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
        Library("aten", "DEF")
    with pytest.raises(RuntimeError, match="Cannot define an operator"):
        library.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="global namespace"):
        library.fallback(torch.neg)
    library.impl("neg", torch.neg)
    with pytest.raises(RuntimeError, match="already a kernel registered from python"):
        library.impl("neg", torch.neg, allow_override=False)
    library._destroy()
    library.impl("neg", fallthrough_kernel, allow_override=False)
    assert torch.neg(torch.ones(1)).item() == -1
    library._destroy()


def test_fallbacks_and_ops_that_are_added_to_aten():
    with (
        _scoped_library("_", "IMPL") as everywhere,
        _scoped_library("aten", "FRAGMENT") as more,
    ):
        more.define("overrides_tests(Tensor x, int n=2) -> Tensor")
        with pytest.raises(NotImplementedError):
            aten.overrides_tests(torch.ones(1))
        everywhere.fallback(lambda op, *args: (args[0] * 5, str(op))[0], "CPU")
        assert aten.overrides_tests(torch.ones(1)).item() == 5
        everywhere.fallback(
            lambda keys, op, *args: args[0] * len(list(keys)), "CPU", with_keyset=True
        )
        assert aten.overrides_tests(torch.ones(1)).item() == 1
        more.impl("overrides_tests", lambda x, n=2: x * n, "CPU")
        assert aten.overrides_tests(torch.ones(1), 3).item() == 3
        assert torch.neg(torch.ones(1)).item() == -1  # has a function there
    with pytest.raises(AttributeError):
        aten.overrides_tests  # noqa: B018


def test_tags():
    tags = aten.add.Tensor.tags
    assert {torch.Tag.core, torch.Tag.pointwise, torch.Tag.pt2_compliant_tag} == set(tags)
    assert torch.Tag.out in aten.add.out.tags and torch.Tag.inplace in aten.add_.Tensor.tags
    assert torch.Tag.inplace_view in aten.t_.default.tags
    assert torch.Tag.nondeterministic_seeded in aten.rand.default.tags
    assert torch.Tag.dynamic_output_shape in aten.nonzero.default.tags
    assert torch.Tag.view_copy in aten.expand_copy.default.tags
    assert torch.Tag.data_dependent_output in aten._local_scalar_dense.default.tags
    assert torch.Tag.reduction in aten.sum.default.tags
    from gen.registry import TAGS

    assert [tag.name for tag in torch.Tag] == TAGS
    assert [tag.value for tag in torch.Tag] == list(range(len(TAGS)))


def test_numbers_are_numbers_before_they_are_tensors():
    where = torch.tensor([0, 1])
    assert torch.ops.aten.scatter(torch.zeros(3, dtype=torch.int32), 0, where, 2).tolist() == [
        2,
        2,
        0,
    ]
    assert torch.ops.aten.scatter(torch.zeros(3).double(), 0, where, 2).tolist() == [2, 2, 0]
    assert torch.ops.aten.pow(2, torch.ones(2)).tolist() == [2, 2]


def test_arguments_that_do_not_fit_an_overload():
    aten, x = torch.ops.aten, torch.ones(2)
    for call in (
        *(aten.relu.default, lambda: aten.relu.default(x, 1), lambda: aten.relu.default(x, more=1)),
        *(lambda: aten.relu.default(x, self=x), aten.relu, lambda: aten.type_as(x)),
        *(lambda: aten.leaky_relu(x, more=1), lambda: aten.add("x", 1)),
    ):
        with pytest.raises(RuntimeError, match=r"missing|positional|keyword|multiple|expected"):
            call()
