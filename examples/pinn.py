"""Solves the heat equation with a network that is told nothing but the equation.

u_t = k u_xx on a rod of length 1 whose ends are kept cold and whose heat at the beginning is known.
The network u(x, t) is trained so that the equation, by its own derivatives, holds at random places
(Raissi, Perdikaris and Karniadakis 2019). Derivatives are forward over forward by `func.jvp`. The
exact solution is known, a sum of waves that die away, and is compared with. It writes
demo/pinn.png: the network's solution, the exact one, and the error, ten times as strong.
"""

import argparse
import math
from pathlib import Path
from typing import Any

import drawing
from PIL import Image
from tqdm import tqdm

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.func import jvp

CONDUCTIVITY = 0.1
WAVES = ((1, 1.0), (3, 0.5))  # half waves in the rod, and their heights


def exact(x: Tensor, t: Tensor) -> Tensor:
    """Each wave keeps its form and dies away by the square of its number."""
    parts = [
        height * (n * math.pi * x).sin() * (-CONDUCTIVITY * (n * math.pi) ** 2 * t).exp()
        for n, height in WAVES
    ]
    return torch.stack(parts).sum(0)


class Rod(nn.Module):
    """Places x (N) and times t (N) to temperatures (N).

    x (1 - x) keeps the ends at 0, and t the beginning at what is known: nothing but the equation
    itself is left to learn.
    """

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1),
        )  # fmt: skip

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        free = self.net(torch.stack([2 * x - 1, 2 * t - 1], -1))[:, 0]
        return exact(x, torch.zeros_like(t)) + 4 * t * x * (1 - x) * free


def residual(model: Rod, x: Tensor, t: Tensor) -> Tensor:
    """u_t - k u_xx at each place."""
    ones = torch.ones_like(x)

    def along(place: Tensor) -> Tensor:
        def over_places(p: Tensor) -> Tensor:
            return model(p, t)

        return jvp(over_places, (place,), (ones,))[1]

    def over_times(s: Tensor) -> Tensor:
        return model(x, s)

    _, twice = jvp(along, (x,), (ones,))
    _, change = jvp(over_times, (t,), (ones,))
    return change - CONDUCTIVITY * twice


def field(values: Tensor) -> Image.Image:
    return drawing.picture(values, 4)


def main(steps: int, size: int, out: Path) -> float:
    """Train and compare; the greatest error, of temperatures up to about 1."""
    torch.manual_seed(0)
    model = Rod()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    bar: Any = tqdm(range(steps), unit="step")
    for _ in bar:
        x, t = torch.rand(2, size)
        loss = residual(model, x, t).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        bar.set_postfix(residual=f"{loss.item() ** 0.5:.4f}", refresh=False)
    along = torch.linspace(0, 1, 48)
    x, t = (grid.flatten() for grid in torch.meshgrid(along, along, indexing="ij"))
    with torch.no_grad():
        found, true = model(x, t).view(48, 48), exact(x, t).view(48, 48)
    away = (found - true).abs().max().item()
    print(f"the greatest error is {away:.4f}")
    images = [
        drawing.captioned(field(found), "network: x down, t to the right"),
        drawing.captioned(field(true), "exact"),
        drawing.captioned(field(10 * (found - true).abs()), f"error x 10, at most {away:.4f}"),
    ]
    drawing.save(drawing.sheet(images, 3), out)
    return away


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--out", type=Path, default=Path("demo/pinn.png"))
    arguments = parser.parse_args()
    main(arguments.steps, arguments.batch, arguments.out)
