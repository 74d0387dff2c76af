"""Architectures against torchvision's: names, shapes, drawn weights, and what they compute with the same weights."""

import importlib
import warnings

import numpy as np
import pytest

import rushlight
from rushlight.vision import models, ops
from tests.parity import torchvision as oracle

torchvision = oracle.load()
torch = pytest.importorskip("torch")

# One of each family, of those that are quick to draw.
CLASSIFICATION = {
    **dict.fromkeys(
        ["resnet18", "resnet50", "resnext50_32x4d", "squeezenet1_0", "squeezenet1_1"], 64
    ),
    **dict.fromkeys(
        ["densenet121", "googlenet", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large"], 64
    ),
    **dict.fromkeys(
        ["shufflenet_v2_x0_5", "mnasnet0_5", "efficientnet_b0", "efficientnet_v2_s"], 64
    ),
    **dict.fromkeys(
        ["regnet_y_400mf", "regnet_x_400mf", "convnext_tiny", "swin_t", "swin_v2_t"], 64
    ),
    "maxvit_t": 224,
    "inception_v3": 96,
}


def pair(name, **settings):
    """The model from both libraries, drawn from one seed."""
    if name in ("googlenet", "inception_v3"):
        settings["init_weights"] = name == "inception_v3"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        theirs = torchvision.models.get_model(name, **settings)
        rushlight.manual_seed(0)
        return theirs, models.get_model(name, **settings)


def same_weights(theirs, ours):
    expected, found = theirs.state_dict(), ours.state_dict()
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert tuple(found[name].shape) == tuple(value.shape), name
        np.testing.assert_array_equal(found[name].numpy(), value.numpy(), err_msg=name)


def close(found, expected, rtol=1e-4):
    scale = max(float(expected.abs().max()), 1e-30)
    np.testing.assert_allclose(
        found.detach().numpy() / scale, expected.detach().numpy() / scale, atol=rtol, rtol=0
    )


def image(size):
    return np.random.default_rng(0).standard_normal((2, 3, size, size), dtype=np.float32)


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_classification(name):
    theirs, ours = pair(name, num_classes=10)
    same_weights(theirs, ours)
    x = image(CLASSIFICATION[name])
    with torch.no_grad(), rushlight.no_grad():
        close(ours.eval()(rushlight.from_numpy(x)), theirs.eval()(torch.from_numpy(x)))


@pytest.mark.parametrize(
    "name",
    ["resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1", "regnet_x_400mf"],
)
def test_gradients(name):
    theirs, ours = pair(name, num_classes=4)
    x = image(64)
    for model, array in ((theirs, torch.from_numpy(x)), (ours, rushlight.from_numpy(x))):
        model.eval()
        (model(array) ** 2).mean().backward()
    for expected, found in zip(theirs.parameters(), ours.parameters(), strict=True):
        close(found.grad, expected.grad, rtol=2e-3)


def test_lists_and_metadata():
    assert models.list_models() == torchvision.models.list_models()
    for name in models.list_models():
        expected, found = (m.get_model_weights(name) for m in (torchvision.models, models))
        assert found.__name__ == expected.__name__
        assert list(found.__members__) == list(expected.__members__)
        for key, weights in expected.__members__.items():
            assert found[key].url == weights.url
            meta = {k: v for k, v in weights.meta.items() if k != "_docs"}
            assert repr({k: found[key].meta.get(k) for k in meta}) == repr(meta)
            assert models.get_weight(repr(weights)) is found[key]


# Their kinds of models decide by what they compute, so there is no graph.
UNTRACED = ("rcnn", "retinanet", "fcos", "ssd", "raft")
LARGE = ("regnet_y_128gf",)  # two times 2.6 GB; regnet_y_32gf is of the same kind


def on_meta(module, library, name):
    """A model without numbers; RegNets compute their widths with tensors."""
    settings = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    if name.startswith(("fcn", "deeplab", "lraspp")):
        settings["weights_backbone"] = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with library.device("cpu" if name.startswith("regnet") else "meta"):
            return module.models.get_model(name, **settings)


@pytest.mark.parametrize(
    "name", [n for n in models.list_models() if not any(kind in n for kind in (*UNTRACED, *LARGE))]
)
def test_graph_node_names(name):
    extraction = importlib.import_module("torchvision.models.feature_extraction")
    theirs = extraction.get_graph_node_names(
        on_meta(torchvision, torch, name), suppress_diff_warning=True
    )
    if name.startswith("quantized"):  # their sums have observers, for which there is nothing here
        theirs = tuple([n for n in names if "activation_post_process" not in n] for names in theirs)
    ours = models.feature_extraction.get_graph_node_names(
        on_meta(rushlight.vision, rushlight, name), suppress_diff_warning=True
    )
    if name.startswith(("quantized_resnet50", "quantized_resnext")):
        # There each activation has a module of its own.
        assert [len(names) for names in ours] == [len(names) for names in theirs]
    else:
        assert ours == theirs


@pytest.mark.parametrize(
    "name", ["fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"]
)
def test_segmentation(name):
    theirs, ours = pair(name, weights_backbone=None, num_classes=5)
    same_weights(theirs, ours)
    x = image(64)
    with torch.no_grad(), rushlight.no_grad():
        expected = theirs.eval()(torch.from_numpy(x))
        close(ours.eval()(rushlight.from_numpy(x))["out"], expected["out"])


@pytest.mark.parametrize("name", ["mc3_18", "r2plus1d_18"])
def test_videos(name):
    theirs, ours = pair(name, num_classes=5)
    same_weights(theirs, ours)
    x = np.random.default_rng(0).standard_normal((1, 3, 4, 16, 16), dtype=np.float32)
    with torch.no_grad(), rushlight.no_grad():
        close(ours.eval()(rushlight.from_numpy(x)), theirs.eval()(torch.from_numpy(x)))


# Enough boxes that no rounding decides which are kept.
SMALL = {
    "weights_backbone": None,
    "num_classes": 2,
    "min_size": 96,
    "max_size": 128,
    "rpn_post_nms_top_n_test": 50,
    "rpn_post_nms_top_n_train": 50,
    "box_detections_per_img": 5,
    "box_batch_size_per_image": 32,
    "box_score_thresh": 0.0,
}


@pytest.fixture
def their_nms(monkeypatch):
    """torchvision's compiled nms is not there: ours in its place."""

    def nms(boxes, scores, threshold):
        arrays = (rushlight.from_numpy(t.detach().numpy()) for t in (boxes, scores))
        return torch.from_numpy(ops.nms(*arrays, threshold).numpy())

    monkeypatch.setattr(torchvision.ops.boxes, "nms", nms)


@pytest.mark.parametrize(
    "name", ["fasterrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn", "keypointrcnn_resnet50_fpn"]
)
def test_detection(name, their_nms):
    theirs, ours = pair(name, **SMALL)
    same_weights(theirs, ours)
    x = np.random.default_rng(0).random((2, 3, 70, 90), dtype=np.float32)
    with torch.no_grad(), rushlight.no_grad():
        expected = theirs.eval()(list(torch.from_numpy(x)))
        found = ours.eval()(list(rushlight.from_numpy(x)))
    for one, other in zip(expected, found, strict=True):
        assert list(one) == list(other) and len(one["boxes"])
        for key in one:
            close(other[key].float(), one[key].float(), rtol=1e-3)
    losses = []
    for module, model in ((torch, theirs), (rushlight, ours)):
        model.train()
        for layer in model.modules():
            if isinstance(layer, module.nn.BatchNorm2d):
                layer.eval()
        module.manual_seed(1)
        target = {
            "boxes": module.tensor([[5.0, 6, 30, 40], [20, 10, 60, 64]]),
            "labels": module.tensor([1, 1]),
            "masks": module.ones(2, 70, 90, dtype=module.uint8),
            "keypoints": module.tensor([[[10.0, 12, 1]] * 17, [[30.0, 30, 1]] * 17]),
        }
        losses.append(model(list(module.from_numpy(x)), [target, target]))
    assert set(losses[1]) == set(losses[0])
    # Of proposals that score alike, rounding decides which are among the sample.
    for key, value in losses[0].items():
        assert losses[1][key].item() == pytest.approx(value.item(), rel=0.03)


@pytest.mark.parametrize(
    "name",
    [
        *["retinanet_resnet50_fpn", "retinanet_resnet50_fpn_v2", "fcos_resnet50_fpn"],
        *["ssd300_vgg16", "ssdlite320_mobilenet_v3_large"],
    ],
)
def test_one_stage_detection(name, their_nms):
    how = {} if name.startswith("ssd") else {"min_size": 96, "max_size": 128}
    how |= {"num_classes": 3, "score_thresh": 0.0, "detections_per_img": 20}
    theirs, ours = pair(name, weights_backbone=None, **how)
    same_weights(theirs, ours)
    x = np.random.default_rng(0).random((2, 3, 70, 90), dtype=np.float32)
    for model in (theirs, ours):
        for head in ("cls_logits", "module_list"):  # scores that lie apart
            layers = getattr(model.head.classification_head, head, None)
            for parameter in [] if layers is None else layers.parameters():
                parameter.data *= 20 if name.startswith("ssdlite") else 1
    with torch.no_grad(), rushlight.no_grad():
        expected = theirs.eval()(list(torch.from_numpy(x)))
        found = ours.eval()(list(rushlight.from_numpy(x)))
    for one, other in zip(expected, found, strict=True):
        assert list(one) == list(other) and len(one["boxes"]) == len(other["boxes"]) > 0
        close(other["scores"], one["scores"], rtol=1e-3)
        if not name.startswith("ssd"):  # whose boxes score alike by the rounding of a softmax
            close(other["boxes"], one["boxes"], rtol=1e-3)
    losses = []
    for module, model in ((torch, theirs), (rushlight, ours)):
        model.train()
        for layer in model.modules():
            if isinstance(layer, module.nn.BatchNorm2d):
                layer.eval()
        target = {
            "boxes": module.tensor([[5.0, 6, 30, 40], [20, 10, 60, 64]]),
            "labels": module.tensor([1, 2]),
        }
        nothing = {"boxes": module.zeros(0, 4), "labels": module.zeros(0, dtype=module.int64)}
        losses.append(model(list(module.from_numpy(x)), [target, nothing]))
        sum(losses[-1].values()).backward()
    assert set(losses[1]) == set(losses[0])
    for key, value in losses[0].items():
        assert losses[1][key].item() == pytest.approx(value.item(), rel=1e-3)
    heads = (m.head.regression_head.parameters() for m in (theirs, ours))
    for expected, found in zip(*heads, strict=True):
        close(found.grad, expected.grad, rtol=5e-3)


def test_default_boxes():
    module = importlib.import_module("torchvision.models.detection.anchor_utils")
    for settings in ({"scales": [0.1, 0.3, 0.5], "steps": [8, 16]}, {"clip": False}):
        found = []
        for library, generators, lists in (
            (torch, module, importlib.import_module("torchvision.models.detection.image_list")),
            (
                rushlight,
                *[
                    importlib.import_module(f"rushlight.vision.models.detection.{name}")
                    for name in ("anchor_utils", "image_list")
                ],
            ),
        ):
            make = generators.DefaultBoxGenerator([[2], [2, 3]], **settings)
            maps = [library.zeros(1, 1, 5, 7), library.zeros(1, 1, 2, 3)]
            images = lists.ImageList(library.zeros(1, 3, 40, 60), [(40, 60)])
            found.append((repr(make), make.num_anchors_per_location(), make(images, maps)[0]))
        assert found[0][:2] == found[1][:2]
        close(found[1][2], found[0][2], rtol=1e-6)


@pytest.mark.parametrize("name, size", [("s3d", (13, 193)), ("swin3d_t", (6, 36))])
def test_video_networks(name, size):
    theirs, ours = pair(name, num_classes=5)
    same_weights(theirs, ours)
    frames, side = size
    side = 224 if name == "s3d" else side
    x = np.random.default_rng(0).standard_normal((1, 3, frames, side, side + 4), dtype=np.float32)
    theirs.eval(), ours.eval()
    expected, found = theirs(torch.from_numpy(x)), ours(rushlight.from_numpy(x))
    close(found, expected)
    (expected**2).sum().backward()
    (found**2).sum().backward()
    pairs = list(zip(theirs.parameters(), ours.parameters(), strict=True))
    for one, other in pairs[-2:] if name == "s3d" else pairs:  # whose first gradients are 1e-10
        close(other.grad, one.grad, rtol=1e-3)


@pytest.mark.parametrize("version", [1, 2])
def test_multiscale_networks(version):
    name = ("mvit_v1_b", "mvit_v2_s")[version - 1]
    same_weights(*pair(name))
    models_of_both = []
    for library, package in ((torch, "torchvision"), (rushlight, "rushlight.vision")):
        module = importlib.import_module(f"{package}.models.video.mvit")
        conf, second, pool = module.MSBlockConfig, version == 2, [3, 3, 3]
        blocks = [
            conf(1, 16, 32, pool if second else [], pool, [1, 1, 1] if second else [], [1, 4, 4]),
            conf(2, 32, 64, pool, pool, [1, 2, 2], [1, 2, 2]),
            conf(2, 64, 64, [], pool, [], [1, 1, 1]),
        ]
        library.manual_seed(0)
        model = module.MViT(
            *((32, 48), 8, blocks),
            residual_pool=second,
            residual_with_cls_embed=False,
            rel_pos_embed=second,
            proj_after_attn=second,
            num_classes=5,
        )
        models_of_both.append(model.eval())
    theirs, ours = models_of_both
    same_weights(theirs, ours)
    for ps in zip(theirs.parameters(), ours.parameters(), strict=True):
        noise = np.random.default_rng(1).standard_normal(ps[0].shape, dtype=np.float32) * 0.1
        ps[0].data += torch.from_numpy(noise)
        ps[1].data += rushlight.from_numpy(noise)
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 32, 48), dtype=np.float32)
    expected, found = theirs(torch.from_numpy(x)), ours(rushlight.from_numpy(x))
    close(found, expected)
    (expected**2).sum().backward()
    (found**2).sum().backward()
    for (key, one), other in zip(theirs.named_parameters(), ours.parameters(), strict=True):
        if not key.endswith("pool_k.norm_act.0.bias"):  # which softmax takes no notice of
            close(other.grad, one.grad, rtol=1e-3)


