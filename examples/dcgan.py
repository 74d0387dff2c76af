"""Trains two networks against each other on handwritten digits: one draws, one judges.

A DCGAN (Radford 2015) at 16 x 16 pixels, on scikit-learn's digits. It writes demo/dcgan.png: a row
of drawings for each epoch that is shown, from the same numbers, and real digits below.
"""

import argparse
from pathlib import Path
from typing import Any

from sklearn.datasets import load_digits  # pyright: ignore[reportMissingTypeStubs]
from tqdm import tqdm

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.utils.data import DataLoader, TensorDataset
from rushlight.vision.utils import make_grid, save_image

NOISE = 32


def digits() -> Tensor:
    """The pictures, (1797, 1, 16, 16), from -1 to 1."""
    bunch: Any = load_digits()  # pyright: ignore[reportUnknownVariableType]
    images = torch.from_numpy(bunch.images).to(torch.float32).unsqueeze(1) / 8 - 1
    return nn.Upsample(scale_factor=2.0, mode="bilinear", align_corners=False)(images)


def draw_weights(module: nn.Module) -> None:
    """Small normal numbers, as the paper has them."""
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)


def build(width: int) -> tuple[nn.Sequential, nn.Sequential]:
    """What draws pictures (N, 1, 16, 16) of noise (N, 32, 1, 1), and what scores them."""
    drawer = nn.Sequential(
        nn.ConvTranspose2d(NOISE, 2 * width, 4, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.ConvTranspose2d(width, 1, 4, 2, 1),
        nn.Tanh(),
    )
    judge = nn.Sequential(
        nn.Conv2d(1, width, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Dropout(0.3),
        nn.Conv2d(width, 2 * width, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Dropout(0.3),
        nn.Conv2d(2 * width, 1, 4),
    )
    for network in (drawer, judge):
        network.apply(draw_weights)
    return drawer, judge


def train(drawer: nn.Module, judge: nn.Module, epochs: int, batch: int) -> list[Tensor]:
    """Drawings of the same noise, after each of six of the epochs."""
    steps: list[torch.optim.Optimizer] = [
        torch.optim.Adam(network.parameters(), lr=4e-4, betas=(0.5, 0.999))
        for network in (drawer, judge)
    ]
    loader = DataLoader(TensorDataset(digits()), batch, shuffle=True, drop_last=True)
    same = torch.randn(12, NOISE, 1, 1)
    loss = nn.BCEWithLogitsLoss()
    shown = {round(epochs * part / 6) for part in range(1, 7)}
    rows: list[Tensor] = []
    bar: Any
    with tqdm(total=epochs * len(loader), unit="step") as bar:
        for epoch in range(1, epochs + 1):
            bar.set_description(f"epoch {epoch}/{epochs}")
            for (real,) in loader:
                drawn: Tensor = drawer(torch.randn(len(real), NOISE, 1, 1))
                # The judge: 0.9 for real digits, 0 for drawn ones.
                of_real, of_drawn = judge(real).flatten(), judge(drawn.detach()).flatten()
                judged = loss(of_real, torch.full_like(of_real, 0.9))
                judged = judged + loss(of_drawn, torch.zeros_like(of_drawn))
                steps[1].zero_grad()
                judged.backward()
                steps[1].step()
                # What draws: its pictures should score as real ones.
                scores = judge(drawn).flatten()
                fooled = loss(scores, torch.ones_like(scores))
                steps[0].zero_grad()
                fooled.backward()
                steps[0].step()
                bar.set_postfix(
                    judge=f"{judged.item():.2f}", drawer=f"{fooled.item():.2f}", refresh=False
                )
                bar.update()
            if epoch in shown:
                drawer.eval()
                with torch.no_grad():
                    rows.append(drawer(same))
                drawer.train()
    return rows


def main(epochs: int, width: int, batch: int, out: Path) -> float:
    """Trains and draws; how much of what is drawn looks like a digit to its nearest real one."""
    torch.manual_seed(0)
    drawer, judge = build(width)
    rows = train(drawer, judge, epochs, batch)
    real = digits()
    sheet = torch.cat([*rows, real[:12]])
    out.parent.mkdir(parents=True, exist_ok=True)
    tiles = nn.Upsample(scale_factor=3.0)(sheet)
    save_image(make_grid(tiles, nrow=12, pad_value=1.0, normalize=True, value_range=(-1, 1)), out)
    drawer.eval()
    with torch.no_grad():
        drawn: Tensor = drawer(torch.randn(200, NOISE, 1, 1)).flatten(1)
    away = torch.cdist(drawn, real.flatten(1)).min(1).values.mean().item()
    usual = torch.cdist(real[:200].flatten(1), real[200:].flatten(1)).min(1).values.mean().item()
    print(
        f"distance to the nearest real digit {away:.2f}, of other real ones {usual:.2f}; see {out}"
    )
    return away


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--width", type=int, default=48, help="channels of the inner maps")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--out", type=Path, default=Path("demo/dcgan.png"))
    main(**vars(parser.parse_args()))
