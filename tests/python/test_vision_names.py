"""Names that programs written for torchvision import, beside those that its documentation has."""

import inspect

import pytest

import rushlight as torch
from rushlight import vision
from rushlight.vision import models
from rushlight.vision.models import _utils
from rushlight.vision.transforms import _functional_video as clips
from rushlight.vision.transforms import _transforms_video as of_clips


def test_backends():
    assert vision.get_image_backend() == "PIL" and vision.get_video_backend() == "pyav"
    vision.set_image_backend("PIL"), vision.set_video_backend("pyav")
    for refuse in (vision.set_image_backend, vision.set_video_backend):
        with pytest.raises(ValueError, match="Invalid"):
            refuse("video_reader")
    assert vision.disable_beta_transforms_warning() is None


def test_categories_and_downloads():
    from rushlight.vision import _internally_replaced_utils
    from rushlight.vision.models import _meta

    assert len(_meta._IMAGENET_CATEGORIES) == 1000 and _meta._COCO_CATEGORIES[1] == "person"
    assert len(_meta._KINETICS400_CATEGORIES) == 400 and len(_meta._VOC_CATEGORIES) == 21
    assert len(_meta._COCO_PERSON_KEYPOINT_NAMES) == 17
    found = _internally_replaced_utils.load_state_dict_from_url
    assert found is torch.hub.load_state_dict_from_url


def test_functions_from_before_weights():
    best = models.ResNet18_Weights.IMAGENET1K_V1

    @_utils.handle_legacy_interface(weights=("pretrained", best))
    def make(*, weights=None, progress=True, **kwargs):
        return weights, progress, kwargs

    assert make() == (None, True, {}) and make(weights=best) == (best, True, {})
    for given in ({"pretrained": True}, {"weights": True}):
        with pytest.warns(UserWarning, match="'pretrained' is deprecated"):
            assert make(**given, size=3) == (best, True, {"size": 3})
    with pytest.warns(UserWarning, match="by position"):
        assert make(best, False) == (best, False, {})
    with pytest.warns(UserWarning, match="weights=None"):
        assert make(pretrained=False)[0] is None
    assert list(inspect.signature(make).parameters) == ["weights", "progress", "kwargs"]
    none = _utils.handle_legacy_interface(weights=("pretrained", lambda kwargs: None))(make)
    with pytest.raises(ValueError, match="No weights available for model make"):
        none(pretrained=True)
    assert _utils._ovewrite_value_param("n", None, 3) == 3
    with pytest.raises(ValueError, match="The parameter 'n' expected value 3 but got 4"):
        _utils._ovewrite_value_param("n", 4, 3)


def test_samples_of_proposals_by_parts():
    heads = models.detection.fasterrcnn_resnet50_fpn(weights_backbone=None, num_classes=3).roi_heads
    boxes = torch.tensor([[0.0, 0, 10, 10], [20, 20, 40, 40]])
    proposals = heads.add_gt_proposals([boxes + 1], [boxes])
    assert proposals[0].equal(torch.cat((boxes + 1, boxes)))
    none = boxes[:0]
    matched, labels = heads.assign_targets_to_proposals(
        [proposals[0], boxes + 100], [boxes, none], [torch.tensor([2, 1]), torch.zeros(0)]
    )
    assert matched[0].tolist() == [0, 1, 0, 1] and labels[0].tolist() == [2, 1, 2, 1]
    assert labels[1].tolist() == [0, 0]
    assert sorted(len(kept) for kept in heads.subsample(labels)) == [2, 4]
    with pytest.raises(ValueError, match="targets should not be None"):
        heads.check_targets(None)
    with pytest.raises(AssertionError, match="should have a labels key"):
        heads.check_targets([{"boxes": boxes}])


def test_clips():
    clip = torch.arange(2 * 3 * 8 * 6, dtype=torch.uint8).view(2, 8, 6, 3)
    floats = of_clips.ToTensorVideo()(clip)
    assert floats.shape == (3, 2, 8, 6) and floats.max() <= 1
    assert of_clips.CenterCropVideo(4)(floats).equal(floats[..., 2:6, 1:5])
    assert of_clips.RandomHorizontalFlipVideo(1.0)(floats).equal(floats.flip(-1))
    normed = of_clips.NormalizeVideo((0.5,) * 3, (2.0,) * 3)(floats)
    assert torch.allclose(normed, (floats - 0.5) / 2)
    part = of_clips.RandomCropVideo((4, 5))(floats)
    assert part.shape == (3, 2, 4, 5)
    assert of_clips.RandomResizedCropVideo((4, 4))(floats).shape == (3, 2, 4, 4)
    assert clips.resize(floats, (4, 3), "bilinear").shape == (3, 2, 4, 3)
    assert repr(of_clips.ToTensorVideo()) == "ToTensorVideo"
    assert repr(of_clips.CenterCropVideo(4)) == "CenterCropVideo(crop_size=(4, 4))"
    for call, error in (
        (lambda: clips.crop(floats[0], 0, 0, 1, 1), ValueError),
        (lambda: clips.hflip([1]), TypeError),
        (lambda: clips.to_tensor(floats), TypeError),
        (lambda: clips.center_crop(floats, (9, 9)), ValueError),
        (lambda: clips.resize(floats, (4,), "bilinear"), ValueError),
    ):
        with pytest.raises(error):
            call()
