"""Forward mode: duals, views and writes of them, levels, custom functions, transforms."""

import gc
import threading
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import Function, forward_ad, gradcheck, gradgradcheck
from rushlight.autograd.functional import hessian, jacobian
from rushlight.func import grad, jacfwd, jacrev, jvp, linearize, vjp


def pair(*shape):
    torch.manual_seed(len(shape))
    return torch.randn(*shape, dtype=torch.float64), torch.randn(*shape, dtype=torch.float64)


def tangent(t):
    return forward_ad.unpack_dual(t).tangent


def same(a, b):
    return torch.allclose(a, b, rtol=1e-10, atol=1e-10)


# ---- duals ----


def test_a_dual_is_a_view_with_the_given_tangent():
    x, v = pair(3)
    with forward_ad.dual_level() as level:
        assert level == 0
        dual = forward_ad.make_dual(x, v)
        assert dual.data_ptr() == x.data_ptr()
        assert tangent(dual) is v
        assert tangent(x) is None
        primal, t = forward_ad.unpack_dual(dual.exp())
        assert same(t, x.exp() * v)
        assert tangent(primal) is None
        assert "tangent=" in repr(dual)
        assert "tangent=" not in repr(primal)
    assert tangent(dual) is None


def test_levels_do_not_nest_and_end_in_order():
    with forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
            forward_ad.enter_dual_level()
    with pytest.raises(RuntimeError, match="Trying to exit a forward AD level"):
        forward_ad.exit_dual_level()
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(torch.ones(2), torch.ones(2))


def test_bad_duals():
    x, v = pair(3)
    whole = torch.ones(3, dtype=torch.int64)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        with pytest.raises(RuntimeError, match="different size"):
            forward_ad.make_dual(x, v[:2])
        with pytest.raises(RuntimeError, match="at the same level"):
            forward_ad.make_dual(dual, v)
        with pytest.raises(RuntimeError, match="forward gradient at the same level"):
            forward_ad.make_dual(x, dual)
        with pytest.raises(ValueError, match="Expected primal to be floating point"):
            forward_ad.make_dual(whole, v)
        with pytest.raises(ValueError, match="Expected tangent to be floating point"):
            forward_ad.make_dual(x, whole)
        for arguments, out in (((dual, x), torch.empty(3)), ((x, x), dual)):
            with pytest.raises(NotImplementedError, match="out= function"):
                torch.add(*arguments, out=out)
        with pytest.raises(RuntimeError, match="forward grad"):
            dual.clone().resize_(2)


def test_what_has_no_derivative_is_refused_or_constant():
    x, v = pair(3, 3)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        assert tangent((dual > 0).double()) is None
        assert tangent(dual.argmax()) is None
        assert same(tangent(dual.clone().eq_(x)), torch.zeros_like(x))
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with"):
            torch.special.bessel_j0(dual)
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with"):
            torch.geqrf(dual)


def test_detached_tensors_have_no_tangent():
    x, v = pair(3)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        assert tangent(dual.detach() * 2) is None
        copy = dual.clone()
        assert copy.detach_() is copy
        assert tangent(copy) is None


def test_no_grad_and_switched_off():
    x, v = pair(3)
    x.requires_grad_()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        with torch.no_grad():
            out = dual * 3
        assert not out.requires_grad
        assert same(tangent(out), v * 3)
        with forward_ad._set_fwd_grad_enabled(False):
            assert not forward_ad._is_fwd_grad_enabled()
            assert tangent(dual) is None
            off = dual * 3
        assert tangent(off) is None
        assert tangent(dual) is v


# ---- views and writes ----


def test_views_share_the_tangent():
    x, v = pair(2, 3)
    v0 = v.clone()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        row = dual[0]
        row *= 2
        assert same(tangent(dual), torch.stack((v0[0] * 2, v0[1])))
        assert same(v[0], v0[0] * 2)  # the very tensor that was given
        first, rest = dual.t().split([1, 2])
        rest.zero_()
        assert same(tangent(dual)[:, 1:], torch.zeros(2, 2, dtype=torch.float64))
        assert tangent(first)._base is not None


def test_writes_reach_what_a_view_was_taken_of():
    x, v = pair(3)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        base = torch.zeros(2, 3, dtype=torch.float64)
        other, row = base[:, 1:], base[1]
        row.add_(dual)
        assert same(tangent(base), torch.stack((torch.zeros_like(v), v)))
        assert same(tangent(other)[1], v[1:])
        base[0, 0] = dual[2]
        assert same(tangent(base)[0, 0], v[2])
        apart = base.detach()
        apart.mul_(3)
        assert same(tangent(base)[1], v)


