"""Models of scenes and videos: segmentation, detection with masks and keypoints, training on made-up scenes."""

import pytest

import rushlight as torch
from rushlight.vision import models, ops
from rushlight.vision.models import detection
from rushlight.vision.models.detection import _utils, roi_heads, transform
from rushlight.vision.models.detection.anchor_utils import AnchorGenerator


def tiny_backbone(channels=8):
    body = torch.nn.Sequential(
        torch.nn.Conv2d(3, channels, 3, stride=4, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(channels, channels, 3, stride=2, padding=1),
        torch.nn.ReLU(),
    )
    body.out_channels = channels
    return body


def tiny_settings():
    pool = {"featmap_names": ["0"], "sampling_ratio": 2}
    return {
        "min_size": 64,
        "max_size": 64,
        "rpn_anchor_generator": AnchorGenerator(((16, 32),), ((1.0,),)),
        "box_roi_pool": ops.MultiScaleRoIAlign(output_size=4, **pool),
        "box_head": detection.faster_rcnn.TwoMLPHead(8 * 16, 32),
        "box_predictor": detection.faster_rcnn.FastRCNNPredictor(32, 2),
        "box_batch_size_per_image": 32,
        "rpn_batch_size_per_image": 32,
        "box_score_thresh": 0.3,
    }


def scene(seed):
    """A bright square on a dark image, and where it is."""
    torch.manual_seed(seed)
    x, y = (int(torch.randint(0, 40, ())) for _ in range(2))
    image = torch.rand(3, 64, 64) * 0.1
    image[:, y : y + 20, x : x + 20] = 1
    mask = torch.zeros(1, 64, 64, dtype=torch.uint8)
    mask[:, y : y + 20, x : x + 20] = 1
    points = torch.tensor([[[x + 10.0, y + 10.0, 1.0]]])
    boxes = torch.tensor([[x, y, x + 20.0, y + 20.0]])
    return image, {"boxes": boxes, "labels": torch.tensor([1]), "masks": mask, "keypoints": points}


def test_a_detector_learns():
    torch.manual_seed(0)
    model = detection.FasterRCNN(tiny_backbone(), **tiny_settings())
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(60):
        images, targets = zip(*(scene(4 * step + i) for i in range(4)), strict=True)
        losses = model(list(images), list(targets))
        optimizer.zero_grad()
        sum(losses.values()).backward()
        optimizer.step()
    assert set(losses) == {"loss_classifier", "loss_box_reg", "loss_objectness", "loss_rpn_box_reg"}
    model.eval()
    overlaps = []
    for seed in range(1000, 1010):
        image, target = scene(seed)
        with torch.no_grad():
            found = model([image])[0]
        if len(found["boxes"]):
            overlaps.append(ops.box_iou(found["boxes"][:1], target["boxes"]).item())
    assert len(overlaps) >= 8 and sum(overlaps) / len(overlaps) > 0.5


def tiny_detector(kind):
    """A detector of boxes, or of masks or keypoints as well."""
    pool = ops.MultiScaleRoIAlign(["0"], output_size=4, sampling_ratio=2)
    settings = tiny_settings()
    if kind == "mask":
        more = {
            "mask_roi_pool": pool,
            "mask_head": detection.mask_rcnn.MaskRCNNHeads(8, (8,), 1),
            "mask_predictor": detection.mask_rcnn.MaskRCNNPredictor(8, 8, 2),
        }
        return detection.MaskRCNN(tiny_backbone(), **settings, **more)
    if kind == "keypoint":
        more = {
            "keypoint_roi_pool": pool,
            "keypoint_head": detection.keypoint_rcnn.KeypointRCNNHeads(8, (8,)),
            "keypoint_predictor": detection.keypoint_rcnn.KeypointRCNNPredictor(8, 1),
        }
        return detection.KeypointRCNN(tiny_backbone(), **settings, **more)
    return detection.FasterRCNN(tiny_backbone(), **settings)


@pytest.mark.parametrize("kind", ["mask", "keypoint"])
def test_masks_and_keypoints(kind):
    torch.manual_seed(0)
    model = tiny_detector(kind)
    images, targets = zip(*(scene(i) for i in range(2)), strict=True)
    losses = model(list(images), list(targets))
    assert torch.isfinite(losses[f"loss_{kind}"]) and losses[f"loss_{kind}"] > 0
    sum(losses.values()).backward()
    assert all(p.grad is not None for p in model.roi_heads.parameters())
    model.eval()
    model.roi_heads.score_thresh = 0.0
    with torch.no_grad():
        found = model([torch.rand(3, 50, 70), torch.rand(3, 64, 40)])
    for result, size in zip(found, ((50, 70), (64, 40)), strict=True):
        count = len(result["boxes"])
        assert count > 0 and result["labels"].eq(1).all() and (result["scores"].diff() <= 0).all()
        if kind == "mask":
            assert result["masks"].shape == (count, 1, *size)
        else:
            assert result["keypoints"].shape == (count, 1, 3) and result[
                "keypoints_scores"
            ].shape == (count, 1)


def test_images_of_no_things():
    model = detection.FasterRCNN(tiny_backbone(), **tiny_settings())
    empty = {"boxes": torch.zeros(0, 4), "labels": torch.zeros(0, dtype=torch.int64)}
    losses = model([torch.rand(3, 64, 64)], [empty])
    assert losses["loss_box_reg"].item() == 0 and losses["loss_rpn_box_reg"].item() == 0
    with pytest.raises(AssertionError, match="targets should not be none"):
        model([torch.rand(3, 64, 64)])
    inverted = {"boxes": torch.tensor([[5.0, 5, 1, 9]]), "labels": torch.tensor([1])}
    with pytest.raises(
        AssertionError, match=r"positive height and width. Found invalid box \[5.0, 5.0, 1.0, 9.0\]"
    ):
        model([torch.rand(3, 64, 64)], [inverted])
    with pytest.raises(ValueError, match="list of 3d tensors"):
        model.eval()([torch.rand(1, 3, 64, 64)])
    with pytest.raises(TypeError, match="Expected input images to be of floating type"):
        model([torch.zeros(3, 64, 64, dtype=torch.uint8)])
    with pytest.raises(ValueError, match="attribute out_channels"):
        detection.FasterRCNN(torch.nn.Identity(), 2)
    with pytest.raises(ValueError, match="num_classes should not be None"):
        detection.FasterRCNN(tiny_backbone())


def test_boxes_told_relative_to_others():
    coder = _utils.BoxCoder((10.0, 10.0, 5.0, 5.0))
    boxes = torch.tensor([[1.0, 2, 11, 22], [3, 3, 9, 5]])
    seen_from = torch.tensor([[0.0, 0, 8, 8], [4, 2, 10, 8]])
    told = coder.encode([boxes], [seen_from])[0]
    torch.testing.assert_close(coder.decode(told, [seen_from])[:, 0], boxes)


def test_matching():
    overlaps = torch.tensor([[0.9, 0.1, 0.4, 0.0], [0.2, 0.2, 0.45, 0.0]])
    assert _utils.Matcher(0.5, 0.3)(overlaps).tolist() == [0, -1, -2, -1]
    assert _utils.Matcher(0.5, 0.3, True)(overlaps).tolist() == [0, -1, 1, -1]
    with pytest.raises(ValueError, match="No ground-truth boxes available"):
        _utils.Matcher(0.5, 0.3)(torch.zeros(0, 4))
    positive, negative = _utils.BalancedPositiveNegativeSampler(4, 0.5)(
        [torch.tensor([1, 1, 1, 0, 0, 0, -1])]
    )
    assert (
        positive[0].sum() == 2
        and negative[0].sum() == 2
        and not positive[0][3:].any()
        and not negative[0][:3].any()
    )


def test_anchors():
    base = AnchorGenerator(((32,),), ((0.5, 1.0, 2.0),))
    assert base.cell_anchors[0].tolist() == [
        [-23, -11, 23, 11],
        [-16, -16, 16, 16],
        [-11, -23, 11, 23],
    ]
    found = base.grid_anchors([(2, 2)], [(8, 4)])[0]
    assert (
        found.shape == (12, 4)
        and found[4].tolist() == [-12, -16, 20, 16]
        and found[7].tolist() == [-16, -8, 16, 24]
    )


def test_resizing():
    prepare = transform.GeneralizedRCNNTransform(40, 64, [0.5] * 3, [0.5] * 3)
    batch, targets = prepare(
        [torch.rand(3, 50, 100), torch.rand(3, 20, 20)],
        [{"boxes": torch.tensor([[0.0, 0, 100, 50]])}] * 2,
    )
    assert batch.image_sizes == [(32, 64), (40, 40)] and batch.tensors.shape == (2, 3, 64, 64)
    torch.testing.assert_close(targets[0]["boxes"], torch.tensor([[0.0, 0, 64, 32]]))
    assert batch.tensors[0, :, 32:].eq(0).all()
    fixed = transform.GeneralizedRCNNTransform(
        40, 64, [0.5] * 3, [0.5] * 3, size_divisible=1, fixed_size=(30, 20)
    )
    assert fixed([torch.rand(3, 50, 100)])[0].tensors.shape == (1, 3, 20, 30)


def test_masks_of_boxes_in_images():
    mask = torch.ones(1, 1, 4, 4)
    pasted = roi_heads.paste_masks_in_image(mask, torch.tensor([[-5.0, 4, 7, 12]]), (10, 10))
    assert (
        pasted.shape == (1, 1, 10, 10)
        and pasted[0, 0, 6:, :5].gt(0.9).all()
        and pasted[0, 0, :2].eq(0).all()
    )


@pytest.mark.parametrize("name", ["deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"])
def test_segmentation(name):
    settings = {"aux_loss": True} if name.startswith("deeplab") else {}
    model = models.get_model(name, weights_backbone=None, num_classes=3, **settings).eval()
    with torch.no_grad():
        out = model(torch.rand(2, 3, 40, 64))
    assert list(out) == ["out", *(["aux"] if settings else [])]
    assert all(scores.shape == (2, 3, 40, 64) for scores in out.values())


def test_videos():
    with torch.no_grad():
        for name in ("mc3_18", "r2plus1d_18"):
            assert models.get_model(name, num_classes=3).eval()(
                torch.rand(1, 3, 4, 16, 16)
            ).shape == (1, 3)
    assert "r3d_18" in models.list_models(module=models.video)


def test_detectors_by_name(monkeypatch):
    model = detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights_backbone=None, num_classes=3
    ).eval()
    with torch.no_grad():
        found = model([torch.rand(3, 60, 80)])
    assert set(found[0]) == {"boxes", "labels", "scores"}
    assert (
        models.get_model_weights("fasterrcnn_resnet50_fpn").DEFAULT.meta["categories"][1]
        == "person"
    )
    with pytest.warns(UserWarning, match="trainable_backbone_layers has no effect"):
        detection.fasterrcnn_mobilenet_v3_large_320_fpn(
            weights_backbone=None, trainable_backbone_layers=2
        )
