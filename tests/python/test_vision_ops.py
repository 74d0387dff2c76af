"""Ops of vision by hand-made references: what is kept, windows of boxes, convolution at offset places, blocks."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.vision import ops

RNG = np.random.default_rng(0)


def boxes(n, size=100.0):
    corner = RNG.uniform(0, size, (n, 2))
    return np.concatenate([corner, corner + RNG.uniform(1, size / 3, (n, 2))], 1).astype(np.float32)


def kept_by_hand(box, score, threshold):
    kept = []
    overlaps = ops.box_iou(torch.from_numpy(box), torch.from_numpy(box)).numpy()
    for i in np.argsort(-score, kind="stable"):
        if all(overlaps[i, j] <= threshold for j in kept):
            kept.append(i)
    return kept


@pytest.mark.parametrize("count", [1, 40, 700])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7])
def test_nms(count, threshold):
    box, score = boxes(count), RNG.random(count).astype(np.float32)
    found = ops.nms(torch.from_numpy(box), torch.from_numpy(score), threshold)
    assert found.tolist() == kept_by_hand(box, score, threshold)


def test_nms_of_strange_numbers():
    box = torch.tensor(
        [[0.0, 0, 0, 0], [0, 0, 0, 0], [float("nan")] * 4, [5, 5, 1, 1], [0, 0, float("inf"), 2]]
    )
    assert sorted(ops.nms(box, torch.arange(5.0), 0.5).tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("count", [0, 30, 1500])
def test_nms_of_classes(count):
    box, score = (
        torch.from_numpy(boxes(count)),
        torch.from_numpy(RNG.random(count).astype(np.float32)),
    )
    label = torch.from_numpy(RNG.integers(0, 3, count))
    wanted = set()
    for c in range(3):
        own = (label == c).nonzero().squeeze(1)
        wanted |= set(own[ops.nms(box[own], score[own], 0.4)].tolist())
    found = ops.batched_nms(box, score, label, 0.4)
    assert set(found.tolist()) == wanted and (score[found].diff() <= 0).all()


def bins_by_hand(plane, box, height, width, of_bin):
    """Rounded boxes cut into bins."""
    x1, y1, x2, y2 = (int(np.floor(v + 0.5)) for v in box)
    tall, wide = max(y2 - y1 + 1, 1) / height, max(x2 - x1 + 1, 1) / width
    result = np.zeros((height, width))
    for i in range(height):
        for j in range(width):
            top, left = np.floor(i * tall) + y1, np.floor(j * wide) + x1
            bottom, right = np.ceil((i + 1) * tall) + y1, np.ceil((j + 1) * wide) + x1
            rows, columns = (
                (int(max(a, 0)), int(max(b, 0))) for a, b in ((top, bottom), (left, right))
            )
            part = plane[rows[0] : rows[1], columns[0] : columns[1]]
            result[i, j] = of_bin(part) if part.size else 0
    return result


def test_roi_pool():
    x = RNG.standard_normal((1, 2, 11, 13)).astype(np.float32)
    places = np.array([[1.2, 2.6, 9.4, 8.1], [-3, 4, 20, 30], [40, 40, 50, 50]], np.float32)
    found = ops.roi_pool(torch.from_numpy(x), [torch.from_numpy(places)], (3, 2))
    for box, result in zip(places, found.numpy(), strict=True):
        for plane, windows in zip(x[0], result, strict=True):
            np.testing.assert_array_equal(
                windows, bins_by_hand(plane, box, 3, 2, np.max).astype(np.float32)
            )


def test_position_sensitive_bins_read_channels_of_their_own():
    x = torch.arange(8.0).view(1, 8, 1, 1).expand(1, 8, 6, 6).contiguous()
    rois = torch.tensor([[0.0, 0, 0, 5, 5]])
    for function in (ops.ps_roi_align, ops.ps_roi_pool):
        assert function(x, rois, 2).tolist() == [[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_bins_without_a_sample_are_zero(dtype):
    """Boxes of no height, of no width, of neither, turned inside out, and beside the image."""
    x = torch.ones(1, 4, 8, 8, dtype=dtype, requires_grad=True)
    rois = torch.tensor(
        [[0, 2, 3, 6, 3], [0, 2, 3, 2, 7], [0, 2, 3, 2, 3], [0, 6, 6, 2, 2], [0, 20, 20, 30, 30]],
        dtype=dtype,
    )
    for sampling in (-1, 2):
        found = ops.ps_roi_align(x, rois, 2, 1.0, sampling)
        assert found.isfinite().all()
        assert (found[-1] == 0).all()
        assert sampling > 0 or (found == 0).all()
        slope = torch.autograd.grad(found.sum(), x)[0]
        assert slope.isfinite().all()
        aligned = ops.roi_align(x, rois, 2, 1.0, sampling, aligned=True)
        assert aligned.isfinite().all()
        assert (aligned[-1] == 0).all()
        assert sampling > 0 or (aligned == 0).all()
    # Pools of whole pixels see at least one, and none beside the image.
    assert (ops.roi_pool(x, rois, 2)[:4] == 1).all()
    assert (ops.ps_roi_pool(x, rois, 2)[:3].isfinite()).all()
    assert (ops.roi_pool(x, rois, 2)[-1] == 0).all()
    assert (ops.ps_roi_pool(x, rois, 2)[-1] == 0).all()


def test_constant_images_keep_their_value():
    x = torch.full((1, 1, 8, 8), 3.0)
    inside = torch.tensor([[0.0, 1, 1, 6, 6]])
    for layer in (
        ops.RoIAlign(2, 1.0, -1),
        ops.RoIPool(2, 1.0),
        ops.PSRoIAlign(1, 1.0, 2),
        ops.PSRoIPool(1, 1.0),
    ):
        assert torch.allclose(layer(x, inside), torch.tensor(3.0)), layer
    assert (
        repr(ops.RoIAlign(2, 1.0, -1))
        == "RoIAlign(output_size=2, spatial_scale=1.0, sampling_ratio=-1, aligned=False)"
    )


def test_huge_boxes_take_no_longer():
    x = torch.ones(1, 1, 8, 8)
    rois = torch.tensor(
        [[0.0, -1e9, -1e9, 1e9, 1e9], [0, 0, 0, float("inf"), 3], [0, float("nan"), 0, 1, 1]]
    )
    found = ops.roi_align(x, rois, 2)
    assert found.shape == (3, 1, 2, 2) and found[1:].eq(0).all()


def test_boxes_of_other_shapes():
    x = torch.ones(1, 1, 8, 8)
    for wrong in ([torch.ones(2, 5)], torch.ones(2, 4), 3):
        with pytest.raises(AssertionError, match=r"is not correct as|is expected to be"):
            ops.roi_align(x, wrong, 2)


def test_unmoved_taps_are_those_of_a_convolution():
    x, weight = torch.randn(2, 4, 7, 8), torch.randn(6, 2, 3, 3)
    offset = torch.zeros(2, 18, 4, 4)
    found = ops.deform_conv2d(x, offset, weight, torch.arange(6.0), stride=2, padding=1)
    wanted = torch.nn.functional.conv2d(x, weight, torch.arange(6.0), stride=2, padding=1, groups=2)
    torch.testing.assert_close(found, wanted)
    halved = ops.deform_conv2d(
        x, offset, weight, stride=2, padding=1, mask=torch.full((2, 9, 4, 4), 0.5)
    )
    torch.testing.assert_close(
        halved * 2, wanted - torch.arange(6.0).view(1, 6, 1, 1), rtol=1e-4, atol=1e-5
    )


def test_taps_moved_by_a_pixel():
    x = torch.randn(1, 1, 6, 6)
    offset = torch.zeros(1, 2, 6, 6)
    offset[:, 0] = 1
    found = ops.deform_conv2d(x, offset, torch.ones(1, 1, 1, 1))
    assert torch.equal(found[:, :, :-1], x[:, :, 1:]) and found[:, :, -1].eq(0).all()
    layer = ops.DeformConv2d(4, 6, 3, padding=1, groups=2)
    assert layer(torch.randn(1, 4, 5, 5), torch.randn(1, 18, 5, 5)).shape == (1, 6, 5, 5)
    assert (
        repr(layer)
        == "DeformConv2d(4, 6, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), groups=2)"
    )
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        ops.DeformConv2d(3, 6, 3, groups=2)


def test_threads_change_no_bit():
    x = torch.randn(2, 20, 30, 40)
    rois = torch.cat([torch.randint(0, 2, (64, 1)).float(), torch.from_numpy(boxes(64, 30.0))], 1)
    offset, weight = torch.randn(2, 18, 30, 40), torch.randn(4, 20, 3, 3)
    results = []
    before = torch.get_num_threads()
    for count in (1, 3):
        torch.set_num_threads(count)
        own = [t.detach().clone().requires_grad_() for t in (x, offset, weight)]
        both = ops.roi_align(own[0], rois, 7), ops.deform_conv2d(own[0], own[1], own[2], padding=1)
        sum((b**2).sum() for b in both).backward()
        results.append([*both, *(t.grad for t in own)])
    torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_pyramid():
    from rushlight.vision.ops.feature_pyramid_network import LastLevelMaxPool, LastLevelP6P7

    maps = {"a": torch.randn(1, 4, 16, 16), "b": torch.randn(1, 8, 8, 8)}
    for extra, names in (
        (None, []),
        (LastLevelMaxPool(), ["pool"]),
        (LastLevelP6P7(8, 6), ["p6", "p7"]),
    ):
        out = ops.FeaturePyramidNetwork([4, 8], 6, extra)(maps)
        assert list(out) == ["a", "b", *names] and out["a"].shape == (1, 6, 16, 16)
    with pytest.raises(ValueError, match="in_channels=0"):
        ops.FeaturePyramidNetwork([0, 8], 6)


def test_boxes_of_several_sizes():
    pool = ops.MultiScaleRoIAlign(["0", "1"], 3, 2)
    maps = {
        "0": torch.zeros(1, 1, 64, 64),
        "1": torch.ones(1, 1, 32, 32),
        "other": torch.ones(1, 1, 4, 4),
    }
    found = pool(maps, [torch.tensor([[10.0, 10, 60, 60], [5, 5, 250, 250]])], [(256, 256)])
    assert found.flatten(1).mean(1).tolist() == [0, 1]


def test_frozen_norms():
    norm = torch.nn.BatchNorm2d(3)
    norm(torch.randn(4, 3, 5, 5))
    frozen = ops.FrozenBatchNorm2d(3)
    frozen.load_state_dict(norm.state_dict())
    x = torch.randn(2, 3, 5, 5)
    torch.testing.assert_close(frozen(x), norm.eval()(x))
    assert not list(frozen.parameters()) and repr(frozen) == "FrozenBatchNorm2d(3, eps=1e-05)"


@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.stochastic_depth(torch.ones(2), 1.5, "row"),
        lambda: ops.stochastic_depth(torch.ones(2), 0.5, "all"),
        lambda: ops.drop_block2d(torch.ones(1, 1, 4, 4), 0.5, 2),
        lambda: ops.drop_block3d(torch.ones(1, 1, 4, 4), 0.5, 3),
        lambda: ops.box_convert(torch.ones(1, 4), "xyxy", "yxyx"),
        lambda: ops.box_iou(torch.ones(1, 4), torch.ones(1, 4), fmt="yxyx"),
        lambda: ops.sigmoid_focal_loss(torch.ones(1), torch.ones(1), alpha=2),
        lambda: ops.sigmoid_focal_loss(torch.ones(1), torch.ones(1), reduction="all"),
    ],
)
def test_bad_settings(call):
    with pytest.raises(ValueError):
        call()


def test_upright_and_turned_boxes_do_not_mix():
    with pytest.raises(NotImplementedError, match="in_fmt xyxy and out_fmt xywhr"):
        ops.box_convert(torch.ones(1, 4), "xyxy", "xywhr")


def turned(n, seed=0):
    """Boxes as "cxcywhr"."""
    random = np.random.default_rng(seed)
    middles, sides = random.uniform(-20, 20, (n, 2)), random.uniform(2, 25, (n, 2))
    return torch.from_numpy(np.concatenate([middles, sides, random.uniform(-180, 360, (n, 1))], 1))


def covered(box, x, y):
    """Which points a turned box covers."""
    cx, cy, w, h, r = box.tolist()
    cos, sin = np.cos(np.deg2rad(r)), np.sin(np.deg2rad(r))
    along, down = (x - cx) * cos - (y - cy) * sin, (x - cx) * sin + (y - cy) * cos
    return (np.abs(along) <= w / 2) & (np.abs(down) <= h / 2)


def test_overlaps_of_turned_boxes():
    first, second = turned(7), turned(9, 1)
    found = ops.box_iou(first, second, fmt="cxcywhr")
    x, y = np.meshgrid(np.linspace(-45, 45, 1500), np.linspace(-45, 45, 1500))
    masks = [[covered(box, x, y) for box in boxes] for boxes in (first, second)]
    expected = [[(a & b).sum() / (a | b).sum() for b in masks[1]] for a in masks[0]]
    np.testing.assert_allclose(found.numpy(), expected, atol=3e-3)
    for fmt in ("xywhr", "xyxyxyxy"):
        again = (ops.box_convert(boxes, "cxcywhr", fmt) for boxes in (first, second))
        torch.testing.assert_close(ops.box_iou(*again, fmt=fmt), found)
    torch.testing.assert_close(ops.box_iou(second, first, fmt="cxcywhr"), found.T)
    same = ops.box_iou(first, first + torch.tensor([0, 0, 0, 0, 360.0]), fmt="cxcywhr")
    torch.testing.assert_close(same.diagonal(), torch.ones(7, dtype=torch.float64))
    batch = torch.stack([first, first.flip(0)])
    torch.testing.assert_close(ops.box_iou(batch, second, fmt="cxcywhr")[1], found.flip(0))


def test_turned_boxes_that_stand_upright():
    box = turned(6).float()
    box[:, 4] = torch.tensor([0.0, 90, 180, 270, -90, 360])
    upright = box[:, :4].clone()
    upright[1::2, 2:] = box[1::2, 2:4].flip(1)
    upright[4, 2:] = box[4, 2:4].flip(0)
    upright[5, 2:] = box[5, 2:4]
    expected = ops.box_iou(upright, upright, fmt="cxcywh")
    found = ops.box_iou(box, box, fmt="cxcywhr")
    assert found.dtype is torch.float32
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    # Far from the origin, side by side, at a corner, and of no area.
    far = torch.tensor([[1e4, 1e4, 4, 2, 30], [1e4, 1e4, 2, 4, 120]], dtype=torch.float64)
    assert ops.box_iou(far[:1], far[1:], fmt="cxcywhr").item() == pytest.approx(1)
    base = torch.tensor([[0.0, 0, 2, 2, 0]])
    others = torch.tensor([[2.0, 0, 2, 2, 0], [2, 2, 2, 2, 0], [0, 0, 0, 0, 5], [9, 9, 1, 1, 1]])
    assert ops.box_iou(base, others, fmt="cxcywhr").abs().max() < 1e-9
    assert ops.box_iou(base, base[:0], fmt="cxcywhr").shape == (1, 0)
    assert ops.box_iou(base.half(), base.long(), fmt="cxcywhr").dtype is torch.float32


def test_gradients_of_turned_overlaps():
    first, second = turned(3).requires_grad_(), turned(4, 1).requires_grad_()
    overlap = lambda a, b: ops.box_iou(a, b, fmt="cxcywhr")
    assert torch.autograd.gradcheck(overlap, (first, second))
    many = ops.box_iou(turned(300), turned(200, 1), fmt="cxcywhr")
    one_by_one = ops.box_iou(turned(300)[250:251], turned(200, 1), fmt="cxcywhr")
    assert torch.equal(many[250:251], one_by_one) and many.max() <= 1 + 1e-12


def test_dropped_blocks():
    torch.manual_seed(0)
    x = torch.ones(8, 4, 20, 20)
    out = ops.DropBlock2d(0.2, 5)(x)
    assert abs(out.mean().item() - 1) < 1e-3 and 0.1 < (out == 0).float().mean().item() < 0.3
    assert ops.DropBlock2d(0.2, 5).eval()(x) is x
    assert ops.DropBlock3d(0.2, 3)(torch.ones(1, 2, 6, 6, 6)).shape == (1, 2, 6, 6, 6)