def test_results_do_not_share_a_tangent():
    x, v = pair(3)
    v0 = v.clone()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        moved = dual + 1
        moved.mul_(2)
        assert same(tangent(moved), v0 * 2)
        assert same(tangent(dual), v0)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, y: x.mul_(y),
        lambda x, y: x.mul_(x),
        lambda x, y: x.div_(y),
        lambda x, y: x.exp_(),
        lambda x, y: x.pow_(2),
        lambda x, y: x.copy_(y * y),
        lambda x, y: x.fill_(y[0]),
        lambda x, y: x.zero_(),
        lambda x, y: x.normal_(),
        lambda x, y: x.index_add_(0, torch.tensor([1]), y[:1]),
        lambda x, y: x.masked_fill_(y > 0, 1.0),
        lambda x, y: x.masked_fill_(x > 0, y[1]),
        lambda x, y: x.index_fill_(0, torch.tensor([2]), y[0]),
        lambda x, y: x.addcmul_(x, y),
        lambda x, y: x.clamp_(-0.5, 0.5),
        lambda x, y: x.cumprod_(0),
    ],
)
@pytest.mark.parametrize("which", [(True, True), (True, False), (False, True)])
def test_writes_give_the_tangent_of_their_result(write, which):
    (x, v), (y, w) = pair(4), pair(4, 1)
    y, w = y.flatten(), w.flatten()
    kinds = zip((x, y), (v, w), which, strict=True)
    moves = [t if on else torch.zeros_like(t) for _, t, on in kinds]

    def run(step):
        torch.manual_seed(0)
        return write((x + step * moves[0]).clone(), y + step * moves[1])

    expected = (run(1e-6) - run(-1e-6)) / 2e-6
    with forward_ad.dual_level():
        torch.manual_seed(0)
        left = forward_ad.make_dual(x, v) if which[0] else x
        right = forward_ad.make_dual(y, w) if which[1] else y
        found = tangent(write(left.clone(), right))
    found = torch.zeros_like(x) if found is None else found
    assert torch.allclose(found, expected, atol=1e-7)


def test_geometry_in_place():
    x, v = pair(2, 3)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.clone(), v)
        dual.t_().unsqueeze_(0)
        assert tangent(dual).shape == (1, 3, 2)
        assert same(tangent(dual)[0], v.t())


def test_windows_on_the_storage():
    primal = torch.randn(5)[:4].detach()
    given = torch.randn(4)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(primal, given)
        assert same(tangent(dual), given)
        assert tangent(dual) is not given
        assert same(tangent(dual.as_strided((5,), (1,), 0))[:4], given)
        assert same(tangent(dual.expand(2, 4) * 1), given.expand(2, 4))


# ---- with backward ----


def test_backward_through_tangents():
    x, v = pair(3)
    x.requires_grad_()
    v.requires_grad_()
    with forward_ad.dual_level():
        t = tangent(forward_ad.make_dual(x, v).sin())
        by_x, by_v = torch.autograd.grad(t.sum(), (x, v))
    assert same(by_x, -x.sin() * v)
    assert same(by_v, x.cos())


OUTPUTS = [torch.exp, torch.tanh, torch.sigmoid, lambda t: t.softmax(-1), torch.sqrt]


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers(kind):
    """Forward over backward takes the steps apart."""
    torch.manual_seed(0)
    layer = getattr(torch.nn, kind)(2, 3).double()
    x, v = torch.randn(4, 1, 2, dtype=torch.float64), torch.randn(4, 1, 2, dtype=torch.float64)
    run = lambda t: layer(t)[0]
    for f in (run, grad(lambda t: run(t).square().sum())):
        _, found = jvp(f, (x,), (v,))
        expected = (f(x + 1e-6 * v) - f(x - 1e-6 * v)) / 2e-6
        assert torch.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("f", [*OUTPUTS, lambda t: t.clone().exp_(), lambda t: t.clone().pow_(3)])
def test_forward_over_backward(f):
    """What a node saved has its tangent, results and written tensors too."""
    x, v = pair(2, 3)
    x = x.abs() + 0.5
    weight = torch.arange(6, dtype=torch.float64).reshape(2, 3)

    def gradient(t):
        return grad(lambda u: (f(u) * weight).sum())(t)

    _, found = jvp(gradient, (x,), (v,))
    expected = (gradient(x + 1e-6 * v) - gradient(x - 1e-6 * v)) / 2e-6
    assert torch.allclose(found, expected, atol=1e-6)
    assert not found.requires_grad


