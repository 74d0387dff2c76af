"""Boxes, losses and blocks against torchvision's, those that need none of its compiled part."""

import importlib

import numpy as np
import pytest

import rushlight
from rushlight.vision import ops
from tests.parity import torchvision as oracle

torchvision = oracle.load()
torch = pytest.importorskip("torch")


def boxes(*shape, dtype="float32", seed=0):
    corners = np.random.default_rng(seed).uniform(0, 50, (*shape, 2, 2)).astype(dtype)
    corners.sort(axis=-2)
    corners[..., 1, :] += 1
    return corners.reshape(*shape, 4)


def both(function, *arrays, **settings):
    """The function of both libraries on the same arrays."""
    results = []
    for module, package in ((torch, torchvision.ops), (rushlight, ops)):
        inputs = [module.from_numpy(a.copy()) if isinstance(a, np.ndarray) else a for a in arrays]
        results.append(getattr(package, function)(*inputs, **settings))
    expected, found = results
    assert str(found.dtype).split(".")[-1] == str(expected.dtype).split(".")[-1]
    np.testing.assert_allclose(
        found.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5
    )


KINDS = ("box_iou", "generalized_box_iou", "distance_box_iou", "complete_box_iou")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "uint8"])
@pytest.mark.parametrize("kind", KINDS)
def test_overlaps(kind, dtype):
    both(kind, boxes(5, dtype=dtype), boxes(7, dtype=dtype, seed=1))


def test_overlaps_of_batches_and_formats():
    both("box_iou", boxes(2, 5), boxes(2, 7, seed=1))
    for fmt in ("xywh", "cxcywh"):
        both("box_iou", boxes(5), boxes(4, seed=1), fmt=fmt)
        both("box_area", boxes(5), fmt=fmt)


@pytest.mark.parametrize("kind", [k + "_loss" for k in KINDS[1:]])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses_of_boxes(kind, reduction):
    both(kind, boxes(6), boxes(6, seed=1), reduction=reduction)
    both(kind, boxes(0), boxes(0), reduction=reduction)


@pytest.mark.parametrize(
    "pair", [(a, b) for a in ("xyxy", "xywh", "cxcywh") for b in ("xyxy", "xywh", "cxcywh")]
)
def test_formats(pair):
    both("box_convert", boxes(5), in_fmt=pair[0], out_fmt=pair[1])
    both("box_convert", boxes(5, dtype="int64"), in_fmt=pair[0], out_fmt=pair[1])


@pytest.mark.parametrize(
    "pair",
    [(a, b) for a in ("xywhr", "cxcywhr", "xyxyxyxy") for b in ("xywhr", "cxcywhr", "xyxyxyxy")],
)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_turned_formats(pair, dtype):
    turned = np.concatenate([boxes(6), np.linspace(-170, 170, 6, dtype=np.float32)[:, None]], 1)
    corners = torchvision.ops.box_convert(torch.from_numpy(turned), "xywhr", "xyxyxyxy").numpy()
    given = corners if pair[0] == "xyxyxyxy" else turned
    both("box_convert", given.astype(dtype), in_fmt=pair[0], out_fmt=pair[1])


def test_other_functions_of_boxes():
    both("clip_boxes_to_image", boxes(8) - 10, (20, 30))
    both("remove_small_boxes", boxes(8), 12.0)
    masks = np.random.default_rng(0).random((4, 9, 11)) > 0.9
    masks[2] = False
    both("masks_to_boxes", masks)
    both("masks_to_boxes", masks[:0])


@pytest.mark.parametrize("alpha", [0.25, -1])
def test_focal_loss(alpha):
    rng = np.random.default_rng(0)
    logits, targets = rng.standard_normal((4, 5)), (rng.random((4, 5)) > 0.5).astype(float)
    for reduction in ("none", "mean", "sum"):
        both("sigmoid_focal_loss", logits, targets, alpha=alpha, reduction=reduction)


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("ratio", [-1, 2])
def test_roi_align(aligned, ratio):
    """Their Python form, which is there without the compiled part, not compiled either; gradients, too."""
    slow = importlib.import_module("torchvision.ops.roi_align")._roi_align.__wrapped__
    x = np.random.default_rng(0).standard_normal((2, 3, 12, 15), dtype=np.float32)
    rois = np.concatenate([[[0.0], [1], [1], [0]], boxes(4) / 4], 1).astype(np.float32)
    theirs = torch.from_numpy(x.copy()).requires_grad_()
    ours = rushlight.from_numpy(x.copy()).requires_grad_()
    expected = slow(theirs, torch.from_numpy(rois), 0.5, 3, 4, ratio, aligned)
    found = ops.roi_align(ours, rushlight.from_numpy(rois), (3, 4), 0.5, ratio, aligned)
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=1e-5)
    (expected**2).sum().backward()
    (found**2).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), atol=1e-4)


