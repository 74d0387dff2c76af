"""Ops of one's own: schemas, overloads, functions by dispatch key, gradients, fake tensors."""

import gc
from collections.abc import Sequence

import pytest

import rushlight as torch
from rushlight import Tensor, _custom_ops
from rushlight._library import schema
from rushlight._subclasses import FakeTensorMode
from rushlight.library import (
    Library,
    _scoped_library,
    custom_op,
    opcheck,
    triton_op,
    wrap_triton,
)
from rushlight.types import Number


def test_schemas_of_annotations():
    def f(
        x: Tensor,
        xs: Sequence[Tensor],
        n: Number,
        m: Number | None,
        y: Tensor | None,
        sizes: list[int],
    ) -> tuple[list[Tensor], int]: ...

    assert torch.library.infer_schema(f, mutates_args=()) == (
        "(Tensor x, Tensor[] xs, Scalar n, Scalar? m, Tensor? y, SymInt[] sizes) "
        "-> (Tensor[], SymInt)"
    )

    def wrong(x: int | str) -> Tensor: ...

    with pytest.raises(ValueError, match="type"):
        torch.library.infer_schema(wrong, mutates_args=())


@pytest.mark.parametrize(
    "text",
    [
        "f(Tensor x) -> Tensor",
        "f.two(Tensor(a!) x, int[2] size=1, *, float? eps=1e-05, str mode='a, b') -> Tensor(a!)",
        "f(Tensor[] xs, ScalarType? dtype=None, bool b=True) -> (Tensor y, Tensor[] z)",
        "f() -> ()",
        "f((str, str, str)[] kinds, Dict(str, Tensor[]) x) -> (Dict(str, Tensor), (int, Tensor)?)",
    ],
)
def test_schemas_are_read(text):
    parsed = schema.parse(text, "tests")
    assert str(parsed) == f"tests::{text}"
    assert parsed.name == "tests::f"


def test_what_a_schema_says():
    s = schema.parse("f.two(Tensor(a!) x, int[2] n=1, *, float eps=2) -> (Tensor(a!), Tensor)", "t")
    x, n, eps = s.arguments
    assert s.overload_name == "two" and s.is_mutable and not schema.is_functional(s)
    assert x.alias_info.is_write and n.default_value == [1, 1]
    assert eps.kwarg_only and isinstance(eps.default_value, float)
    assert s.returns[0].alias_info.before_set == {"alias::a"} and s.returns[1].alias_info is None
    s = schema.parse("f((str, int)[] pairs, Dict(str, Tensor)? x=None) -> Tensor", "t")
    assert [str(a.type) for a in s.arguments] == ["(str, int)[]", "Dict(str, Tensor)?"]
    assert s.arguments[1].alias_info is None and s.arguments[1].default_value is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("f(Tensor x) -> thing", "unknown type specifier"),
        ("f(thing x) -> Tensor", "unknown type specifier"),
        ("f(int64_t x) -> Tensor", "Use `SymInt` or `int`"),
        ("f(double x) -> Tensor", "Use `float`"),
        ("f(Tensor) -> Tensor", "needs a name"),
        ("f(Dict(str) x) -> Tensor", "expected 2 types"),
        ("f(Dict x) -> Tensor", "unknown type specifier"),
        ("f(() x) -> Tensor", "types in"),
        ("f((int, thing) x) -> Tensor", "unknown type specifier"),
        ("f(Tensor x", "not closed"),
        ("f(Tensor x)", "expected '->'"),
        ("f", "expected a schema"),
        ("f(int n=one) -> Tensor", "no default"),
    ],
)
def test_schemas_that_are_refused(text, said):
    with pytest.raises(RuntimeError, match=said):
        Library("library_tests", "FRAGMENT").define(text)


def test_overloads_and_values():
    with _scoped_library("library_tests", "DEF") as lib:
        lib.define("f(Tensor x, int n=2, *, float y=1.0) -> Tensor")
        lib.define("f.str(Tensor x, str s) -> Tensor")
        lib.impl("f", lambda x, n=2, *, y=1.0: x * n + y, "CPU")
        lib.impl("f.str", lambda x, s: x * len(s), "CPU")
        f, x = torch.ops.library_tests.f, torch.ones(2)
        assert f.overloads() == ["default", "str"]
        assert f(x).tolist() == [3, 3] and f(x, 3, y=2).tolist() == [5, 5]
        assert f(x, "abcd").tolist() == [4, 4] and f.str(x, s="a").tolist() == [1, 1]
        with pytest.raises(RuntimeError, match="Expected a value of type 'int'"):
            f.default(x, "a")
        with pytest.raises(RuntimeError, match="missing"):
            f.default()
        with pytest.raises(RuntimeError, match="multiple times"):
            lib.define("f(Tensor x) -> Tensor")
    assert not hasattr(torch.ops.library_tests, "f")
    with pytest.raises(RuntimeError, match="does not exist"):
        torch.library.register_fake("library_tests::f", lambda x: x)


