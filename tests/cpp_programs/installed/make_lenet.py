"""Writes lenet.pt2, which serve.cpp serves: `python -m tests.cpp_programs.installed.make_lenet`."""

from pathlib import Path

import rushlight as torch
from rushlight import nn

FILE = Path(__file__).with_name("lenet.pt2")


def lenet():
    """LeNet with made-up weights, of few different numbers."""
    net = nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    )
    with torch.no_grad():
        for i, weight in enumerate(net.parameters()):
            places = torch.arange(weight.numel()).view(weight.shape)
            weight.copy_(((places * (7 + i)) % 17 - 8) / 64)
    return net.eval()


if __name__ == "__main__":
    torch.export.save(torch.export.export(lenet(), (torch.zeros(1, 1, 28, 28),)), FILE)
