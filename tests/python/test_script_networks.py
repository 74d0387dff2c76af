"""Networks of `vision` as programs: `jit.script` compiles them, and they give the same bits."""

import pytest

import rushlight as torch
from rushlight.vision import models

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
    """The tensors of a result in one order."""
    if isinstance(out, dict):
        return [out[key] for key in sorted(out)]
    return list(out) if isinstance(out, tuple) else [out]


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
