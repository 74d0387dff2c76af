"""Calls of `ops` and `utils` beside torchvision's: numbers, dtypes, first and second gradients, and kinds of errors."""

import re

import numpy as np
import pytest

import rushlight
from tests.parity.test_vision_tensors import OURS, THEIRS, outcome, verdict

torch = pytest.importorskip("torch")

DTYPES = ["uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
KINDS = ("box_iou", "generalized_box_iou", "distance_box_iou", "complete_box_iou")

# a, b: boxes (5, 4) and (7, 4); e: none; t: boxes (3, 5) as XYWHR.
BOXES = [
    *(f"O.{kind}({pair})" for kind in KINDS for pair in ("a, b", "a, e", "e, e", "b, b")),
    *(f"O.box_iou({pair}, fmt='{fmt}')" for fmt in ("xywh", "cxcywh") for pair in ("a, b", "a, e")),
    *(f"O.box_area({pair})" for pair in ("a", "e", "a, fmt='cxcywh'", "a[0]")),
    *(
        f"O.box_convert({x}, '{one}', '{other}')"
        for one in ("xyxy", "xywh", "cxcywh")
        for other in ("xyxy", "xywh", "cxcywh")
        for x in ("a", "e")
    ),
    *("O.box_convert(t, 'xywhr', 'cxcywhr')", "O.box_convert(t, 'cxcywhr', 'xyxyxyxy')"),
    *(
        "O.clip_boxes_to_image(a, (20, 30))",
        "O.clip_boxes_to_image(e, (20, 30))",
        "O.clip_boxes_to_image(a[0], (5, 5))",
    ),
    *("O.remove_small_boxes(a, 8)", "O.remove_small_boxes(e, 8)", "O.remove_small_boxes(a, 0)"),
    *(
        "O.masks_to_boxes(m.ones(2, 5, 6))",
        "O.masks_to_boxes(m.eye(6)[None].expand(3, 6, 6))",
        "O.masks_to_boxes(m.zeros(0, 5, 6))",
    ),
    *(
        "O.masks_to_boxes(m.ones(2, 5, 6).to(a.dtype))",
        "O.box_area(a[:, :3])",
        "O.box_area(a[None])",
    ),
]
LOSSES = ("generalized_box_iou_loss", "distance_box_iou_loss", "complete_box_iou_loss")
# x, y: numbers of one shape; p, q: boxes of one count; n: images (2, 8, 6, 5), r: boxes with the number of their image.
SMOOTH = [
    *(f"O.{loss}(p, q, reduction='{how}')" for loss in LOSSES for how in ("none", "mean", "sum")),
    *(
        f"O.{loss}(p[:0], q[:0], reduction='{how}')"
        for loss in LOSSES
        for how in ("none", "mean", "sum")
    ),
    *(f"O.{loss}(p, q, eps=0.5)" for loss in LOSSES),
    *(f"O.{kind}(p, q)" for kind in KINDS),
    *(
        f"O.sigmoid_focal_loss(x, y, {how})"
        for how in ("", "-1, 3", "0.5, 0, 'mean'", "0.9, 2.5, 'sum'")
    ),
    *(
        f"O.roi_align(n, r, (3, 2), {scale}, {ratio}, {aligned})"
        for scale in (
            0.25,
            0.5,
        )  # their form in Python counts samples outside of the image, their compiled one does not
        for ratio in (2, -1)
        for aligned in (True, False)
    ),
    *("O.box_convert(p, 'xyxy', 'cxcywh')", "O.box_area(p)", "O.clip_boxes_to_image(p, (20, 30))"),
    *(
        "O.SqueezeExcitation(8, 4).requires_grad_(False).double()(n)",
        "O.FrozenBatchNorm2d(8)(n)",
        "O.Permute([1, 0, 3, 2])(n)",
    ),
    *(
        "O.StochasticDepth(0.3, 'row')(n)",
        "O.StochasticDepth(0.3, 'batch')(n)",
        "O.DropBlock2d(0.3, 3)(n)",
        "O.DropBlock3d(0.3, 3)(n[None])",
    ),
    *(
        "O.MLP(5, [4, 3], dropout=0.3).double()(n)",
        "O.Conv2dNormActivation(8, 4).double()(n)",
        "O.Conv3dNormActivation(2, 4).double()(n[None])",
    ),
    "O.MLP(5, [4, 3], norm_layer=m.nn.LayerNorm, activation_layer=m.nn.GELU, inplace=None).double()(n)",
    "list(O.FeaturePyramidNetwork([8, 8], 4).double()({'a': n, 'b': n[:, :, :3, :3]}).values())",
]
BAD = [
    *(f"O.{loss}(p, q, reduction='other')" for loss in LOSSES),
    *(
        "O.sigmoid_focal_loss(x, y, 2)",
        "O.sigmoid_focal_loss(x, y, reduction='other')",
        "O.sigmoid_focal_loss(x, y[:1, :1, None].expand(9, 9, 9))",
    ),
    *(
        "O.box_convert(p, 'other', 'xyxy')",
        "O.box_convert(p, 'xyxy', 'xywhr')",
        "O.box_convert(p[:, :3], 'xyxy', 'xywh')",
    ),
    *(
        "O.box_iou(p, q, fmt='other')",
        "O.box_iou(p[:, :3], q)",
        "O.box_area(None)",
        "O.clip_boxes_to_image(p, 3)",
    ),
    *(
        "O.clip_boxes_to_image(p, (1, 2, 3))",
        "O.remove_small_boxes(p, 'a')",
        "O.masks_to_boxes(m.ones(5))",
        "O.masks_to_boxes(None)",
    ),
    *("O.roi_align(n, p, 2)", "O.roi_align(n, None, 2)", "O.roi_align(n, [p[:, :3]], 2)"),
    *(
        "O.stochastic_depth(n, 2.0, 'row')",
        "O.stochastic_depth(n, -1, 'row')",
        "O.stochastic_depth(n, 0.5, 'other')",
        "O.drop_block2d(n, 2.0, 3)",
        "O.drop_block2d(n, -1, 3)",
    ),
    *(
        "O.drop_block2d(n[0], 0.5, 3)",
        "O.drop_block3d(n, 0.5, 3)",
        "O.FeaturePyramidNetwork([0], 4)",
        "O.FeaturePyramidNetwork([8], 4, extra_blocks=3)",
    ),
    *(
        "O.FrozenBatchNorm2d(8)(n[:, :3])",
        "O.SqueezeExcitation(8, 4)(n[:, :3])",
        "O.Conv2dNormActivation(8, 4)(n[:, :3])",
        "O.MLP(5, [])(n)",
    ),
    *(
        "U.make_grid(3)",
        "U.make_grid([n, 3])",
        "U.make_grid(n[:, :3], value_range=3, normalize=True)",
        "U.make_grid(n[:, :3], nrow=0)",
    ),
    *(
        "U.draw_bounding_boxes(n[0], p)",
        "U.draw_bounding_boxes(3, p)",
        "U.draw_bounding_boxes(u, m.tensor([[5., 5, 1, 1]]))",
        "U.draw_bounding_boxes(u[0], p)",
    ),
    *(
        "U.draw_bounding_boxes(u, p, labels=['a'])",
        "U.draw_bounding_boxes(u, p, colors=['red'])",
        "U.draw_bounding_boxes(u, p, colors=3)",
        "U.draw_bounding_boxes(u[:2], p)",
    ),
    *(
        "U.draw_segmentation_masks(u, m.ones(3, 3, dtype=m.bool))",
        "U.draw_segmentation_masks(u, m.ones(2, 30, 40))",
        "U.draw_segmentation_masks(3, 3)",
        "U.draw_segmentation_masks(n, 3)",
    ),
    *(
        "U.draw_segmentation_masks(u, m.ones(2, 30, 40, dtype=m.bool), colors=['red'])",
        "U.draw_segmentation_masks(u, m.ones(2, 30, 40, dtype=m.bool), colors=[3, 4])",
    ),
    *(
        "U.draw_keypoints(u, m.ones(2, 3))",
        "U.draw_keypoints(3, m.ones(2, 3, 2))",
        "U.draw_keypoints(n, m.ones(2, 3, 2))",
        "U.draw_keypoints(u[:2], m.ones(2, 3, 2))",
    ),
    *(
        "U.draw_keypoints(u, m.ones(2, 3, 2), visibility=m.ones(5, 5))",
        "U.flow_to_image(m.ones(3, 4, 5))",
        "U.flow_to_image(m.ones(2, 4))",
        "U.flow_to_image(m.ones(2, 4, 5).int())",
    ),
]
DRAWN = [
    *(
        "U.make_grid(n[:, :3])",
        "U.make_grid(n[:, :1], nrow=1, padding=1, pad_value=0.5)",
        "U.make_grid(n[0])",
        "U.make_grid(n[0, 0])",
        "U.make_grid(list(n[:, :3]), normalize=True)",
    ),
    *(
        "U.make_grid(n[:, :3], normalize=True, scale_each=True)",
        "U.make_grid(n[:, :3], normalize=True, value_range=(0, 0.5))",
        "U.make_grid(n[:0, :3])",
    ),
    *(
        "U.draw_bounding_boxes(u, p)",
        "U.draw_bounding_boxes(u, p.int(), width=3, fill=True)",
        "U.draw_bounding_boxes(u, p[:0])",
        "U.draw_bounding_boxes(u[:1], p, colors='red')",
    ),
    *(
        "U.draw_bounding_boxes(f, p, colors=['red', (1, 2, 3), '#00ff00', 'blue', 'white'])",
        "U.draw_segmentation_masks(u, m.eye(40, dtype=m.bool)[:30][None])",
    ),
    *(
        "U.draw_segmentation_masks(u, m.eye(40, dtype=m.bool)[:30], alpha=0.2, colors='blue')",
        "U.draw_segmentation_masks(f, m.zeros(0, 30, 40, dtype=m.bool))",
    ),
    *(
        "U.draw_keypoints(u, p[None, :, :2])",
        "U.draw_keypoints(u, p[None, :, :2], connectivity=[(0, 1), (1, 2)], colors='red', radius=3, width=2)",
    ),
    *(
        "U.draw_keypoints(f, p[:, None, :2].round(), visibility=m.tensor([[True], [False], [True], [True], [False]]))",
        "U.flow_to_image(m.linspace(-3, 3, 2 * 6 * 7).view(2, 6, 7))",
    ),
    *(
        "U.flow_to_image(m.zeros(2, 6, 7))",
        "U.flow_to_image(m.linspace(-3, 3, 4 * 6 * 7).view(2, 2, 6, 7))",
    ),
]


def numbers(module, dtype, *shape, seed=0, low=0, high=40):
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return module.from_numpy(values).to(getattr(module, dtype))


def boxes(module, dtype, count, seed=0):
    corners = np.random.default_rng(seed).uniform(0, 30, (count, 2, 2))
    corners.sort(axis=1)
    corners[:, 1] += 1
    whole = (
        np.round(corners.reshape(count, 4)) if "float" not in dtype else corners.reshape(count, 4)
    )
    return module.from_numpy(whole).to(getattr(module, dtype))


def scope(module, dtype):
    """What calls name."""
    image = np.random.default_rng(1).integers(0, 256, (3, 30, 40), dtype=np.uint8)
    rois = module.cat(
        (module.tensor([[0.0], [1], [1]], dtype=module.float64), boxes(module, "float64", 3, 4)), 1
    )
    wide = dtype if "float" in dtype and dtype != "float16" else "float64"
    return {
        "a": boxes(module, dtype, 5),
        "b": boxes(module, dtype, 7, seed=1),
        "e": boxes(module, dtype, 0),
        "t": module.cat((boxes(module, "float64", 3), numbers(module, "float64", 3, 1)), 1).to(
            getattr(module, "int16" if dtype == "uint8" else dtype)
        ),
        "p": boxes(module, wide, 5, seed=2),
        "q": boxes(module, wide, 5, seed=3),
        "x": numbers(module, wide, 4, 3, low=-3, high=3),
        "y": numbers(module, wide, 4, 3, seed=1, low=0, high=1),
        "n": numbers(module, wide, 2, 8, 6, 5, low=-1, high=1),
        "r": rois.to(getattr(module, wide))
        * module.tensor([1.0, 0.2, 0.2, 0.2, 0.2]).to(getattr(module, wide)),
        "u": module.from_numpy(image),
        "f": module.from_numpy(image / np.float32(255)),
    }


def compared(call, dtype, **changes):
    sides = [(torch, THEIRS), (rushlight, OURS)]
    return verdict(
        call, dtype, *(outcome(call, m, names, **scope(m, dtype)) for m, names in sides), **changes
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_boxes(dtype):
    wrong = [f"{call}: {found}" for call in BOXES if (found := compared(call, dtype))]
    assert not wrong, "\n".join(wrong)


def test_bad_arguments():
    wrong = [f"{call}: {found}" for call in BAD if (found := compared(call, "float32"))]
    assert not wrong, "\n".join(wrong)


def test_drawings():
    wrong = [f"{call}: {found}" for call in DRAWN if (found := compared(call, "float32"))]
    assert not wrong, "\n".join(wrong)


def derivatives(module, values, result):
    """First gradients of the result by the values, and those of their squares."""
    parts = result if isinstance(result, list) else [result]
    total = sum((part * part).sum() for part in parts)
    first = module.autograd.grad(total, values, create_graph=True, allow_unused=True)
    wanted = [g for g in first if g is not None and g.requires_grad]
    second = (
        module.autograd.grad(sum((g * g).sum() for g in wanted), values, allow_unused=True)
        if wanted
        else []
    )
    return parts, [g for g in first if g is not None], [g for g in second if g is not None]


def smooth(call, module, names):
    values = scope(module, "float64")
    given = [values[name].requires_grad_() for name in "pqxn"]
    kind, result = outcome(call, module, names, **values)
    return derivatives(module, given, result) if kind == "value" else result


@pytest.mark.parametrize("call", SMOOTH)
def test_gradients(call):
    if call.startswith("O.roi_align"):  # its compiled form is not there, the one in Python is
        oracle = re.sub(
            r"O.roi_align\((.*)\((3, 2)\), (\S+),", r"A._roi_align.__wrapped__(\1\3, \2,", call
        )
        package = __import__("torchvision.ops.roi_align", fromlist=["_roi_align"])
        theirs = smooth(oracle, torch, {**THEIRS, "A": package})
    else:
        theirs = smooth(call, torch, THEIRS)
    ours = smooth(call, rushlight, OURS)
    assert not isinstance(theirs, Exception), theirs
    for expected, found in zip(theirs, ours, strict=True):
        assert len(expected) == len(found)
        for e, f in zip(expected, found, strict=True):
            np.testing.assert_allclose(
                f.detach().numpy(), e.detach().numpy(), rtol=1e-9, atol=1e-10
            )
