"""Draws digits out of noise: a network learns to tell the noise in a picture, step by step.

Denoising diffusion (Ho, Jain and Abbeel 2020, arXiv:2006.11239) at 8 x 8 pixels on scikit-learn's
digits, told which digit to draw. It writes demo/diffusion.png: each row a digit, from noise on the
left to the drawing on the right.
"""

import argparse
from pathlib import Path
from typing import Any

import drawing
from sklearn.datasets import load_digits  # pyright: ignore[reportMissingTypeStubs]
from tqdm import tqdm

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.nn import functional as F


class Block(nn.Module):
    """Two convolutions beside the input; what is known of the step and the digit is added."""

    def __init__(self, channels: int, known: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.GroupNorm(8, channels), nn.SiLU(), nn.Conv2d(channels, channels, 3, padding=1)
        )
        self.known = nn.Linear(known, channels)
        self.second = nn.Sequential(
            nn.GroupNorm(8, channels), nn.SiLU(), nn.Conv2d(channels, channels, 3, padding=1)
        )

    def forward(self, x: Tensor, known: Tensor) -> Tensor:
        return x + self.second(self.first(x) + self.known(known)[:, :, None, None])


class Denoiser(nn.Module):
    """Pictures (N, 1, 8, 8) with noise, steps (N) and digits (N) to the noise in them."""

    def __init__(self, steps: int, channels: int = 32, blocks: int = 3) -> None:
        super().__init__()
        self.step, self.digit = nn.Embedding(steps, channels), nn.Embedding(10, channels)
        self.before = nn.Conv2d(1, channels, 3, padding=1)
        self.blocks = nn.ModuleList(Block(channels, channels) for _ in range(blocks))
        self.after = nn.Sequential(
            nn.GroupNorm(8, channels), nn.SiLU(), nn.Conv2d(channels, 1, 3, padding=1)
        )

    def forward(self, x: Tensor, step: Tensor, digit: Tensor) -> Tensor:
        known = F.silu(self.step(step) + self.digit(digit))
        h = self.before(x)
        for block in self.blocks:
            h = block(h, known)
        return self.after(h)


class Schedule:
    """How much noise each step adds, and what is left of the picture after it."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.added = torch.linspace(1e-3, 0.2, steps)
        self.kept = (1 - self.added).cumprod(0)

    def noisy(self, x: Tensor, noise: Tensor, step: Tensor) -> Tensor:
        kept = self.kept[step][:, None, None, None]
        return kept.sqrt() * x + (1 - kept).sqrt() * noise

    @torch.no_grad()
    def draw(self, model: Denoiser, digits: Tensor, shown: int) -> list[Tensor]:
        """Pictures of these digits out of noise, `shown` of the steps."""
        x = torch.randn(len(digits), 1, 8, 8)
        frames: list[Tensor] = []
        for step in range(self.steps - 1, -1, -1):
            added, kept = self.added[step], self.kept[step]
            noise = model(x, torch.full((len(digits),), step), digits)
            x = (x - added / (1 - kept).sqrt() * noise) / (1 - added).sqrt()
            x = x + added.sqrt() * torch.randn_like(x) if step else x
            if step % (self.steps // shown) == 0:
                frames.append(x)
        return frames


def main(epochs: int, size: int, steps: int, out: Path) -> float:
    """Train and draw; the mean error of the noise in the last epoch."""
    torch.manual_seed(0)
    bunch: Any = load_digits()  # pyright: ignore[reportUnknownVariableType]
    pictures = torch.from_numpy(bunch.images).float()[:, None] / 8 - 1
    labels = torch.from_numpy(bunch.target).long()
    schedule, model = Schedule(steps), Denoiser(steps)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    rounds = epochs * (len(pictures) // size)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=rounds)
    mean = 0.0
    bar: Any = tqdm(range(epochs), unit="epoch")
    for _ in bar:
        losses: list[float] = []
        for chosen in torch.randperm(len(pictures)).split(size)[: len(pictures) // size]:
            noise, step = torch.randn(size, 1, 8, 8), torch.randint(0, steps, (size,))
            noisy = schedule.noisy(pictures[chosen], noise, step)
            loss = F.mse_loss(model(noisy, step, labels[chosen]), noise)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
            losses.append(loss.item())
        mean = sum(losses) / len(losses)
        bar.set_postfix(error=f"{mean:.3f}", refresh=False)
    frames = schedule.draw(model.eval(), torch.arange(10), 8)
    images = [drawing.picture((frame[d] + 1) / 2) for d in range(10) for frame in frames]
    drawing.save(drawing.sheet(images, len(frames)), out)
    return mean


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--out", type=Path, default=Path("demo/diffusion.png"))
    arguments = parser.parse_args()
    main(arguments.epochs, arguments.batch, arguments.steps, arguments.out)
