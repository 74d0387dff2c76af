"""Lays handwritten digits out on a plane: a variational autoencoder with two numbers for a picture.

The encoder gives a mean and a spread for each picture, the decoder draws a picture of a point
(Kingma and Welling 2014, arXiv:1312.6114). It writes demo/vae.png: what the decoder draws at places
of the plane, and where the test digits lie, coloured by their classes.
"""

import argparse
from pathlib import Path
from typing import Any

import drawing
from PIL import Image, ImageDraw
from sklearn.datasets import load_digits  # pyright: ignore[reportMissingTypeStubs]
from tqdm import tqdm

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.distributions import Normal, kl_divergence
from rushlight.nn import functional as F

RAINBOW = [(int(127 + 120 * a), int(127 + 120 * b), int(127 + 120 * c)) for a, b, c in [
    (1, -1, -1), (-1, 1, -1), (-1, -1, 1), (1, 1, -1), (1, -1, 1),
    (-1, 1, 1), (0, 0, 0), (1, 0, -1), (-1, 0, 1), (0, -1, -1)]]  # fmt: skip


class Autoencoder(nn.Module):
    """Pictures (N, 64) to distributions of points (N, 2), and points to logits of pixels."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(64, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 4)
        )
        self.decoder = nn.Sequential(
            nn.Linear(2, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 64)
        )

    def encode(self, x: Tensor) -> Normal:
        mean, spread = self.encoder(x).chunk(2, -1)
        return Normal(mean, F.softplus(spread) + 1e-4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """What is lost of the pictures, and how far their points are from a standard normal."""
        points = self.encode(x)
        drawn = self.decoder(points.rsample())
        lost = F.binary_cross_entropy_with_logits(drawn, x, reduction="none").sum(-1)
        return lost.mean(), kl_divergence(points, Normal(0.0, 1.0)).sum(-1).mean()


def plane(points: Tensor, labels: Tensor, side: int) -> Image.Image:
    """Points as dots in the colours of their classes; from -3 to 3."""
    image = Image.new("RGB", (side, side), (255, 255, 255))
    draw = ImageDraw.Draw(image)
    places = ((points.clamp(-3, 3) + 3) / 6 * side).tolist()
    for (x, y), label in zip(places, labels, strict=True):
        draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=RAINBOW[int(label)])
    return image


@torch.no_grad()
def drawn_places(model: Autoencoder, count: int) -> Image.Image:
    """What is drawn at count x count places of the plane."""
    along = torch.linspace(-2.4, 2.4, count)
    places = torch.cartesian_prod(along, along).flip(1)
    pictures = model.decoder(places).sigmoid().view(-1, 8, 8)
    return drawing.sheet([drawing.picture(p, 3) for p in pictures], count, gap=0)


def main(epochs: int, size: int, out: Path) -> float:
    """Train and draw; the loss on digits that were not trained on, in nats for a picture."""
    torch.manual_seed(0)
    bunch: Any = load_digits()  # pyright: ignore[reportUnknownVariableType]
    pictures = torch.from_numpy(bunch.data).float() / 16
    labels = torch.from_numpy(bunch.target).long()
    order = torch.randperm(len(pictures))
    known, fresh = order[:1500], order[1500:]
    model = Autoencoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    lost = far = torch.zeros(())
    bar: Any = tqdm(range(epochs), unit="epoch")
    for _ in bar:
        for chosen in known[torch.randperm(len(known))].split(size):
            lost, far = model(pictures[chosen])
            optimizer.zero_grad()
            (lost + far).backward()
            optimizer.step()
        bar.set_postfix(lost=f"{lost.item():.2f}", far=f"{far.item():.2f}", refresh=False)
    with torch.no_grad():
        lost, far = model(pictures[fresh])
        points = model.encode(pictures[fresh]).mean
    print(f"fresh digits: {lost.item():.2f} nats lost, {far.item():.2f} from the normal")
    places = drawn_places(model, 15)
    dots = plane(points, labels[fresh], places.width)
    drawing.save(drawing.sheet([places, dots], 2), out)
    return (lost + far).item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("demo/vae.png"))
    arguments = parser.parse_args()
    main(arguments.epochs, arguments.batch, arguments.out)