def test_a_backward_for_lists_and_keywords():
    with _scoped_library("library_tests", "DEF") as lib:
        lib.define("dot(Tensor[] xs, Tensor w, int n=2, *, int k) -> Tensor")
        lib.impl("dot", lambda xs, w, n=2, *, k: sum(x * w for x in xs) * n * k, "CPU")

        def setup(ctx, inputs, keyword_only_inputs, output):
            ctx.scale = inputs[2] * keyword_only_inputs["k"]
            ctx.wanted = ctx.needs_input_grad
            ctx.save_for_backward(inputs[1], *inputs[0])

        def backward(ctx, grad):
            w, *xs = ctx.saved_tensors
            assert ctx.wanted[0] == [True, False]
            return [grad * w * ctx.scale for _ in xs], grad * sum(xs) * ctx.scale

        torch.library.register_autograd(
            "library_tests::dot", backward, setup_context=setup, lib=lib
        )
        a, b, w = torch.ones(2, requires_grad=True), torch.ones(2), torch.full((2,), 3.0)
        w.requires_grad_()
        torch.ops.library_tests.dot([a, b], w, k=5).sum().backward()
        assert a.grad.tolist() == [30, 30] and w.grad.tolist() == [20, 20] and b.grad is None
        with pytest.raises(RuntimeError, match="non-functional"):
            lib.define("write(Tensor(a!) x) -> ()")
            torch.library.register_autograd("library_tests::write", backward)


def test_modes_classes_and_fakes():
    @custom_op("library_tests::root", mutates_args=())
    def root(x: Tensor) -> Tensor:
        return torch.from_numpy(x.numpy() ** 0.5)

    seen = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Mode():
        assert root(torch.full((2,), 4.0)).tolist() == [2, 2]
    assert torch.ops.library_tests.root.default in seen
    with FakeTensorMode() as mode:
        with pytest.raises(RuntimeError, match="root"):
            root(torch.ones(2))
        root.register_fake(lambda x: torch.empty_like(x))
        assert isinstance(root(torch.ones(2)), torch._subclasses.FakeTensor)
        seven = torch.empty(7)
        root.register_torch_dispatch(FakeTensorMode, lambda mode, func, types, args, kwargs: seven)
        assert root(torch.ones(2)) is seven
        root.register_torch_dispatch(FakeTensorMode, lambda mode, func, types, args, kwargs: 7)
        with pytest.raises(TypeError, match="must return a Tensor, but got int"):
            root(torch.ones(2))
    assert mode is not None
    assert root(torch.ones(2, device="meta")).is_meta


def test_what_custom_op_refuses():
    with pytest.raises(ValueError, match="not found"):

        @custom_op("library_tests::a", mutates_args={"y"})
        def a(x: Tensor) -> None:
            pass

    with pytest.raises(ValueError, match="the op mutates"):

        @custom_op("library_tests::b", mutates_args=(), schema="(Tensor(a!) x) -> ()")
        def b(x):
            pass

    @custom_op("library_tests::c", mutates_args=())
    def c(x: Tensor) -> Tensor:
        return x

    with pytest.raises(RuntimeError, match="alias"):
        c(torch.ones(2))

    @custom_op("library_tests::d", mutates_args={"x"})
    def d(x: Tensor) -> None:
        x.numpy()[:] = 7

    x = torch.ones(2)
    version = x._version
    d(x)
    assert x.tolist() == [7, 7] and x._version > version


def test_opcheck():
    @custom_op("library_tests::twice", mutates_args=())
    def twice(x: Tensor) -> Tensor:
        return torch.from_numpy(x.numpy() * 2)

    x = torch.ones(3, requires_grad=True)
    assert opcheck(twice, (x.detach(),), test_utils="test_schema") == {"test_schema": "SUCCESS"}
    with pytest.raises(Exception, match="test_autograd_registration failed"):
        opcheck(twice, (x,))
    twice.register_autograd(lambda ctx, grad: grad * 2)
    assert opcheck(twice, (x,), raise_exception=False)["test_faketensor"] != "SUCCESS"
    twice.register_fake(lambda x: torch.empty_like(x))
    assert set(opcheck(twice, (x,)).values()) == {"SUCCESS"}
    twice.register_fake(lambda x: x.new_empty(2))
    with pytest.raises(Exception, match="shape"):
        opcheck(twice, (x,))
    with pytest.raises(ValueError, match="subset"):
        opcheck(twice, (x,), test_utils="nothing")