def test_nothing_is_left_behind():
    x = torch.rand(4, requires_grad=True)
    kept = []
    with forward_ad.dual_level():
        t = torch.rand(4, requires_grad=True)
        dual = forward_ad.make_dual(torch.rand(4), t)
        kept.append(weakref.ref(t))
        del t
        assert kept[0]() is not None
        del dual
        assert kept[0]() is None
        dual = forward_ad.make_dual(torch.rand(4), x)
        out = dual.exp()  # out → tangent → graph → out
        kept.append(weakref.ref(out))
        del out, dual
    gc.collect()
    assert kept[1]() is None


# ---- levels ----


def test_tangents_nest():
    x, v = pair(3)
    f = torch.sin
    first = lambda t: jvp(f, (t,), (v,))[1]
    value, second = jvp(first, (x,), (v,))
    assert same(value, x.cos() * v)
    assert same(second, -x.sin() * v * v)
    third = jvp(lambda t: jvp(first, (t,), (v,))[1], (x,), (v,))[1]
    assert same(third, -x.cos() * v**3)


def test_levels_are_kept_apart():
    """The inner derivative is by its own argument alone."""
    x = torch.tensor(3.0, dtype=torch.float64)
    one = torch.ones_like(x)
    outer = lambda a: a * jvp(lambda b: a + b, (one,), (one,))[1]
    assert jvp(outer, (x,), (one,))[1] == 1
    inner = lambda a: jvp(lambda b: a * b * b, (a,), (one,))[1]  # 2 a²
    assert jvp(inner, (x,), (one,))[1] == 12
    assert grad(inner)(x) == 12
    assert jvp(lambda a: grad(lambda b: a * b * b)(a), (x,), (one,))[1] == 12


def test_writes_between_levels():
    x, v = pair(3)

    def inner(b, a):
        b = b.clone()
        b[0].mul_(a[1])
        return b * b

    def outer(a):
        return jvp(lambda b: inner(b, a), (a,), (v,))[1]

    _, found = jvp(outer, (x,), (v,))
    expected = (outer(x + 1e-6 * v) - outer(x - 1e-6 * v)) / 2e-6
    assert torch.allclose(found, expected, atol=1e-6)


def test_threads_have_levels_of_their_own():
    x, v = pair(200)
    failures = []

    def work():
        for _ in range(50):
            if not same(jvp(torch.exp, (x,), (v,))[1], x.exp() * v):
                failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


# ---- custom functions ----


