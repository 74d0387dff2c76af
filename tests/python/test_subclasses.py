"""Tensors that bring their own handling: wrapper subclasses, nested ones, fake tensors."""

import copy
import gc
import pickle
from typing import ClassVar

import pytest

import rushlight as torch
from rushlight._subclasses import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from rushlight.overrides import TorchFunctionMode
from rushlight.utils._python_dispatch import (
    TorchDispatchMode,
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)
from rushlight.utils._pytree import tree_map_only

aten = torch.ops.aten


class Wrapper(torch.Tensor):
    """Holds a tensor and passes every op on to it, noting the names."""

    seen: list = []  # noqa: RUF012
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            inner.stride(),
            inner.storage_offset(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=inner.requires_grad,
        )

    def __init__(self, inner):
        self.inner = inner.detach()

    def __repr__(self, *, tensor_contents=None):
        return f"{type(self).__name__}({self.inner!r})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        Wrapper.seen.append(str(func))
        inside = tree_map_only(Wrapper, lambda w: w.inner, (args, kwargs or {}))
        made = func(*inside[0], **inside[1])
        out = tree_map_only(torch.Tensor, cls, made)
        return return_and_correct_aliasing(func, args, kwargs, out)

    def __tensor_flatten__(self):
        return ["inner"], None

    @classmethod
    def __tensor_unflatten__(cls, inner, context, outer_size, outer_stride):
        return cls(inner["inner"])


class Twice(Wrapper):
    """A class derived from another that handles ops, too."""


@pytest.fixture(autouse=True)
def _fresh():
    Wrapper.seen.clear()


def test_ops_go_to_the_class_and_come_back_as_it():
    x = Wrapper(torch.arange(6.0).reshape(2, 3))
    y = (x + 1).sum(dim=1)
    assert type(y) is Wrapper and y.inner.tolist() == [6, 15] and y.shape == (2,)
    assert Wrapper.seen == ["aten.add.Tensor", "aten.sum.dim_IntList"]
    assert torch.mm(x, torch.ones(3, 1)).inner.tolist() == [[3], [12]]


def test_gradients_flow_through_wrappers():
    x = Wrapper(torch.tensor([1.0, 2.0], requires_grad=True))
    assert x.requires_grad and x.is_leaf
    y = (x * x).sum()
    assert y.grad_fn is not None
    y.backward()
    assert type(x.grad) is Wrapper and x.grad.inner.tolist() == [2, 4]


def test_writes_views_and_outputs():
    x = Wrapper(torch.zeros(2, 3))
    assert x.add_(1) is x and x.inner.tolist() == [[1, 1, 1], [1, 1, 1]]
    v = x[0]
    assert type(v) is Wrapper and v._base is x
    v.mul_(3)
    assert x.inner[0].tolist() == [3, 3, 3]
    w = Wrapper(torch.ones(2, 3, requires_grad=True))
    y = w * 1
    y[0].mul_(3)  # a write to a view is one to what it is a view of
    y.sum().backward()
    assert w.grad.inner.tolist() == [[3, 3, 3], [1, 1, 1]]
    out = Wrapper(torch.empty(2, 3))
    Wrapper.seen.clear()
    assert torch.exp(Wrapper(torch.zeros(2, 3)), out=out) is out
    assert Wrapper.seen == ["aten.exp.out"] and out.inner.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert type(x.detach()) is Wrapper and "aten.detach.default" in Wrapper.seen
    assert type(torch.zeros_like(x)) is Wrapper and Wrapper.seen[-1] == "aten.zeros_like.default"
    assert type(x.data) is Wrapper and type(torch.nn.Parameter(x)) is Wrapper


def test_lists_and_values():
    x = Wrapper(torch.ones(2))
    assert torch.cat([torch.zeros(1), x]).inner.tolist() == [0, 1, 1]
    assert x.sum().item() == 2 and "aten._local_scalar_dense.default" in Wrapper.seen
    assert bool(x.sum() > 1)


