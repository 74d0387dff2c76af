"""Mixed precision: what autocast casts and keeps, nesting, and the steps of a GradScaler."""

import pickle
import threading

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.amp import GradScaler
from rushlight.autograd import Function
from rushlight.utils.checkpoint import checkpoint

F = nn.functional
LOW = (torch.bfloat16, torch.float16)


def on(dtype=torch.bfloat16, **options):
    return torch.autocast("cpu", dtype=dtype, **options)


# ---- what is cast ----


@pytest.mark.parametrize("dtype", LOW)
def test_rules(dtype):
    x = torch.randn(4, 4)
    with on(dtype):
        assert (x @ x).dtype is dtype
        assert F.mse_loss(x @ x, x @ x).dtype is torch.float32
        assert (x + x.to(dtype)).dtype is torch.float32
        assert (x.double() @ x.double()).dtype is torch.float64
        assert torch.stack((x, x.to(dtype))).dtype is torch.float32
        assert torch.stack((x.to(dtype), x.to(dtype))).dtype is dtype
        assert torch.mm(x, x, out=torch.empty(4, 4)).dtype is torch.float32


def test_what_a_composite_is_made_of_is_cast():
    x = torch.randn(2, 3, 4)
    with on():
        assert torch.einsum("bij,bkj->bik", x, x).dtype is torch.bfloat16
        assert torch.tensordot(x, x, dims=([2], [2])).dtype is torch.bfloat16


def test_states_and_edges_are_widened():
    """States are sums with those before; some modes of padding are ops of their own."""
    x, h = torch.ones(4, 2), torch.zeros(4, 3)
    with on():
        for state, dtype in ((h, torch.float32), (h.bfloat16(), torch.bfloat16)):
            cell = nn.GRUCell(2, 3)(x, state)
            assert cell.dtype is dtype
            assert nn.GRU(2, 3)(x, state[:1])[0].dtype is dtype
            assert [t.dtype for t in nn.LSTMCell(2, 3)(x, (state, state))] == [dtype, dtype]
        assert nn.RNNCell(2, 3)(x, h).dtype is torch.bfloat16
        assert nn.LSTM(2, 3)(x)[0].dtype is torch.bfloat16
        image, volume = torch.ones(1, 4, 4).bfloat16(), torch.ones(1, 4, 4, 4).bfloat16()
        for mode, wide in (("reflect", True), ("replicate", True), ("circular", False)):
            expected = torch.float32 if wide else torch.bfloat16
            assert F.pad(image, (1, 1, 1, 1), mode).dtype is expected
        assert F.pad(volume, (1,) * 6, "reflect").dtype is torch.bfloat16
        assert F.pad(volume, (1,) * 6, "replicate").dtype is torch.float32


def test_lists_and_optional_tensors():
    x, w, b = torch.randn(2, 3), torch.randn(4, 3), torch.randn(4)
    with on():
        assert F.linear(x, w).dtype is torch.bfloat16
        assert F.linear(x, w, b).dtype is torch.bfloat16
        assert torch.linalg.multi_dot((x, w.T, w)).dtype is torch.bfloat16


def test_no_tensor_on_the_device():
    x = torch.randn(2, 2, device="meta")
    with on():
        assert (x @ x).dtype is torch.float32


def test_nesting():
    x = torch.randn(2, 2)
    with on():
        with on(torch.float16):
            assert (x @ x).dtype is torch.float16
            with on(enabled=False):
                assert (x @ x).dtype is torch.float32
            assert (x @ x).dtype is torch.float16
        assert (x @ x).dtype is torch.bfloat16
    assert not torch.is_autocast_enabled("cpu")
    assert torch.get_autocast_dtype("cpu") is torch.bfloat16


def test_one_context_may_be_entered_twice():
    x, context = torch.randn(2, 2), on()
    with context:
        with context:
            assert (x @ x).dtype is torch.bfloat16
        assert (x @ x).dtype is torch.bfloat16
    assert (x @ x).dtype is torch.float32


def test_exceptions_restore():
    with pytest.raises(ZeroDivisionError), on():
        raise ZeroDivisionError
    assert not torch.is_autocast_enabled("cpu")


def test_decorator():
    @on()
    def product(x):
        """Doc."""
        return product(x[None])[0] if x.dim() == 2 else x @ x

    assert product.__doc__ == "Doc."
    assert product(torch.randn(2, 2)).dtype is torch.bfloat16


def test_other_threads_have_their_own():
    seen = []
    with on():
        thread = threading.Thread(target=lambda: seen.append(torch.is_autocast_enabled("cpu")))
        thread.start()
        thread.join()
    assert seen == [False]


def test_autocast_is_seen_by_modes_as_casts():
    from rushlight.utils._python_dispatch import TorchDispatchMode

    names = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.randn(2, 2)
    with on(), Names():
        torch.mm(x, x)
    assert names == ["aten._to_copy.default", "aten._to_copy.default", "aten.mm.default"]


# ---- cast weights ----