def test_draws_of_dropping():
    x = np.random.default_rng(0).standard_normal((4, 3, 9, 9), dtype=np.float32)
    for function, settings in (
        ("stochastic_depth", {"p": 0.4, "mode": "row"}),
        ("stochastic_depth", {"p": 0.4, "mode": "batch"}),
        ("drop_block2d", {"p": 0.2, "block_size": 3}),
    ):
        torch.manual_seed(3)
        rushlight.manual_seed(3)
        both(function, x, **settings)


def test_pyramids_have_the_same_weights():
    for make in (
        lambda package: package.FeaturePyramidNetwork([4, 8], 6),
        lambda package: package.Conv2dNormActivation(3, 5, (3, 5), dilation=2),
        lambda package: package.SqueezeExcitation(6, 2),
        lambda package: package.MLP(4, [5, 6]),
        lambda package: package.DeformConv2d(4, 6, 3, groups=2),
        lambda package: package.Conv3dNormActivation(3, 5),
    ):
        torch.manual_seed(0)
        expected = make(torchvision.ops)
        rushlight.manual_seed(0)
        found = make(ops)
        assert list(found.state_dict()) == list(expected.state_dict())
        for key, value in expected.state_dict().items():
            np.testing.assert_array_equal(found.state_dict()[key].numpy(), value.numpy())


compiled = pytest.mark.skipif(
    not oracle.compiled("_C.so"), reason="torchvision's compiled part does not load"
)


def differentiated(call, names, arrays):
    """Result and gradients by the named arrays, of both."""
    for module, package in ((torch, torchvision.ops), (rushlight, ops)):
        given = {name: module.from_numpy(array.copy()) for name, array in arrays.items()}
        for name in names:
            given[name].requires_grad_()
        out = call(package, given)
        if names:
            (out**2).sum().backward()
        yield out.detach().numpy(), *(given[name].grad.numpy() for name in names)


@compiled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "call",
    [
        "roi_align(x, rois, (3, 2), 0.5, -1, False)",
        "roi_align(x, rois, (3, 2), 0.25, 2, True)",
        "roi_align(x, [rois[:2, 1:], rois[2:, 1:]], 3)",
        "roi_pool(x, rois, (3, 2), 0.5)",
        "roi_pool(x, rois, 4)",
        "ps_roi_align(x, rois, (3, 2), 0.5, 2)",
        "ps_roi_align(x, rois, 2)",
        "ps_roi_pool(x, rois, (3, 2), 0.5)",
    ],
)
def test_compiled_windows(call, dtype):
    rng = np.random.default_rng(0)
    numbers = np.array([[0], [1], [1], [0]])
    arrays = {
        "x": rng.standard_normal((2, 12, 14, 17)).astype(dtype),
        "rois": np.concatenate([numbers, boxes(4) - 8], 1).astype(dtype),
    }
    names = [] if "ps_roi_pool" in call else ["x"]  # whose gradient there is not that of its values
    results = differentiated(lambda p, given: eval(f"p.{call}", {"p": p, **given}), names, arrays)
    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@compiled
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("how", [{}, {"stride": 2, "padding": (1, 2)}, {"dilation": 2}])
def test_compiled_deformable_convolution(how, groups):
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((6, 4 // groups, 3, 2))
    like = torch.nn.functional.conv2d(torch.zeros(2, 4, 9, 8), torch.zeros(1, 4, 3, 2), **how)
    size = like.shape[2:]
    arrays = {
        "input": rng.standard_normal((2, 4, 9, 8)),
        "offset": rng.standard_normal((2, 2 * 2 * 6, *size)) * 2,
        "weight": weight,
        "bias": rng.standard_normal(6),
        "mask": rng.random((2, 2 * 6, *size)),
    }
    results = differentiated(lambda p, given: p.deform_conv2d(**given, **how), arrays, arrays)
    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@compiled
@pytest.mark.parametrize("n", [0, 1, 30, 2000])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.9])
def test_compiled_nms(n, threshold):
    scores = np.random.default_rng(1).permutation(n).astype("float32")  # ties have no order
    both("nms", boxes(n), scores, threshold)
    classes = np.random.default_rng(2).integers(0, 5, n)
    both("batched_nms", boxes(n), scores, classes, threshold)