@pytest.mark.parametrize("name", ["raft_large", "raft_small"])
def test_optical_flow(name):
    theirs, ours = pair(name)
    same_weights(theirs, ours)
    x = np.random.default_rng(0).random((2, 1, 3, 128, 136), dtype=np.float32) * 2 - 1
    theirs.eval(), ours.eval()
    expected = theirs(*torch.from_numpy(x), num_flow_updates=3)
    found = ours(*rushlight.from_numpy(x), num_flow_updates=3)
    for one, other in zip(expected, found, strict=True):
        close(other, one, rtol=1e-4)
    sum((flow**2).sum() for flow in expected).backward()
    sum((flow**2).sum() for flow in found).backward()
    updates = (m.update_block.parameters() for m in (theirs, ours))
    for one, other in zip(*updates, strict=True):
        close(other.grad, one.grad, rtol=1e-3)


def test_quantizable_networks():
    for name in torchvision.models.list_models(torchvision.models.quantization):
        assert name in models.list_models(models.quantization)
    theirs, ours = pair("quantized_shufflenet_v2_x0_5", num_classes=4)
    same_weights(theirs, ours)
    assert type(ours).__name__ == type(theirs).__name__
    x = image(64)
    with torch.no_grad(), rushlight.no_grad():
        close(ours.eval()(rushlight.from_numpy(x)), theirs.eval()(torch.from_numpy(x)))
