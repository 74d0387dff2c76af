"""What PyTorch promises of many ops alike: memory formats, factories with gradients, dims of None."""

import pytest

import rushlight as rl
from rushlight.nn import functional as F

IMAGES = {
    "interpolate": lambda x: F.interpolate(x, size=(5, 6), mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, size=(5, 6), mode="bicubic", antialias=True),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "conv2d": lambda x: F.conv2d(x, rl.ones(2, 3, 3, 3)),
    "pad": lambda x: F.pad(x, (1, 1, 1, 1)),
}
CUTS = {
    "whole": lambda x: x,
    "sliced": lambda x: x[:, :, 2:-2, 3:-3],
    "strided": lambda x: x[:, :, ::2, ::2],
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("batch", [1, 2])
def test_slices_of_channels_last_images_stay_so(name, cut, batch):
    rl.manual_seed(0)
    x = rl.randn(batch, 3, 16, 18)
    last = CUTS[cut](x.contiguous(memory_format=rl.channels_last))
    result = IMAGES[name](last)
    assert result.is_contiguous(memory_format=rl.channels_last)
    plain = IMAGES[name](CUTS[cut](x).contiguous())
    assert plain.is_contiguous()
    rl.testing.assert_close(result, plain)
    grads = []
    for image in (last, CUTS[cut](x).contiguous()):
        leaf = image.detach().requires_grad_()
        IMAGES[name](leaf).square().sum().backward()
        grads.append(leaf.grad)
    rl.testing.assert_close(*grads)


LIKE = {
    **dict.fromkeys(("empty_like", "ones_like", "zeros_like", "rand_like", "randn_like"), ()),
    "full_like": (2.0,),
    "randint_like": (3,),
}


@pytest.mark.parametrize("name", LIKE)
def test_tensors_like_others_may_want_gradients(name):
    x = rl.randn(2, 3, requires_grad=True)
    for wanted in (True, False):
        made = getattr(rl, name)(x, *LIKE[name], requires_grad=wanted)
        assert made.requires_grad is wanted and made.is_leaf and made.shape == x.shape


def test_dims_of_none_are_the_default():
    x = rl.arange(6.0).view(2, 3)
    assert rl.amax(x, dim=None).item() == 5 and x.amin(None, True).shape == (1, 1)
    assert rl.roll(x, 1, None).tolist() == [[5, 0, 1], [2, 3, 4]]


def test_parts_of_complex_numbers_are_replaced_by_themselves():
    inf, nan = float("inf"), float("nan")
    x = rl.tensor([complex(123, nan), complex(inf, 4), complex(nan, -inf)])
    replaced = [complex(123, 7), complex(8, 4), complex(7, 9)]
    assert rl.nan_to_num(x, nan=7, posinf=8, neginf=9).tolist() == replaced
    assert x.nan_to_num_(nan=7, posinf=8, neginf=9).tolist() == replaced


def test_the_gradient_of_sinc_next_to_zero():
    x = rl.tensor([0.0, 2.3e-308, 1e-200, -1e-160], dtype=rl.float64, requires_grad=True)
    rl.sinc(x).sum().backward()
    assert x.grad.abs().max().item() < 1e-100


def test_bessel_functions_of_infinities():
    ends = rl.tensor([float("inf"), -float("inf")])
    assert rl.i0(ends).isnan().all() and rl.special.i1(ends).isnan().all()


@pytest.mark.parametrize("name", ["beta", "alpha"])
def test_factors_that_are_bools(name):
    x, v = rl.ones(2, 2), rl.ones(2)
    with pytest.raises(RuntimeError, match=f"Boolean {name} only supported for Boolean results"):
        rl.addr(x, v, v, **{name: True})
    assert rl.addr(x.bool(), v.bool(), v.bool(), **{name: True}).all()


def test_hooks_that_give_something():
    leaf = rl.ones(2, requires_grad=True)
    handle = leaf.register_post_accumulate_grad_hook(lambda t: t)
    leaf.sum().backward()
    handle.remove()
    for result, error in ((leaf.detach(), RuntimeError), (3, TypeError)):
        handle = leaf.register_post_accumulate_grad_hook(lambda t, result=result: result)
        with pytest.raises(error, match=r"hooks should return None|hook returned 'int'"):
            leaf.sum().backward()
        handle.remove()


@pytest.mark.parametrize("name", ["abs", "neg", "zero", "exp"])
def test_in_place_ops_on_lists_give_the_list(name):
    for tensors in ([rl.ones(2), rl.ones(3)], (rl.ones(1),)):
        assert getattr(rl, f"_foreach_{name}_")(tensors) is tensors
    tensors = [rl.ones(2)]
    assert (
        rl._foreach_add_(tensors, 1) is tensors and rl._foreach_copy_(tensors, tensors) is tensors
    )
