"""torchvision's networks as archives: what PyTorch has scripted and saved runs here, and what is scripted and saved
here runs there, with the same numbers. Those of SAMPLE run always, all with `-m "slow or not slow"`.
"""

import io
import warnings

import numpy as np
import pytest

import rushlight
from rushlight.vision import models
from tests.parity import torchvision as oracle

torchvision = oracle.load()
torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

CLASSIFIERS = {
    **dict.fromkeys(["alexnet", "vgg11_bn", "resnet18", "resnet50", "resnext50_32x4d"], 64),
    **dict.fromkeys(["wide_resnet50_2", "squeezenet1_1", "densenet121", "googlenet"], 64),
    **dict.fromkeys(["mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x1_0"], 64),
    **dict.fromkeys(["mnasnet0_5", "efficientnet_b0", "regnet_y_400mf", "convnext_tiny"], 64),
    **dict.fromkeys(["swin_t", "swin_v2_t"], 64),
    "inception_v3": 96,
    "vit_b_16": 224,
    "maxvit_t": 224,
}
SEGMENTERS = ["fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"]
VIDEOS = ["r3d_18", "mvit_v2_s", "s3d"]
DETECTORS = [
    *("fasterrcnn_mobilenet_v3_large_320_fpn", "maskrcnn_resnet50_fpn", "retinanet_resnet50_fpn"),
    *("keypointrcnn_resnet50_fpn", "fcos_resnet50_fpn"),
]
SAMPLE = ("squeezenet1_1", "lraspp_mobilenet_v3_large")


def settings_of(name):
    if name in ("googlenet", "inception_v3"):
        return {"init_weights": False, "num_classes": 10}
    if name in SEGMENTERS:
        return {"weights_backbone": None, "num_classes": 5}
    if name in DETECTORS:
        of_boxes = "box_" if "rcnn" in name else ""
        few = {f"{of_boxes}score_thresh": 0.0, f"{of_boxes}detections_per_img": 8}
        sizes = {"min_size": 96, "max_size": 128}
        return {"weights_backbone": None, "num_classes": 3, **sizes, **few}
    return {"num_classes": 10}


def inputs_of(name):
    """Arrays; a list of images of detectors."""
    draw = np.random.default_rng(0)
    if name in DETECTORS:
        return [draw.random((3, 80, 96)) for _ in range(2)]
    if name in VIDEOS:
        size = (8, 64, 64) if name == "r3d_18" else (16, 224, 224)
        return draw.standard_normal((1, 3, *size), dtype=np.float32)
    size = CLASSIFIERS.get(name, 64)
    return draw.standard_normal((2, 3, size, size), dtype=np.float32)


def pair(name):
    """The network from both libraries with the same weights, for inference. Detectors compute with
    float64, so that no rounding decides which boxes are kept.
    """
    torch.manual_seed(0)
    theirs = torchvision.models.get_model(name, **settings_of(name)).eval()
    ours = models.get_model(name, **settings_of(name)).eval()
    if name in DETECTORS:
        theirs, ours = theirs.double(), ours.double()
    state = {k: rushlight.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()}
    ours.load_state_dict(state)
    return theirs, ours


def run(library, network, inputs):
    def tensors(arrays):
        if isinstance(arrays, list):
            return [library.from_numpy(a) for a in arrays]
        return library.from_numpy(arrays)

    with library.no_grad():
        return network(tensors(inputs))


def count(results):
    """The number of elements."""
    if isinstance(results, dict | list | tuple):
        parts = results.values() if isinstance(results, dict) else results
        return sum(map(count, parts))
    return 0 if results is None else results.numel()


def same(found, expected):
    """Tensors agree to 1e-5 of the largest element, containers and lengths exactly."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            same(found[key], value)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif expected is None:
        assert found is None
    else:
        found, expected = np.asarray(found.detach()), np.asarray(expected.detach())
        assert found.shape == expected.shape and found.dtype == expected.dtype
        scale = max(float(np.abs(expected).max(initial=0)), 1.0)
        np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=1e-5)


def through_file(writer, network, reader):
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer.jit.save(writer.jit.script(network), stream)
        stream.seek(0)
        return reader.jit.load(stream)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=() if n in SAMPLE else pytest.mark.slow)
        for n in (*CLASSIFIERS, *SEGMENTERS, *VIDEOS, *DETECTORS)
    ],
)
def test_archives_both_ways(name):
    if name in DETECTORS and not oracle.compiled("_C.so"):
        pytest.skip("torchvision's compiled part does not load")
    theirs, ours = pair(name)
    inputs = inputs_of(name)
    expected = run(torch, torch.jit.script(theirs), inputs)
    assert count(expected) > 0
    same(run(rushlight, through_file(torch, theirs, rushlight), inputs), expected)
    same(run(torch, through_file(rushlight, ours, torch), inputs), expected)