class Counted:
    """Counts how often a weight is cast."""

    def __enter__(self):
        from rushlight.utils._python_dispatch import TorchDispatchMode

        counted = self
        counted.count = 0

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                counted.count += func is torch.ops.aten._to_copy.default
                return func(*args, **(kwargs or {}))

        self.mode = Mode()
        self.mode.__enter__()
        return self

    def __exit__(self, *error):
        self.mode.__exit__(*error)


@pytest.mark.parametrize(("keeps", "casts"), [(True, 1), (False, 3)])
def test_weights_are_cast_once(keeps, casts):
    w, x = torch.randn(2, 2, requires_grad=True), torch.randn(2, 2).bfloat16()
    with Counted() as counted, on(cache_enabled=keeps):
        with on(cache_enabled=keeps):
            x @ w
        x @ w + x @ w
    assert counted.count == casts
    with Counted() as counted, on():
        x @ w
    assert counted.count == 1


def test_a_weight_cast_without_recording_is_cast_again():
    w, x = torch.randn(2, 2, requires_grad=True), torch.randn(2, 2)
    with on():
        with torch.no_grad():
            x @ w
        y = x @ w
    y.sum().backward()
    assert w.grad.dtype is torch.float32 and w.grad.abs().sum() > 0


def test_a_weight_that_was_changed_is_cast_again():
    w, x = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)
    with on():
        first = x @ w
        with torch.no_grad():
            w.mul_(3)
        second = x @ w
    assert torch.equal(second, first * 3)


