"""Old names of autograd, of averages, of ops of one's own and of small helpers still work."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.testing import assert_close


def test_old_ways_of_autograd():
    x = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    assert type(x) is torch.Tensor and x.requires_grad
    from rushlight.utils.checkpoint import checkpoint_sequential, detach_variable

    (twin,) = detach_variable((x,))
    assert twin.requires_grad and twin.grad_fn is None and twin.data_ptr() == x.data_ptr()
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2), nn.Tanh())
    out = checkpoint_sequential(model, 2, x, use_reentrant=False)
    assert_close(out, model(x))
    (grad,) = torch.autograd.grad(out.sum(), x)
    assert_close(grad, torch.autograd.grad(model(x).sum(), x)[0])


def test_gradients_of_sparse_rows_are_wanted():
    p = nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        torch.optim.SparseAdam([p]).step()


def test_averages_of_parameters():
    swa = torch.optim.swa_utils
    ema = swa.get_ema_avg_fn(0.9)
    assert_close(ema(torch.tensor(1.0), torch.tensor(2.0), 5), torch.tensor(1.1))
    mean = swa.get_swa_avg_fn()
    assert_close(mean(torch.tensor(1.0), torch.tensor(4.0), torch.tensor(2)), torch.tensor(2.0))
    with pytest.raises(ValueError, match="decay"):
        swa.get_ema_avg_fn(1.5)


def test_ops_of_ones_own_by_name():
    torch.library.define("around::scaled", "(Tensor x, float by) -> Tensor")
    torch.library.register_kernel("around::scaled", "cpu", lambda x, by: x * by)
    torch.library.impl_abstract("around::scaled", lambda x, by: torch.empty_like(x))
    torch.library.register_autograd(
        "around::scaled",
        lambda ctx, grad: (grad * ctx.by, None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]),
    )
    x = torch.ones(2, requires_grad=True)
    torch.ops.around.scaled(x, 3.0).sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert torch.ops.around.scaled(torch.ones(2, device="meta"), 2.0).is_meta


def test_helpers_of_old():
    a, b = torch.arange(6.0).view(2, 3), torch.ones(2)
    flat = torch._utils._flatten_dense_tensors([a, b])
    assert flat.tolist() == [0, 1, 2, 3, 4, 5, 1, 1]
    back = torch._utils._unflatten_dense_tensors(flat, [a, b])
    assert torch.equal(back[0], a) and torch.equal(back[1], b)
    assert torch._utils._element_size(torch.complex64) == 8
    assert torch._utils._get_device_index("cuda:2") == 2
    assert torch._utils._get_device_index(torch.device("cpu"), allow_cpu=True) == -1
    for wrong in ("cpu", "cuda"):
        with pytest.raises(ValueError, match="Expected a"):
            torch._utils._get_device_index(wrong)
    typed = torch.TypedStorage._from_untyped(a.untyped_storage(), a.dtype)
    assert torch._utils._rebuild_tensor(typed, 1, (2, 2), (3, 1)).tolist() == [[1, 2], [4, 5]]
    rebuilt = torch._utils._rebuild_tensor_v2(typed, 0, (2,), (1,), True, {})
    assert rebuilt.requires_grad and rebuilt.data_ptr() == a.data_ptr()


def test_old_places_of_optimisers_and_queues():
    from rushlight.multiprocessing import _atfork, pool, queue
    from rushlight.optim import _adafactor, _multi_tensor, _muon
    from rushlight.utils._triton import has_triton

    weight = torch.nn.Parameter(torch.ones(1))
    assert isinstance(_multi_tensor.RMSprop([weight]), torch.optim.RMSprop)
    assert _adafactor.Adafactor is torch.optim.Adafactor and _muon.Muon is torch.optim.Muon
    assert queue.SimpleQueue and pool.Pool and callable(_atfork.register_after_fork)
    assert not has_triton() and not torch.backends.xnnpack.enabled


def test_gradients_of_convolutions_have_two_names():
    assert torch.nn.functional.grad is torch.nn.grad
