"""Trains a network with gradients that are private: each sample's is clipped, and noise is added.

Differential privacy wants the gradient of every sample by itself. `vmap(grad(loss))` computes them
together, in one pass over the batch: `loss` is written for one sample, and no layer knows of it.
"""

import argparse

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.func import functional_call, grad_and_value, vmap


def moons(n: int, noise: float = 0.1) -> tuple[Tensor, Tensor]:
    """Points of two half circles that reach into each other, and which circle each belongs to."""
    label = torch.arange(n) % 2
    angle = torch.rand(n) * torch.pi
    upper = torch.stack([angle.cos(), angle.sin()], 1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], 1)
    points = torch.where(label.unsqueeze(1) == 0, upper, lower)
    return points + noise * torch.randn(n, 2), label


def train(epochs: int, clip: float, noise: float, rate: float, batch: int) -> float:
    """Returns how many of fresh points the network gets right."""
    net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
    weights = {name: p.detach() for name, p in net.named_parameters()}

    def loss(w: dict[str, Tensor], point: Tensor, label: Tensor) -> Tensor:
        return nn.functional.cross_entropy(functional_call(net, w, (point,)), label)

    of_each = vmap(grad_and_value(loss), in_dims=(None, 0, 0))
    points, labels = moons(2000)
    for epoch in range(epochs):
        total = 0.0
        for index in torch.randperm(len(points)).split(batch):
            grads, losses = of_each(weights, points[index], labels[index])
            squares = torch.stack([g.flatten(1).square().sum(1) for g in grads.values()]).sum(0)
            factor = (clip / squares.sqrt().clamp(min=1e-6)).clamp(max=1)
            for name, g in grads.items():
                kept = torch.tensordot(factor, g, dims=1) / len(index)
                kept += torch.randn_like(kept) * (noise * clip / len(index))
                weights[name] = weights[name] - rate * kept
            total += losses.sum().item()
        print(f"epoch {epoch + 1:2}  loss {total / len(points):.3f}")
    fresh, wanted = moons(1000)
    right = (functional_call(net, weights, (fresh,)).argmax(1) == wanted).float().mean().item()
    print(f"{right:.1%} of fresh points are right")
    return right


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument(
        "--clip", type=float, default=1.0, help="the norm that no sample's gradient exceeds"
    )
    parser.add_argument(
        "--noise", type=float, default=0.5, help="deviation of the noise, times clip"
    )
    parser.add_argument("--rate", type=float, default=1.0, help="learning rate")
    parser.add_argument("--batch", type=int, default=100)
    torch.manual_seed(0)
    train(**vars(parser.parse_args()))
