"""Networks of `vision` as programs: `jit.script` compiles them, and they give the same bits."""

import io

import pytest

import rushlight as torch
from rushlight.vision import models
from tests.python import test_vision_one_stage as one_stage
from tests.python.test_vision_motion import tiny_raft
from tests.python.test_vision_scenes import scene, tiny_detector

IMAGES, VIDEO = (2, 3, 64, 64), (1, 3, 4, 32, 32)
# By name, the arguments beside `weights`, and the shape of the input where it is not IMAGES.
NETWORKS = {
    "alexnet": ({}, (2, 3, 80, 80)),
    "convnext_tiny": ({}, IMAGES),
    "deeplabv3_mobilenet_v3_large": ({"weights_backbone": None, "aux_loss": True}, IMAGES),
    "densenet121": ({}, IMAGES),
    "efficientnet_b0": ({}, IMAGES),
    "fcn_resnet50": ({"weights_backbone": None}, (2, 3, 32, 32)),
    "googlenet": ({"init_weights": False}, IMAGES),
    "inception_v3": ({"init_weights": False}, (2, 3, 80, 80)),
    "lraspp_mobilenet_v3_large": ({"weights_backbone": None}, IMAGES),
    "maxvit_t": ({"input_size": (64, 64), "partition_size": 2}, IMAGES),
    "mnasnet0_5": ({}, IMAGES),
    "mobilenet_v2": ({}, IMAGES),
    "mobilenet_v3_small": ({}, IMAGES),
    "mvit_v2_s": ({"spatial_size": (32, 32), "temporal_size": 4}, VIDEO),
    "r2plus1d_18": ({}, VIDEO),
    "regnet_y_400mf": ({}, IMAGES),
    "resnet18": ({}, IMAGES),
    "s3d": ({}, (1, 3, 16, 64, 64)),
    "shufflenet_v2_x0_5": ({}, IMAGES),
    "squeezenet1_1": ({}, IMAGES),
    "swin3d_t": ({}, VIDEO),
    "swin_t": ({}, IMAGES),
    "swin_v2_t": ({}, IMAGES),
    "vit_b_32": ({"image_size": 64}, IMAGES),
}


def made(name):
    """A network for its small input."""
    arguments, shape = NETWORKS[name]
    net = models.get_model(name, weights=None, **arguments)
    if name == "s3d":  # whose window is of large videos
        net.avgpool = torch.nn.AdaptiveAvgPool3d(1)
    if name == "googlenet":  # whose further heads want large images
        net.aux1 = net.aux2 = None
        net.aux_logits = False
    if name == "inception_v3":
        net.AuxLogits, net.aux_logits = None, False
    return net, torch.randn(shape)


def tensors(out):
    """The tensors of a result in one order; scripts of two networks return named tuples always."""
    if isinstance(out, dict):
        return [out[key] for key in sorted(out)]
    return [t for t in out if t is not None] if isinstance(out, tuple) else [out]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_compile(name):
    torch.manual_seed(0)
    net, x = made(name)
    net.eval()
    program = torch.jit.script(net)
    with torch.no_grad():
        for given, expected in zip(tensors(program(x)), tensors(net(x)), strict=True):
            assert torch.equal(given, expected)
        for one in (program, net):  # dropout and dropped branches draw the same numbers
            one.train()
        torch.manual_seed(1)
        wanted = tensors(net(x))
        torch.manual_seed(1)
        for given, expected in zip(tensors(program(x)), wanted, strict=True):
            assert torch.equal(given, expected)


def again(program):
    """The program as its archive has it."""
    return torch.jit.load(io.BytesIO(program.save_to_buffer()))


def equal(given, expected):
    """Whether both hold the same bits, in containers of the same names."""
    if isinstance(expected, torch.Tensor):
        return torch.equal(given, expected)
    if isinstance(expected, dict):
        return list(given) == list(expected) and all(equal(given[k], expected[k]) for k in given)
    return len(given) == len(expected) and all(map(equal, given, expected))


# By name, a small detector, or one of torchvision's sizes for small images.
DETECTORS = {
    **{kind: (lambda kind=kind: tiny_detector(kind)) for kind in ("boxes", "mask", "keypoint")},
    **{kind: (lambda kind=kind: one_stage.tiny(kind)) for kind in ("retinanet", "fcos", "ssd")},
    **{
        name: (
            lambda name=name: models.get_model(
                name, weights=None, weights_backbone=None, min_size=64
            )
        )
        for name in ("fasterrcnn_mobilenet_v3_large_320_fpn", "fcos_resnet50_fpn")
    },
    **{
        name: (lambda name=name: models.get_model(name, weights=None, weights_backbone=None))
        for name in ("ssd300_vgg16", "ssdlite320_mobilenet_v3_large")
    },
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", DETECTORS)
def test_detectors_compile(name):
    torch.manual_seed(0)
    net = DETECTORS[name]()
    images, targets = map(list, zip(*(scene(i) for i in range(2)), strict=True))
    copies = lambda: [dict(target) for target in targets]
    program = torch.jit.script(net)
    torch.manual_seed(1)
    expected = net(images, copies())
    torch.manual_seed(1)
    losses, found = program(images, copies())
    assert not found or all(not one for one in found)
    assert equal(losses, expected)
    for one in (net, program):
        one.eval()
    for one in net.modules():
        if hasattr(one, "score_thresh"):
            one.score_thresh = 0.0
    images.append(torch.rand(3, 50, 70))
    with torch.no_grad():
        expected = net.eval()(images)
        program = torch.jit.script(net)
        for one in (program, again(program)):
            losses, found = one(images)
            assert losses == {} and equal(found, expected)
    assert sum(len(one["boxes"]) for one in found) > 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["tiny", "raft_small"])
def test_networks_of_flow_compile(name):
    torch.manual_seed(0)
    net = tiny_raft() if name == "tiny" else models.optical_flow.raft_small()
    size = 64 if name == "tiny" else 128
    first, second = torch.rand(2, 1, 3, size, size)
    program = torch.jit.script(net.eval())
    with torch.no_grad():
        expected = net(first, second, 2)
        for one in (program, again(program)):
            assert equal(one(first, second, 2), expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_heads_of_training_are_named_results():
    net = models.googlenet(weights=None, init_weights=False, num_classes=4)
    program, x = torch.jit.script(net), torch.randn(2, 3, 224, 224)
    with torch.no_grad():
        torch.manual_seed(1)
        expected = net(x)
        torch.manual_seed(1)
        given = program(x)
    assert given._fields == expected._fields
    assert all(map(torch.equal, given, expected))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_assertions_of_the_library_are_the_programs():
    def positive(x):
        torch._assert(bool((x > 0).all()), "not positive")
        return x

    program = torch.jit.script(positive)
    assert torch.equal(program(torch.ones(2)), torch.ones(2))
    with pytest.raises(torch.jit.Error, match="not positive"):
        program(-torch.ones(2))
