"""Networks of `vision` as programs: `jit.script` compiles them, and they give the same bits."""

import pytest

import rushlight as torch
from rushlight.vision import models

NETWORKS = [
    "densenet121",
    "efficientnet_b0",
    "mnasnet0_5",
    "mobilenet_v3_small",
    "regnet_y_400mf",
    "resnet18",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_compile(name):
    torch.manual_seed(0)
    net = getattr(models, name)(weights=None).eval()
    x = torch.randn(2, 3, 64, 64)
    program = torch.jit.script(net)
    with torch.no_grad():
        assert torch.equal(program(x), net(x))
    for one in (program, net):  # dropout and dropped branches draw the same numbers
        one.train()
    torch.manual_seed(1)
    expected = net(x)
    torch.manual_seed(1)
    assert torch.equal(program(x), expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_assertions_of_the_library_are_the_programs():
    def positive(x):
        torch._assert(bool((x > 0).all()), "not positive")
        return x

    program = torch.jit.script(positive)
    assert torch.equal(program(torch.ones(2)), torch.ones(2))
    with pytest.raises(torch.jit.Error, match="not positive"):
        program(-torch.ones(2))