def test_the_older_names():
    @_custom_ops.custom_op("library_tests::old")
    def old(x: Tensor, n: int) -> Tensor: ...

    _custom_ops.impl("library_tests::old", func=lambda x, n: x.detach() * n)
    x = torch.ones(2, requires_grad=True)
    op = torch.ops.library_tests.old
    _custom_ops.impl_save_for_backward("library_tests::old", func=lambda inputs, out: inputs.n)
    with pytest.raises(RuntimeError, match="half of its backward"):
        op(x, 3)
    answer = {"x": torch.full((2,), 5.0)}
    _custom_ops.impl_backward("library_tests::old", func=lambda ctx, n, grad: answer)
    op(x, 3).sum().backward()
    assert x.grad.tolist() == [5, 5]
    answer["n"] = None
    with pytest.raises(RuntimeError, match="keys"):
        op(x, 3).sum().backward()
    with pytest.raises(RuntimeError, match="already has a backward"):
        _custom_ops.impl_backward("library_tests::old", func=lambda ctx, n, grad: {})
    _custom_ops._destroy("library_tests::old")
    gc.collect()
    assert not hasattr(torch.ops.library_tests, "old")
    with pytest.raises(ValueError, match="reserved"):
        _custom_ops.custom_op("aten::old", "(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="functional"):
        _custom_ops.custom_op("library_tests::old", "(Tensor(a!) x) -> Tensor")


def test_ops_of_ones_own_are_traced():
    @torch.library.custom_op("test_traced::total", mutates_args=())
    def total(xs: list[torch.Tensor], scale: float = 1.0) -> torch.Tensor:
        return torch.stack(xs).sum(0) * scale

    op = torch.ops.test_traced.total.default
    made = torch.fx.symbolic_trace(lambda x, y: op([x, y], scale=2.0))
    assert [node.target for node in made.graph.nodes if node.op == "call_function"] == [op]
    assert made(torch.ones(2), torch.ones(2)).tolist() == [4, 4]

    class Noted(torch.Tensor):
        seen = ()

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.seen += (func,)
            return super().__torch_function__(func, types, args, kwargs or {})

    op([torch.ones(1).as_subclass(Noted)])
    assert op in Noted.seen


def test_ops_that_start_kernels_of_triton_are_ops():
    @triton_op("library_tests::started", mutates_args=())
    def started(x: Tensor) -> Tensor:
        return x * 2

    assert torch.ops.library_tests.started(torch.ones(2)).tolist() == [2, 2]
    with FakeTensorMode():
        assert started(torch.empty(3)).shape == (3,)
    with pytest.raises(RuntimeError, match="triton.jit"):
        wrap_triton(abs)


def test_spaces_in_schemas_and_names_of_overloads():
    with _scoped_library("library_spaces", "FRAGMENT") as lib:
        lib.define("f(Tensor x, int n = 2, *, float[] w = [1.0, 2.0], str s = 'a b') -> Tensor")
        lib.impl("f", lambda x, n=2, *, w=(1.0, 2.0), s="a b": x * n, "CPU")
        op = torch.ops.library_spaces.f
        assert op(torch.ones(1)).item() == 2 and op(torch.ones(1), 3).item() == 3
        assert op.default._name == "library_spaces::f"
    assert torch.ops.aten.add.Tensor._name == "aten::add.Tensor"


def test_a_function_may_come_before_its_op():
    with _scoped_library("library_tests", "FRAGMENT") as lib:
        torch.library.impl("library_tests::late", "default", lambda x: x + 1, lib=lib)
        lib.impl("late.two", lambda x, y: x * y, "CPU")
        with pytest.raises(AttributeError):
            torch.ops.library_tests.late  # noqa: B018
        lib.define("late(Tensor x) -> Tensor")
        lib.define("late.two(Tensor x, Tensor y) -> Tensor")
        late, x = torch.ops.library_tests.late, torch.full((2,), 3.0)
        assert late(x).tolist() == [4, 4] and late(x, x).tolist() == [9, 9]
    with _scoped_library("library_tests", "FRAGMENT") as lib:
        lib.impl("gone", lambda x: x + 1, "CPU")
    with _scoped_library("library_tests", "DEF") as lib:
        lib.define("gone(Tensor x) -> Tensor")
        with pytest.raises(NotImplementedError):
            torch.ops.library_tests.gone(torch.ones(1))