def test_nested_wrappers():
    class Outer(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            Wrapper.seen.append("outer")
            inside = tree_map_only(cls, lambda w: w.inner, (args, kwargs or {}))
            return tree_map_only(torch.Tensor, cls, func(*inside[0], **inside[1]))

    x = Outer(Wrapper(torch.ones(2)))
    Wrapper.seen.clear()
    y = x.neg()
    assert Wrapper.seen[:2] == ["outer", "aten.neg.default"]
    assert type(y) is Outer and type(y.inner) is Wrapper and y.inner.inner.tolist() == [-1, -1]


def test_subclasses_are_asked_first_and_may_decline():
    class Declines(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            Wrapper.seen.append("declined")
            return NotImplemented

    a, b = Wrapper(torch.ones(2)), Twice(torch.ones(2))
    assert type(a + b) is Twice
    with pytest.raises(TypeError, match="returned NotImplemented"):
        Declines(torch.ones(2)).exp()
    Wrapper.seen.clear()
    assert type(Declines(torch.ones(2)) + a) is Wrapper and Wrapper.seen == [
        "declined",
        "aten.add.Tensor",
    ]


def test_modes_come_before_tensors():
    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Wrapper.seen.append(("mode", types))
            return func(*args, **(kwargs or {}))

    x = Wrapper(torch.ones(2))
    Wrapper.seen.clear()
    with Log():
        x.exp()
    assert Wrapper.seen == [("mode", (Wrapper,)), "aten.exp.default"]


def test_memory_that_is_not_there():
    x = Wrapper(torch.ones(2))
    for use in (lambda: x.data_ptr(), lambda: x.numpy(), lambda: x.tolist(), lambda: memoryview(x)):
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            use()
    with torch._C._DisableTorchDispatch(), pytest.raises((RuntimeError, NotImplementedError)):
        x + 1


def test_real_subclasses_with_dispatch():
    class Logged(torch.Tensor):
        calls: list = []  # noqa: RUF012

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.calls.append(str(func))
            with torch._C._DisableTorchDispatch():
                return func(*args, **(kwargs or {}))

    x = torch.Tensor._make_subclass(Logged, torch.ones(3), False)
    assert (x + 1).tolist() == [2, 2, 2] and "aten.add.Tensor" in Logged.calls
    assert x.data_ptr() != 0


def test_flattening():
    x = Wrapper(torch.ones(2, 2))
    assert is_traceable_wrapper_subclass(x) and not is_traceable_wrapper_subclass(torch.ones(1))
    doubled = transform_subclass(x, lambda name, t: t * 2)
    assert type(doubled) is Wrapper and doubled.inner.tolist() == [[2, 2], [2, 2]]


def test_a_wrapper_needs_a_dispatch():
    class Plain(torch.Tensor):
        pass

    with pytest.raises(RuntimeError, match="__torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(Plain, (2,))


# ---- fake tensors ----


def test_fake_tensors_compute_shapes():
    with FakeTensorMode() as mode:
        x = torch.empty(2, 3)
        y = x @ torch.ones(3, 4, dtype=torch.float32)
        assert isinstance(x, FakeTensor) and y.shape == (2, 4) and y.device.type == "cpu"
        z = torch.tensor([1, 2])
        assert isinstance(z, FakeTensor) and z.dtype is torch.int64
        with pytest.raises(DataDependentOutputException):
            y.sum().item()
        with pytest.raises(DynamicOutputShapeException):
            y.nonzero()
    assert mode.from_tensor(x) is x and (x + 1).shape == (2, 3)
    assert isinstance(x + 1, FakeTensor)


def test_fake_devices():
    with FakeTensorMode():
        x = torch.empty(4, device="cuda")
        assert x.device.type == "cuda" and (x * 2).device.type == "cuda"
        assert (x + torch.empty(())).device.type == "cuda"
        assert x.cpu().device.type == "cpu" and x.to("meta").device.type == "meta"
        with pytest.raises(RuntimeError, match="found two different devices"):
            x + torch.empty(4)


def test_fake_modules_train():
    mode = FakeTensorMode()
    with mode:
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(8 * 36, 5),
        )
        loss = torch.nn.functional.cross_entropy(
            model(torch.empty(2, 3, 8, 8)), torch.zeros(2, dtype=torch.int64)
        )
        loss.backward()
    assert isinstance(loss, FakeTensor) and loss.shape == ()
    assert isinstance(model[0].weight, FakeTensor) and model[0].weight.grad.shape == (8, 3, 3, 3)


def test_real_tensors_under_a_fake_mode():
    real = torch.ones(2, requires_grad=True)
    mode = FakeTensorMode()
    fake = mode.from_tensor(real)
    assert mode.from_tensor(real) is fake and fake.requires_grad and fake.shape == (2,)
    with mode, pytest.raises(AssertionError, match="allow_non_fake_inputs"):
        fake + torch.nn.Parameter.__new__(torch.nn.Parameter, real)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(torch.empty(2) + real, FakeTensor)
    assert real.tolist() == [1, 1]
    assert "size=(2,)" in repr(fake)


GEOMETRY = {
    "t_": ((3, 4), ()),
    "transpose_": ((1, 2, 3), (0, 2)),
    "swapaxes_": ((1, 2, 3), (0, 1)),
    "squeeze_": ((1, 2, 1), ()),
    "squeeze_.dim": ((1, 2, 1), (0,)),
    "squeeze_.dims": ((1, 2, 1), ((0, 2),)),
    "unsqueeze_": ((2, 3), (1,)),
    "as_strided_": ((2, 3), ((3, 2), (1, 3))),
    "resize_": ((2, 3), (6,)),
}


@pytest.mark.parametrize("name", GEOMETRY)
def test_geometry_in_place(name):
    """The wrapper follows the tensor inside, which is changed by the same op."""
    sizes, arguments = GEOMETRY[name]
    method = name.partition(".")[0]
    w = Wrapper(torch.arange(12.0)[: torch.Size(sizes).numel()].reshape(sizes))
    plain = w.inner.clone()
    Wrapper.seen = []
    version = w._version
    assert getattr(w, method)(*arguments) is w
    getattr(plain, method)(*arguments)
    assert [s.rpartition(".")[0] for s in Wrapper.seen] == [
        "aten." + method.replace("swapaxes", "transpose")
    ]
    assert w.shape == w.inner.shape == plain.shape
    assert w.stride() == w.inner.stride() == plain.stride()
    assert torch.equal(w.inner, plain) and w._version > version


@pytest.mark.parametrize("name", [n for n in GEOMETRY if n != "resize_"])
def test_geometry_in_place_is_recorded(name):
    sizes, arguments = GEOMETRY[name]
    method = name.partition(".")[0]
    value = torch.randn(sizes)
    weight = torch.randn(getattr(value.clone(), method)(*arguments).shape)
    grads = []
    for leaf in (Wrapper(value).requires_grad_(), value.clone().requires_grad_()):
        x = leaf * 2
        getattr(x, method)(*arguments)
        (x * weight).sum().backward()
        grads.append(leaf.grad.inner if isinstance(leaf.grad, Wrapper) else leaf.grad)
    assert torch.equal(*grads)


def test_geometry_in_place_under_a_mode():
    """A mode sees the op, which changes the tensor once and is recorded."""
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    leaf = torch.randn(2, 3).requires_grad_()
    x = leaf * 1
    with Mode():
        x.t_()
    assert "aten.t_.default" in seen and x.shape == (3, 2) and "TBackward" in x.grad_fn.name()
    x.sum().backward()
    assert torch.equal(leaf.grad, torch.ones(2, 3))


class Asked(torch.Tensor):
    """Answers what it is told to, and notes what it was asked."""

    questions: list = []  # noqa: RUF012
    answers: dict = {}  # noqa: RUF012

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.questions.append(func)
        return cls.answers.get(func, NotImplemented)


QUESTIONS = [
    ("sizes", lambda x: x.shape, aten.sym_size.default, (5, 7)),
    ("sizes", lambda x: x.size(), aten.sym_size.default, (5, 7)),
    ("sizes", lambda x: x.size(1), aten.sym_size.default, (5, 7)),
    ("sizes", len, aten.sym_size.default, (5, 7)),
    ("sizes", lambda x: x.dim(), aten.dim.default, 4),
    ("sizes", lambda x: x.ndim, aten.dim.default, 4),
    ("sizes", lambda x: x.numel(), aten.sym_numel.default, 35),
    ("sizes", lambda x: x.storage_offset(), aten.sym_storage_offset.default, 3),
    ("sizes", lambda x: x.stride(), aten.sym_stride.default, (9, 4)),
    ("strides", lambda x: x.stride(0), aten.sym_stride.default, (9, 4)),
    ("strides", lambda x: x.is_contiguous(), aten.is_contiguous.default, False),
    (
        "strides",
        lambda x: x.is_contiguous(memory_format=torch.contiguous_format),
        aten.is_contiguous.default,
        False,
    ),
]


@pytest.mark.parametrize("wrapper", [True, False])
@pytest.mark.parametrize(("policy", "read", "question", "answer"), QUESTIONS)
def test_a_class_is_asked_for_its_geometry(wrapper, policy, read, question, answer):
    make = torch.Tensor._make_wrapper_subclass if wrapper else torch.Tensor._make_subclass
    x = make(Asked, (2, 3) if wrapper else torch.ones(2, 3), dispatch_sizes_strides_policy=policy)
    Asked.questions, Asked.answers = [], {}
    name = question.overloadpacket.__name__
    with pytest.raises(TypeError, match=f"Multiple dispatch failed for 'torch.ops.aten.{name}'"):
        read(x)
    Asked.answers = {question: answer}
    assert read(x) in (answer, *(answer if isinstance(answer, tuple) else ()))
    assert Asked.questions == [question] * 2
    Asked.answers = {question: None}  # what is stored counts
    assert read(x) == read(torch.ones(2, 3))


def test_a_class_is_asked_for_device_and_layout():
    x = torch.Tensor._make_wrapper_subclass(Asked, (2,), dispatch_device=True, dispatch_layout=True)
    prim = torch.ops.prim
    Asked.answers = {
        prim.device.default: torch.device("meta"),
        prim.layout.default: torch.sparse_csr,
    }
    assert x.device.type == "meta" and x.is_meta and not x.is_cpu
    assert x.layout is torch.sparse_csr and x.is_sparse_csr
    Asked.answers = {}
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.ops.prim.device'"):
        x.is_cuda  # noqa: B018
    stored = torch.Tensor._make_wrapper_subclass(Asked, (2,), layout=torch.sparse_coo)
    assert stored.layout is torch.sparse_coo and stored.is_sparse


def test_who_asks_wrongly_is_told():
    with pytest.raises(ValueError, match="Unknown sizes_strides_policy: x"):
        torch.Tensor._make_wrapper_subclass(Asked, (2,), dispatch_sizes_strides_policy="x")
    with pytest.raises(RuntimeError, match="__torch_dispatch__"):
        torch.Tensor._make_subclass(torch.nn.Parameter, torch.ones(2), dispatch_device=True)


def test_questions_are_ops_of_plain_tensors_too():
    x = torch.ones(2, 3)[:, 1:]
    assert aten.sym_size.default(x) == (2, 2) and aten.size.int(x, 0) == 2
    assert aten.stride.int(x, 0) == 3 and aten.dim(x) == 2 and aten.numel(x) == 4
    assert aten.storage_offset.default(x) == 1 and not aten.is_contiguous.default(x)
    assert str(aten.sym_size.int._schema) == "aten::sym_size.int(Tensor self, int dim) -> SymInt"


def test_numbers_under_a_mode():
    """A number beside a tensor comes as one, and ops take it back."""
    seen = []

    class Passed(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((func._opname, [type(a) for a in args]))
            return func(*args, **(kwargs or {}))

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with Passed():
        y = (1.0 / (x + 2)).pow(3) ** 2 + torch.pow(2, x) - (3 - x)
        y.sum().backward()
    assert ("add", [torch.Tensor, int]) in seen
    want = torch.tensor([1.0, 2.0], requires_grad=True)
    (((1.0 / (want + 2)).pow(3) ** 2) + torch.pow(2, want) - (3 - want)).sum().backward()
    assert torch.equal(x.grad, want.grad)


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_python_below_autograd_sees_a_linear_layer_in_parts():
    torch.manual_seed(0)
    weight, bias = torch.randn(3, 4, requires_grad=True), torch.randn(3, requires_grad=True)
    linear = torch.nn.functional.linear
    for shape, names in (
        ((2, 4), ["t", "addmm"]),
        ((5, 2, 4), ["view", "t", "addmm", "view"]),
        ((0, 2, 4), ["view", "t", "addmm", "view"]),
        ((4,), ["t"]),
    ):
        x = torch.randn(*shape)
        expected = linear(x, weight, bias)
        gradients = torch.autograd.grad(expected.square().sum(), (weight, bias))
        with Seen() as mode:
            seen = linear(x, weight, bias)
        assert mode.names[: len(names)] == names and "linear" not in mode.names
        torch.testing.assert_close(seen, expected)
        others = torch.autograd.grad(seen.square().sum(), (weight, bias))
        torch.testing.assert_close(others, gradients)
        Wrapper.seen.clear()
        linear(Wrapper(x), weight, bias)
        assert Wrapper.seen and not any("linear" in str(name) for name in Wrapper.seen)
    with Seen() as mode:
        linear(torch.randn(5, 2, 4), weight)
    assert mode.names[1:] == ["t", "view", "mm", "view"]
    with Seen() as mode, pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        linear(torch.randn(2, 5), weight, bias)


def test_modes_within_modes_see_parts_in_turn():
    weight = torch.randn(3, 4)
    with Seen() as outer, Seen() as inner:
        torch.nn.functional.linear(torch.ones(2, 4), weight)
        with torch.utils._python_dispatch._disable_current_modes():
            torch.nn.functional.linear(torch.ones(2, 4), weight)
    assert outer.names == inner.names == ["ones", "t", "mm"]


def test_a_class_with_rules_for_whole_ops_gets_them():
    class Whole(Wrapper):
        _sees_whole_ops = True

    Wrapper.seen.clear()
    torch.nn.functional.linear(Whole(torch.ones(2, 4)), torch.ones(3, 4))
    assert ["linear" in str(name) for name in Wrapper.seen] == [True]


def test_wrappers_are_saved(tmp_path):
    wrapped = Wrapper(torch.tensor([[1.0, 2.0], [3.0, 4.0]]).requires_grad_())
    torch.save({"w": wrapped}, tmp_path / "w.pt")
    with pytest.raises(pickle.UnpicklingError, match="add_safe_globals"):
        torch.load(tmp_path / "w.pt")
    with torch.serialization.safe_globals([Wrapper]):
        again = torch.load(tmp_path / "w.pt")["w"]
    for got in (again, pickle.loads(pickle.dumps(wrapped))):
        assert type(got) is Wrapper and got.requires_grad and got.stride() == (2, 1)
        assert torch.equal(got.inner, wrapped.inner)


def test_wrappers_are_copied():
    wrapper = Wrapper(torch.randn(2, 3))
    wrapper.tags = ["a"]
    twin, again = copy.deepcopy([wrapper, wrapper])
    assert twin is again and type(twin) is Wrapper
    assert twin.tags == ["a"] and twin.tags is not wrapper.tags
    wrapper.inner.zero_()
    assert torch.equal(twin.inner != 0, torch.ones(2, 3, dtype=torch.bool))

    class Unwraps(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            inside = tree_map_only(Wrapper, lambda w: w.inner, (args, kwargs or {}))
            return func(*inside[0], **inside[1])

    with pytest.raises(RuntimeError, match="Unwraps wraps tensors"):
        copy.deepcopy(Unwraps(torch.ones(2)))


def test_a_wrapper_is_no_window_on_memory():
    """Where no class is asked for its ops, what would read the memory of one without memory raises."""

    class Refuses(torch.Tensor):
        @staticmethod
        def __new__(cls, *size):
            return torch.Tensor._make_wrapper_subclass(cls, size, requires_grad=True)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("is asked")

    w = Refuses(1000, 1000)
    ways = [
        lambda: w.detach(),
        lambda: w.data,
        lambda: w.clone(),
        lambda: w + 1,
        lambda: w.sum(),
        lambda: w[3],
        lambda: w.view(-1),
        lambda: w.numpy(force=True),
        lambda: w.exp().sum().backward(),
    ]
    with torch._C._DisableTorchDispatch():
        for way in ways:
            with pytest.raises(RuntimeError, match="doesn't have storage|out of bounds"):
                way()


def test_data_of_a_wrapper():
    """What has memory does not take the sizes of what has none."""

    class Both(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            with torch._C._DisableTorchDispatch():
                return func(*args, **(kwargs or {}))

    wrapper = torch.Tensor._make_wrapper_subclass(Both, (1000, 1000))
    stored = torch.ones(4).as_subclass(Both)
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        stored.data = wrapper
    assert stored.sum().item() == 4
    stored.data = torch.zeros(2).as_subclass(Both)
    wrapper.data = torch.Tensor._make_wrapper_subclass(Both, (3,))
    assert stored.shape == (2,) and wrapper.shape == (3,)


def test_a_handler_that_gives_back_what_is_there():
    """A tensor has one Python object, and is no view of itself, whatever the handler of an op returns."""

    class Same(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return args[0]

    class Plain(torch.Tensor):
        pass

    x = torch.Tensor._make_wrapper_subclass(Same, (3,), requires_grad=True)
    for _ in range(3):
        for view in (x.view(3), x.t(), x[0:2], x.as_strided((1,), (1,))):
            assert not view._is_view() or view._base is not view
            assert view.requires_grad
        with pytest.raises(RuntimeError, match="Python object already"):
            Plain(x)
        gc.collect()


@pytest.mark.parametrize(
    "use, message",
    [
        (bool, "__bool__ should return bool"),
        (list, "gave a tensor"),
        (lambda x: max(x), "gave a tensor"),
    ],
)
def test_what_python_asks_and_a_mode_answers(use, message):
    """Python's own questions want answers of their own kinds; a tensor would be asked again."""

    class Answers(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return args[0]

    x = torch.ones(1)
    with Answers(), pytest.raises(TypeError, match=message):
        use(x)


def test_function_modes_are_not_shown_how_wrappers_are_made():
    class Log(TorchFunctionMode):
        seen: ClassVar[list] = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append(getattr(func, "__name__", str(func)))
            return func(*args, **(kwargs or {}))

    a, b = torch.ones(2, 3), torch.ones(4, 3)
    with Log():
        wrapped = Wrapper(a)
        nested = torch.nested.nested_tensor([a, b], layout=torch.jagged)
    assert type(wrapped) is Wrapper and nested.shape[0] == 2
    assert "_make_wrapper_subclass" not in Log.seen and "cat" in Log.seen


def test_a_dispatch_mode_may_decline_for_tensors_with_handlers_alone():
    class Declines(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    x = torch.ones(2)
    wrapped = Wrapper(x)
    handled = []

    class Handles(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            handled.append(str(func))
            return args[0]

    handles = Handles(x)
    with Declines():
        for call in (lambda: x.exp(), lambda: torch.zeros(2), lambda: torch.add(x, x)):
            with pytest.raises(TypeError, match="Multiple dispatch failed"):
                call()
        assert handles.exp() is handles and handled[0] == "aten.exp.default"
        assert type(wrapped.exp()) is Wrapper
    seen = Seen()
    with seen, Declines(), pytest.raises(TypeError, match="Multiple dispatch failed"):
        x.exp()
    assert seen.names == []


@pytest.mark.parametrize(
    ("view", "named"),
    [
        (lambda x: x.t(), "transpose.int"),
        (lambda x: x.T, "permute.default"),
        (lambda x: x.transpose(0, -1), "transpose.int"),
        (lambda x: x.permute(1, -2), "permute.default"),
        (lambda x: x.view(-1), "view.default"),
        (lambda x: x.reshape(3, 2), "view.default"),
        (lambda x: x[1], "select.int"),
        (lambda x: x[:, 1:], "slice.Tensor"),
        (lambda x: x.unsqueeze(-1), "unsqueeze.default"),
        (lambda x: x.diagonal(1), "diagonal.default"),
        (lambda x: x.expand(5, 2, 3), "expand.default"),
        (lambda x: x[:1].expand(4, -1), "expand.default"),
        (lambda x: x[:1].squeeze(), "squeeze.dims"),
        (lambda x: x[:1].squeeze(0), "squeeze.dim"),
        (lambda x: x.unbind(-1)[2], "unbind.int"),
        (lambda x: x.sum().squeeze(), None),
        (lambda x: x.as_strided((2,), (3,)), "as_strided.default"),
    ],
)
def test_views_of_slices_are_the_handlers(view, named):
    inner = torch.arange(24.0).view(4, 2, 3)
    want = torch.func.vmap(view)(inner)
    Wrapper.seen.clear()
    got = torch.func.vmap(view)(Wrapper(inner))
    assert type(got) is Wrapper and torch.equal(got.inner, want) and got.shape == want.shape
    assert named is None or f"aten.{named}" in Wrapper.seen
    assert "aten.movedim.int" not in Wrapper.seen
    for dim in (1, 2):
        inside = inner.movedim(0, dim)
        got = torch.func.vmap(view, in_dims=dim)(Wrapper(inside))
        if named != "view.default" and named != "as_strided.default":
            assert torch.equal(got.inner, want)
    twice = torch.func.vmap(torch.func.vmap(torch.neg))(Wrapper(inner))
    assert torch.equal(twice.inner, -inner)


def test_handlers_are_asked_before_sparse_tensors():
    m = torch.arange(9.0).view(3, 3)
    sparse = torch.eye(3).to_sparse()
    for of in (sparse, torch.eye(3).to_sparse_csr()):
        made = of @ Wrapper(m)
        assert type(made) is Wrapper and torch.equal(made.inner, m)
        assert "aten.mm.default" in Wrapper.seen
        assert torch.equal((Wrapper(m) @ sparse).inner, m)


def test_sparse_results_are_of_no_other_class():
    class Plain(torch.Tensor):
        pass

    class Sparsely(Wrapper):
        __torch_function__ = classmethod(torch.Tensor.__torch_function__.__func__)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            args = tree_map_only(Wrapper, lambda w: w.inner, args)
            return func(*args, **(kwargs or {}))

    m = torch.arange(9.0).view(3, 3)
    sparse = torch.eye(3).to_sparse()
    for made in (sparse * Sparsely(m), Sparsely(m) * sparse):
        assert type(made) is torch.Tensor and torch.equal(made.to_dense(), m * torch.eye(3))
    made = m.as_subclass(Plain).to_sparse()
    assert type(made) is torch.Tensor and torch.equal(made.to_dense(), m)


# ---- who is offered calls above ----


def _classes():
    """Ways for a class to come by the two methods, and whether its instances are offered calls."""

    class Above(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    class Below(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **kwargs or {})

    class Mixed:
        __torch_dispatch__ = classmethod(lambda cls, func, types, args=(), kwargs=None: None)

    def made(*bases, **members):
        return type("Made", bases, members)

    yield Above, True
    yield Below, False
    yield made(Above, __torch_dispatch__=Below.__torch_dispatch__), True
    yield made(Below), False
    yield made(Below, __torch_dispatch__=Mixed.__torch_dispatch__), False
    yield made(Above, Below), True
    yield made(Below, Above), False
    yield made(Mixed, torch.Tensor), False
    yield made(torch.Tensor, Mixed), True
    yield made(Below, __torch_function__=Above.__torch_function__), True
    yield made(torch.Tensor, __torch_dispatch__=torch.Tensor.__torch_dispatch__), True
    yield made(torch.Tensor), True
    late = made(torch.Tensor)
    late.__torch_dispatch__ = Mixed.__torch_dispatch__
    yield late, True


def test_classes_with_rules_below_alone_are_offered_no_calls_above():
    for cls, offered in _classes():
        disabled = cls.__torch_function__ is torch._C._disabled_torch_function_impl
        assert disabled != offered, cls.__mro__
        made = torch.Tensor._make_subclass(cls, torch.ones(2))
        assert torch.overrides.has_torch_function((made,)) == offered