class Cube(Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        ctx.k = k
        return k * x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * ctx.k * x * x * g, None

    @staticmethod
    def jvp(ctx, t, k):
        assert k is None
        (x,) = ctx.saved_tensors
        return 3 * ctx.k * x * x * t


class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return 2 * g

    @staticmethod
    def jvp(ctx, t):
        return t.mul_(2)


class Silent(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g


def test_custom_functions():
    x, v = pair(3)
    value, t = jvp(lambda a: Cube.apply(a, 2.0), (x,), (v,))
    assert same(value, 2 * x**3)
    assert same(t, 6 * x * x * v)
    second = jvp(lambda a: jvp(lambda b: Cube.apply(b, 2.0), (a,), (v,))[1], (x,), (v,))[1]
    assert same(second, 12 * x * v * v)
    assert gradcheck(
        lambda a: Cube.apply(a, 2.0), x.clone().requires_grad_(), check_forward_ad=True
    )
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.clone(), v.clone()).clone()
        assert same(tangent(Doubled.apply(dual)), 2 * v)
        assert same(tangent(dual), 2 * v)
        with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
            Silent.apply(dual)


def test_custom_functions_return_what_they_should():
    class Wrong(Cube):
        @staticmethod
        def jvp(ctx, t, k):
            return t, t

    class Kept(Doubled):
        @staticmethod
        def jvp(ctx, t):
            return t * 2

    x, v = pair(3)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        with pytest.raises(RuntimeError, match="invalid number of forward gradients"):
            Wrong.apply(dual, 2.0)
        with pytest.raises(RuntimeError, match="modifying the forward mode gradients inplace"):
            Kept.apply(dual.clone())


# ---- transforms ----


def test_jacobians_agree():
    torch.manual_seed(0)
    w = torch.randn(4, 3, dtype=torch.float64)
    x, _ = pair(3)
    f = lambda t: (torch.tanh(w @ t), t.sum() * t)
    for a, b in zip(jacfwd(f)(x), jacrev(f)(x), strict=True):
        assert same(a, b)
    both = jacfwd(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, 2 * x)
    assert same(both[0], 2 * x)
    assert same(both[1], x)
    value, aux = jacfwd(lambda t: (t * t, t.sum()), has_aux=True)(x)
    assert same(value, torch.diag(2 * x))
    assert same(aux, x.sum())
    again = jacobian(f, x, strategy="forward-mode", vectorize=True)
    for a, b in zip(again, jacobian(f, x), strict=True):
        assert same(a, b)


def test_hessians_agree():
    x, _ = pair(4)
    f = lambda t: (t.exp() * t.flip(0)).sum()
    expected = hessian(f, x)
    assert same(torch.func.hessian(f)(x), expected)
    assert same(jacfwd(jacfwd(f))(x), expected)
    assert same(jacrev(jacfwd(f))(x), expected)
    forward = hessian(f, x, vectorize=True, outer_jacobian_strategy="forward-mode")
    assert same(forward, expected)


def test_linearize_runs_the_function_once():
    calls = []
    x, v = pair(3)

    def f(t):
        calls.append(1)
        return {"a": t.sin(), "b": t.sum()}

    value, product = linearize(f, x)
    for u in (v, 2 * v):
        found = product(u)
        assert same(found["a"], x.cos() * u)
        assert same(found["b"], u.sum())
        assert not found["a"].requires_grad
    assert same(value["a"], x.sin())
    assert len(calls) == 1
    with pytest.raises(RuntimeError, match="argspec"):
        product(v, v)
    with pytest.raises(RuntimeError, match="shape"):
        product(v[:2])


def test_jvp_checks_its_arguments():
    x, v = pair(3)
    for bad in (x, [x]):
        with pytest.raises(RuntimeError, match="Expected primals to be a tuple"):
            jvp(torch.sin, bad, (v,))
    with pytest.raises(RuntimeError, match="same python structure"):
        jvp(torch.sin, (x,), (v, v))
    with pytest.raises(RuntimeError, match="at least one Tensor"):
        jvp(torch.sin, (), ())
    with pytest.raises(RuntimeError, match="only contain Tensors"):
        jvp(torch.sin, (x,), (1.0,))
    with pytest.raises(RuntimeError, match="only tensors"):
        jvp(lambda t: 1.0, (x,), (v,))
    with pytest.raises(RuntimeError, match="independent of the inputs"):
        jvp(lambda t: torch.ones(2), (x,), (v,), strict=True)
    assert same(jvp(lambda t: torch.ones(2), (x,), (v,))[1], torch.zeros(2))
    _, t, aux = jvp(lambda t: (t * 2, t), (x,), (v,), has_aux=True)
    assert same(t, 2 * v)
    assert same(aux, x)


def test_with_vjp():
    x, v = pair(3)
    output, pull = vjp(lambda t: jvp(torch.sin, (t,), (v,))[1], x)
    (found,) = pull(torch.ones_like(x))
    assert same(output, x.cos() * v)
    assert same(found, -x.sin() * v)


# ---- gradcheck ----


class Crooked(Cube):
    @staticmethod
    def jvp(ctx, t, k):
        return 2 * t


def test_gradcheck_checks_forward_mode():
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    z = torch.randn(2, dtype=torch.complex128, requires_grad=True)
    for fast in (False, True):
        options = {"check_forward_ad": True, "fast_mode": fast, "check_batched_grad": True}
        assert gradcheck(
            lambda a: (a.exp(), a.sum()), x, check_batched_forward_grad=True, **options
        )
        assert gradcheck(lambda a: a.exp() * a.abs(), z, **options)
        assert gradcheck(lambda a, b: a @ b, (x, x.detach().clone().requires_grad_()), **options)
        for how in ({}, {"check_backward_ad": False}):
            wrong = {"check_forward_ad": True, "fast_mode": fast, "raise_exception": False, **how}
            assert not gradcheck(lambda a: Crooked.apply(a, 1.0), x, **wrong)
    assert gradgradcheck(torch.tanh, x, check_fwd_over_rev=True)
    assert gradgradcheck(torch.tanh, x, check_fwd_over_rev=True, check_rev_over_rev=False)
    with pytest.raises(AssertionError, match="check_forward_ad to be True"):
        gradcheck(torch.sin, x, check_batched_forward_grad=True)


def test_gradcheck_checks_missing_tangents():
    class Absent(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.set_materialize_grads(False)
            return a + b

        @staticmethod
        def backward(ctx, g):
            return g, g

        @staticmethod
        def jvp(ctx, s, t):
            if s is None or t is None:
                return s * 2 if t is None else t * 2
            return s + t

    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    y = torch.randn(3, dtype=torch.float64, requires_grad=True)
    options = {"check_forward_ad": True, "raise_exception": False}
    assert not gradcheck(Absent.apply, (x, y), **options)


def test_custom_ops_are_refused():
    @torch.library.custom_op("forward_mode_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    x, v = pair(3)
    with forward_ad.dual_level():
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with"):
            twice(forward_ad.make_dual(x, v))


def test_levels_without_end_are_refused():
    def endless(x):
        return torch.func.jvp(endless, (x,), (torch.ones_like(x),))[1]

    for _ in range(2):  # the first one leaves nothing open
        with pytest.raises(RuntimeError, match="levels are open in each other"):
            endless(torch.ones(()))
    f = torch.exp
    for _ in range(8):
        f = lambda x, f=f: torch.func.jvp(f, (x,), (torch.ones_like(x),))[1]
    x = torch.tensor(0.5)
    torch.testing.assert_close(f(x), x.exp())


def third_power(x):
    return (x * x * x).sin().sum()


def hessian_of(function):
    x = torch.tensor([0.3, -1.2, 2.0])
    return torch.func.hessian(function)(x)


def test_what_hooks_pack_keeps_its_tangents():
    want = hessian_of(third_power)
    assert want.diag().abs().min() > 0.1

    def with_hooks(pack):
        def function(x):
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
                return third_power(x)

        return function

    for pack in (lambda t: t, lambda t: t.clone()):
        torch.testing.assert_close(hessian_of(with_hooks(pack)), want)
    checkpoint = torch.utils.checkpoint.checkpoint
    got = hessian_of(lambda x: checkpoint(third_power, x, use_reentrant=False))
    torch.testing.assert_close(got, want)


def test_a_tangent_that_backward_keeps_is_not_overwritten():
    """Reverse over forward of what is written in place."""
    x, t = torch.tensor([0.5, 2.0], requires_grad=True), torch.tensor([1.0, -3.0])
    functions = {
        "mul_": (lambda d: (d * 2).mul_(d), lambda d: (d * 2).mul(d)),
        "exp_": (lambda d: (d * 2).exp_(), lambda d: (d * 2).exp()),
        "a view": (lambda d: (d * 2)[:].sin_(), lambda d: (d * 2)[:].sin()),
    }
    for name, pair in functions.items():
        found = []
        for function in pair:
            with torch.autograd.forward_ad.dual_level():
                y = function(torch.autograd.forward_ad.make_dual(x, t))
                tangent = torch.autograd.forward_ad.unpack_dual(y).tangent
                found.append(torch.autograd.grad(tangent.sum(), x)[0])
        torch.testing.assert_close(*found, msg=name)


def test_steps_of_optimizers_refuse_tangents():
    with torch.autograd.forward_ad.dual_level():
        d = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2))
        for kind in (torch.optim.SGD, torch.optim.AdamW, torch.optim.Adagrad):
            p = torch.ones(2, requires_grad=True)
            optimizer = kind([p], lr=0.1)
            p.grad = d * 2
            with pytest.raises(NotImplementedError, match="forward AD with .*step_"):
                optimizer.step()
            optimizer.zero_grad()
            p.grad = torch.ones(2)  # none of its tensors has a tangent
            optimizer.step()


@pytest.mark.parametrize("name", ["svdvals", "eigvalsh"])
def test_tangents_want_a_gradient_only_where_something_does(name):
    function = getattr(torch.linalg, name)
    m = torch.eye(3) + torch.arange(9.0).view(3, 3) / 10
    value, tangent = torch.func.jvp(function, (m,), (m,))
    assert not value.requires_grad and not tangent.requires_grad
    m.requires_grad_()
    with torch.autograd.forward_ad.dual_level():
        y = function(torch.autograd.forward_ad.make_dual(m, m.detach()))
        assert torch.autograd.forward_ad.unpack_dual(y).tangent.requires_grad
