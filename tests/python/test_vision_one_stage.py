"""Detectors of one stage: they learn made-up scenes, look at the right boxes, and say what is wrong."""

import math
from functools import partial

import pytest

import rushlight as torch
from rushlight.vision import models, ops
from rushlight.vision.models import detection
from rushlight.vision.models.detection import _utils, ssd
from rushlight.vision.models.detection.anchor_utils import AnchorGenerator, DefaultBoxGenerator
from rushlight.vision.models.detection.fcos import FCOSHead
from rushlight.vision.models.detection.retinanet import RetinaNetHead
from tests.python.test_vision_scenes import scene, tiny_backbone


def tiny(kind):
    settings = {"min_size": 64, "max_size": 64, "score_thresh": 0.2}
    backbone = tiny_backbone(32)
    if kind == "ssd":
        backbone.out_channels = [32]
        anchors = DefaultBoxGenerator([[2]], scales=[0.25, 0.4])
        return ssd.SSD(backbone, anchors, (64, 64), 2, score_thresh=0.2)
    if kind == "fcos":
        anchors = AnchorGenerator(((8,),), ((1.0,),))
        head = FCOSHead(32, 1, 2, num_convs=1)
        return detection.FCOS(backbone, 2, anchor_generator=anchors, head=head, **settings)
    anchors = AnchorGenerator(((16, 32),), ((1.0,),))
    head = RetinaNetHead(32, 2, 2, norm_layer=partial(torch.nn.GroupNorm, 8))
    return detection.RetinaNet(backbone, 2, anchor_generator=anchors, head=head, **settings)