def test_gradients_of_a_weight_used_twice():
    w = torch.randn(3, 3, requires_grad=True)
    x = torch.randn(2, 3)
    with on():
        loss = ((x @ w) @ w).float().pow(2).sum()
    loss.backward()
    low = w.grad.clone()
    w.grad = None
    ((x @ w) @ w).pow(2).sum().backward()
    assert torch.allclose(low, w.grad, rtol=0.1, atol=0.3)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_repeats_under_the_same_autocast(reentrant):
    w, x = torch.randn(3, 3, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    dtypes = []

    def part(x):
        y = x @ w
        dtypes.append(y.dtype)
        return torch.relu(y)

    with on():
        y = checkpoint(part, x, use_reentrant=reentrant)
    y.float().sum().backward()
    assert dtypes == [torch.bfloat16] * 2 and w.grad.dtype is torch.float32


# ---- custom functions ----


def test_custom_forward_and_backward():
    seen = []

    class Product(Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            y = a @ b
            seen.append(y.dtype)
            return y

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            grad_a = grad @ b.T
            seen.append(grad_a.dtype)
            return grad_a, a.T @ grad

    a, b = torch.randn(2, 2, requires_grad=True), torch.randn(2, 2, requires_grad=True)
    with on():
        y = Product.apply(a, b)
    y.float().sum().backward()
    assert seen == [torch.bfloat16] * 2
    Product.apply(a, b).sum().backward()
    assert seen[2:] == [torch.float32] * 2


def test_custom_forward_casts_its_inputs():
    class Product(Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, a, more):
            assert not torch.is_autocast_enabled("cpu")
            return a @ more["b"][0]

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            return grad, None

    a, b = torch.randn(2, 2).bfloat16(), torch.randn(2, 2).bfloat16()
    with on():
        assert Product.apply(a, {"b": [b]}).dtype is torch.float32
    assert Product.apply(a, {"b": [b]}).dtype is torch.bfloat16


# ---- bad use ----


def test_bad_devices_and_dtypes():
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.autocast(3)
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        torch.autocast("gramophone")
    with pytest.raises(RuntimeError, match="unsupported autocast device_type"):
        torch.autocast("meta")
    with pytest.raises(RuntimeError, match="floating-point dtype"):
        torch.set_autocast_dtype("cpu", torch.int32)
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        context = torch.autocast("cpu", dtype=torch.float64)
    with context:
        assert not torch.is_autocast_enabled("cpu")


def test_losses_of_probabilities_are_refused_on_accelerators():
    from rushlight._subclasses.fake_tensor import FakeTensorMode

    torch.set_autocast_enabled("cuda", True)
    try:
        with FakeTensorMode():
            x = torch.rand(3, device="cuda")
            assert F.binary_cross_entropy_with_logits(x.half(), x).dtype is torch.float32
            with pytest.raises(RuntimeError, match="unsafe to autocast"):
                F.binary_cross_entropy(x, x)
    finally:
        torch.set_autocast_enabled("cuda", False)


def test_deprecated_names_warn():
    with pytest.warns(DeprecationWarning, match="get_autocast_dtype"):
        assert torch.get_autocast_cpu_dtype() is torch.bfloat16
    with pytest.warns(DeprecationWarning, match="is_autocast_enabled"):
        assert not torch.is_autocast_cpu_enabled()
    with pytest.warns(FutureWarning, match="torch.amp.autocast"):
        context = torch.cpu.amp.autocast()
    with context:
        assert torch.is_autocast_enabled("cpu")


# ---- GradScaler ----


def scaled_step(scaler, p, optimizer, factor=1.0):
    optimizer.zero_grad()
    scaler.scale((p * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def made(**options):
    p = nn.Parameter(torch.ones(3))
    return GradScaler("cpu", init_scale=8.0, **options), p, torch.optim.SGD([p], lr=0.5)


def test_scales_of_steps():
    scaler, p, optimizer = made(growth_interval=2)
    scales = []
    for factor in (1, 1, float("inf"), 1, float("nan"), 1, 1):
        scaled_step(scaler, p, optimizer, factor)
        scales.append(scaler.get_scale())
    assert scales == [8, 16, 8, 8, 4, 4, 8]
    assert p.tolist() == [1 - 0.5 * 5] * 3


def test_the_scale_does_not_grow_to_infinity():
    scaler, p, optimizer = made(growth_interval=1)
    scaler.scale(p.sum())
    scaler.update(2.0**127)
    p.grad = torch.zeros(3)
    scaler.unscale_(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**127


def test_clipping_between():
    scaler, p, optimizer = made()
    scaler.scale((p * 100).sum()).backward()
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [100] * 3
    nn.utils.clip_grad_value_([p], 1.0)
    scaler.step(optimizer)
    assert p.tolist() == [0.5] * 3


def test_sparse_gradients_of_repeated_rows():
    table = nn.Embedding(3, 2, sparse=True)
    optimizer = torch.optim.SGD(table.parameters(), lr=0.5)
    scaler = GradScaler("cpu", init_scale=8.0)
    scaler.scale(table(torch.tensor([1, 1])).sum()).backward()
    scaler.unscale_(optimizer)
    assert table.weight.grad.to_dense().tolist() == [[0, 0], [2, 2], [0, 0]]


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_one_bad_element_is_found(dtype, bad):
    grads = [
        torch.ones(40, 7, dtype=dtype),
        torch.ones(0, dtype=dtype),
        torch.ones((), dtype=dtype),
    ]
    for place in (0, 2):
        broken = [g.clone() for g in grads]
        broken[place].view(-1)[-1] = bad
        found = torch.zeros(())
        torch._amp_foreach_non_finite_check_and_unscale_(broken, found, torch.tensor(0.5))
        assert found == 1
    found = torch.zeros(())
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.5))
    assert found == 0 and grads[0][0, 0] == 0.5 and grads[2] == 0.5


def test_large_double_gradients_are_finite():
    found = torch.zeros(())
    grads = [torch.full((2,), 1e300, dtype=torch.float64)]
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(1.0))
    assert found == 0


def test_wrong_order():
    scaler, p, optimizer = made()
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(optimizer)
    scaler.scale(p.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="step.. has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    scaler.update()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(optimizer, closure=lambda: None)
    with pytest.raises(ValueError, match="several in an iterable"):
        scaler.scale(3)


def test_half_gradients_are_refused():
    p = nn.Parameter(torch.ones(2, dtype=torch.float16))
    scaler = GradScaler("cpu", init_scale=2.0)
    scaler.scale(p.sum()).backward()
    with pytest.raises(ValueError, match="FP16 gradients"):
        scaler.unscale_(torch.optim.SGD([p], lr=1.0))


def test_two_optimizers_share_an_update():
    p, q = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    first, second = torch.optim.SGD([p], lr=1.0), torch.optim.SGD([q], lr=1.0)
    scaler = GradScaler("cpu", init_scale=4.0)
    scaler.scale((p + q * float("inf")).sum()).backward()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert p.item() == 0 and q.item() == 1 and scaler.get_scale() == 2


def test_an_optimizer_that_divides_itself():
    class Own(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            self.seen = (float(self.grad_scale), float(self.found_inf))

    p = nn.Parameter(torch.ones(1))
    scaler, optimizer = GradScaler("cpu", init_scale=4.0), Own([p], lr=1.0)
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    assert optimizer.seen == (4.0, 0.0) and not hasattr(optimizer, "grad_scale")


def test_state_and_pickles():
    scaler, p, optimizer = made(growth_interval=5)
    scaled_step(scaler, p, optimizer)
    again = pickle.loads(pickle.dumps(scaler))
    assert again.state_dict() == scaler.state_dict()
    assert again.state_dict()["_growth_tracker"] == 1
    other = GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 8 and other.get_growth_interval() == 5
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        other.load_state_dict({})
    scaler.scale(p.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="pickled"):
        pickle.dumps(scaler)


def test_nested_outputs():
    scaler, p, _ = made()
    a, (b,) = scaler.scale([p.sum(), (p.sum(),)])
    assert a.item() == b.item() == 24


def test_disabled():
    p = nn.Parameter(torch.ones(1))
    scaler, optimizer = GradScaler("cpu", enabled=False), torch.optim.SGD([p], lr=1.0)
    scaler.scale(p.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert p.item() == 0 and scaler.get_scale() == 1 and scaler.state_dict() == {}


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_factors_are_checked(factor):
    with pytest.raises(AssertionError, match="growth factor"):
        GradScaler("cpu", growth_factor=factor)
    with pytest.raises(AssertionError, match="backoff factor"):
        GradScaler("cpu", backoff_factor=1 / factor)
