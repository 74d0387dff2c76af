"""Tags of ops beside PyTorch's."""

from __future__ import annotations

import pytest

import rushlight
from rushlight import _C

torch = pytest.importorskip("torch")

# What says how PyTorch is built or what its compiler takes for granted, not what an op does.
NOT_OURS = {"generated", "maybe_aliasing_or_mutating", "cudagraph_unsafe"}
# "tag of": overloads, where one side alone has the tag. Here it follows from the kind of the op, for
# all its forms; PyTorch's is written for each overload by hand.
ALONE_HERE = {
    # Computed element by element, and PyTorch's list leaves them out.
    "pointwise": """
        _dirichlet_grad.default _dirichlet_grad.out _standard_gamma_grad.default
        _standard_gamma_grad.out abs_.default add.Scalar_out clip.Tensor_out copysign_.Scalar
        copysign_.Tensor div.Scalar_mode_out div.Scalar_out elu.out elu_backward.default eq_.Scalar
        eq_.Tensor floor_divide.Scalar floor_divide.Scalar_out floor_divide.default floor_divide.out
        floor_divide_.Scalar floor_divide_.Tensor gcd_.default ge_.Scalar ge_.Tensor gelu.out
        gelu_backward.grad_input gt_.Scalar gt_.Tensor hardshrink.out hardshrink_backward.default
        hardshrink_backward.grad_input hardsigmoid.out hardsigmoid_backward.default
        hardsigmoid_backward.grad_input hardswish.default hardswish.out hardswish_.default
        hardswish_backward.default hardswish_backward.out hardtanh.out hardtanh_backward.default
        hardtanh_backward.grad_input heaviside_.default isinf.out isnan.out lcm_.default le_.Scalar
        le_.Tensor leaky_relu.out leaky_relu_backward.default log_sigmoid.default log_sigmoid.out
        lt_.Scalar lt_.Tensor masked_fill_.Scalar mish.out mish_.default mish_backward.default
        mul.Scalar_out ne_.Scalar ne_.Tensor relu.out rsub.Scalar_out rsub.Tensor rsub.Tensor_out
        softplus.out softplus_backward.default softplus_backward.grad_input softshrink.out
        sub.Scalar_out threshold.out threshold_.default threshold_backward.grad_input
        xlogy_.Scalar_Other""",
    # As their forms without out=.
    "dynamic_output_shape": "_unique2.out bincount.out unique_consecutive.out unique_dim.out",
    "reduction": "norm.ScalarOpt_dtype_out norm.Scalar_out prod.out sum.out",
    "view_copy": "narrow_copy.out",
}
ALONE_THERE = {
    "core": "atan2.out",  # the other core ops are functional
    # Sizes here follow from the sizes of the arguments.
    "dynamic_output_shape": "_ctc_loss.default linalg_lstsq.default linalg_lstsq.out",
    "pointwise": "equal.default",  # one bool of all elements
    "view_copy": "slice_scatter.default slice_scatter.out",  # no copy of a view
}


def listed(differences):
    return {f"{name} {tag}" for tag, names in differences.items() for name in names.split()}


def overloads():
    for qualified in sorted(_C._op_names()):
        space, _, name = qualified.partition("::")
        if space != "aten" or not hasattr(torch.ops.aten, name):
            continue
        theirs = getattr(torch.ops.aten, name)
        ours = getattr(rushlight.ops.aten, name)
        for overload in ours.overloads():
            if overload in theirs.overloads():
                yield f"{name}.{overload}", getattr(ours, overload), getattr(theirs, overload)


def test_tags_are_pytorchs():
    ours, theirs = set(), set()
    for name, own, other in overloads():
        if not hasattr(own, "_index"):
            continue
        ours |= {f"{name} {tag.name}" for tag in own.tags}
        theirs |= {f"{name} {tag.name}" for tag in other.tags if tag.name not in NOT_OURS}
    assert len(ours & theirs) > 3500
    assert sorted((ours - theirs) ^ listed(ALONE_HERE)) == []
    assert sorted((theirs - ours) ^ listed(ALONE_THERE)) == []
