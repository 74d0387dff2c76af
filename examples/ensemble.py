"""Trains ten networks at once and asks where they disagree: there they have seen no data.

`stack_module_state` lays their weights side by side, `vmap` runs all of them as one: an ensemble
costs little more than a member. How far the members are apart tells what they do not know
(Lakshminarayanan, Pritzel and Blundell 2017, arXiv:1612.01474).
"""

import argparse

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.func import functional_call, stack_module_state, vmap


def curve(x: Tensor) -> Tensor:
    return x.sin() + 0.3 * (3 * x).cos()


def data(n: int) -> tuple[Tensor, Tensor]:
    """Noisy points of the curve, from -3 to -1 and from 1 to 3: nothing lies between."""
    x = (1 + 2 * torch.rand(n, 1)) * torch.where(torch.rand(n, 1) < 0.5, -1.0, 1.0)
    return x, curve(x) + 0.05 * torch.randn(n, 1)


def train(members: int, epochs: int, samples: int) -> tuple[float, float]:
    """Returns how far the members are apart where there is data, and between."""
    nets = [nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 1)) for _ in range(members)]
    weights, buffers = stack_module_state(nets)
    x, y = data(samples)
    # Every member sees a sample of its own, drawn with replacement.
    drawn = torch.randint(samples, (members, samples))

    def member(w: dict[str, Tensor], b: dict[str, Tensor], points: Tensor) -> Tensor:
        return functional_call(nets[0], (w, b), (points,))

    optimizer = torch.optim.Adam(list(weights.values()), lr=1e-2)
    for epoch in range(epochs):
        optimizer.zero_grad()
        loss = (vmap(member)(weights, buffers, x[drawn]) - y[drawn]).square().mean()
        loss.backward()
        optimizer.step()
        if (epoch + 1) % max(1, epochs // 10) == 0:
            print(f"epoch {epoch + 1:4}  loss {loss.item():.4f}")
    line = torch.linspace(-3, 3, 25).unsqueeze(1)
    with torch.no_grad():
        found = vmap(member, in_dims=(0, 0, None))(weights, buffers, line)
    mean, apart = found.mean(0).flatten(), found.std(0).flatten()
    print("      x   curve    mean   apart")
    for point, wanted, m, a in zip(line.flatten(), curve(line).flatten(), mean, apart, strict=True):
        print(f"{point:7.2f} {wanted:7.2f} {m:7.2f} {a:7.2f} {'#' * round(a.item() * 40)}")
    known = line.flatten().abs() >= 1
    return apart[known].mean().item(), apart[~known].mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=200)
    torch.manual_seed(0)
    train(**vars(parser.parse_args()))