@pytest.mark.parametrize("kind", ["retinanet", "fcos", "ssd"])
def test_detectors_learn(kind):
    torch.manual_seed(0)
    model = tiny(kind)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(80):
        images, targets = zip(*(scene(4 * step + i) for i in range(4)), strict=True)
        loss = sum(model(list(images), list(targets)).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    overlaps = []
    for seed in range(1000, 1010):
        image, target = scene(seed)
        with torch.no_grad():
            found = model([image])[0]
        if len(found["boxes"]):
            assert found["labels"][0] == 1
            overlaps.append(ops.box_iou(found["boxes"][:1], target["boxes"]).item())
    assert len(overlaps) >= 8 and sum(overlaps) / len(overlaps) > 0.5


@pytest.mark.parametrize("kind", ["retinanet", "fcos", "ssd"])
def test_images_of_no_things(kind):
    model = tiny(kind)
    empty = {"boxes": torch.zeros(0, 4), "labels": torch.zeros(0, dtype=torch.int64)}
    losses = model([torch.rand(3, 64, 64)], [empty])
    assert losses["bbox_regression"].item() == 0 and losses["classification"].isfinite()
    sum(losses.values()).backward()
    with pytest.raises(AssertionError, match="targets should not be none"):
        model([torch.rand(3, 64, 64)])
    inverted = {"boxes": torch.tensor([[5.0, 5, 1, 9]]), "labels": torch.tensor([1])}
    with pytest.raises(AssertionError, match="positive height and width"):
        model([torch.rand(3, 64, 64)], [inverted])
    model.eval().score_thresh = 2.0
    assert model([torch.rand(3, 64, 64)])[0]["boxes"].shape == (0, 4)


def test_places_of_fcos_learn_the_smallest_box():
    model = tiny("fcos")
    anchors = torch.tensor([[x, 12.0, x + 8.0, 20.0] for x in range(0, 40, 8)])
    boxes = torch.tensor([[0.0, 0, 40, 32], [8, 8, 24, 24], [100, 100, 120, 120]])
    # Middles at 4, 12 … 36; the second box's middle is at 16, and 12 pixels reach from there.
    assert model._match(boxes, anchors, [5]).tolist() == [-1, 1, 1, 0, -1]
    assert model._match(boxes[:0], anchors, [5]).tolist() == [-1] * 5


def test_sides_told_from_middles():
    around = torch.tensor([[0.0, 0, 8, 4], [2, 2, 6, 6]])
    boxes = torch.tensor([[1.0, 1, 9, 3], [0, 0, 12, 10]])
    for normalize in (True, False):
        coder = _utils.BoxLinearCoder(normalize)
        torch.testing.assert_close(coder.decode(coder.encode(around, boxes), around), boxes)
    assert _utils.BoxLinearCoder().encode(around, boxes)[0].tolist() == [0.375, 0.25, 0.625, 0.25]


def test_every_thing_has_a_box():
    overlaps = torch.tensor([[0.9, 0.1, 0.4], [0.2, 0.3, 0.1]])
    assert _utils.SSDMatcher(0.5)(overlaps).tolist() == [0, 1, -1]


def test_the_hardest_of_nothing_counts():
    model = tiny("ssd")
    logits = torch.tensor([[[0.0, 0], [0, 3], [0, 1], [0, 2], [4, 0], [0, 5]]])
    out = {"cls_logits": logits, "bbox_regression": torch.zeros(1, 6, 4)}
    box = torch.tensor([[0.0, 0, 4, 4]])
    target = {"boxes": box, "labels": torch.tensor([1])}
    number = torch.tensor([0, -1, -1, -1, -1, -1])
    loss = model.compute_loss([target], out, [box.expand(6, 4)], [number])
    expected = math.log(2) + sum(math.log(1 + math.exp(x)) for x in (5, 3, 2))
    assert loss["classification"].item() == pytest.approx(expected)
    assert loss["bbox_regression"].item() == 0


def test_older_names_of_towers():
    head = RetinaNetHead(8, 1, 2)
    state = head.state_dict()
    older = {}
    for name, value in state.items():
        part, _, rest = name.partition(".conv.")
        number, _, what = rest.partition(".0.")
        older[f"{part}.conv.{2 * int(number)}.{what}" if rest else name] = value + 1
    head.load_state_dict(older)
    for name, value in head.state_dict().items():
        torch.testing.assert_close(value, state[name])


@pytest.mark.parametrize(
    "name, count",
    [
        ("retinanet_resnet50_fpn", 34014999),
        ("fcos_resnet50_fpn", 32269600),
        ("ssdlite320_mobilenet_v3_large", 3440060),
    ],
)
def test_sizes_of_trained_models(name, count, monkeypatch):
    weights = models.get_model_weights(name).DEFAULT
    assert weights.meta["num_params"] == count
    state = models.get_model(name, weights_backbone=None).state_dict()
    monkeypatch.setattr(models.WeightsEnum, "get_state_dict", lambda *a, **k: state)
    model = models.get_model(name, weights="DEFAULT")
    assert sum(p.numel() for p in model.parameters()) == count


def test_settings_that_do_not_fit():
    with pytest.raises(ValueError, match="attribute out_channels"):
        detection.RetinaNet(torch.nn.Identity(), 2)
    with pytest.raises(TypeError, match="should be of type AnchorGenerator"):
        detection.FCOS(tiny_backbone(), 2, anchor_generator=3)
    with pytest.raises(AssertionError, match="one anchor at each place"):
        detection.FCOS(tiny_backbone(), 2, anchor_generator=AnchorGenerator(((8, 16),)))
    silent = tiny_backbone()
    del silent.out_channels
    with pytest.raises(ValueError, match="do not match the length of the anchor"):
        ssd.SSD(silent, DefaultBoxGenerator([[2], [2]]), (64, 64), 2)
    with pytest.raises(ValueError, match="should have the same length"):
        DefaultBoxGenerator([[2]], steps=[8, 16])
    with pytest.warns(UserWarning, match="already fixed"):
        models.get_model("ssdlite320_mobilenet_v3_large", weights_backbone=None, size=(9, 9))
    with pytest.raises(ValueError, match=r"range \[0,5\], got 6"):
        ssd._vgg_extractor(models.vgg16(), False, 6)
    large = ssd._vgg_extractor(models.vgg16(), True, 1)
    trained = {n.split(".")[1] for n, p in large.features.named_parameters() if p.requires_grad}
    assert len(large.extra) == 6 and not trained
