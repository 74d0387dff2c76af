"""Paints one picture in the manner of another, with a network whose weights nobody trained.

Style is what the maps of a network have in common, wherever it is (Gatys 2015): products of
channels, summed over places. For textures random weights do nearly as well as trained ones
(Ustyuzhaninov 2016), so nothing is downloaded. It writes demo/style.png: content, style, result.
"""

import argparse
from pathlib import Path
from typing import Any

from PIL import Image
from sklearn.datasets import (  # pyright: ignore[reportMissingTypeStubs]
    load_sample_image,  # pyright: ignore[reportUnknownVariableType]
)
from tqdm import tqdm

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.vision.transforms.functional import pil_to_tensor
from rushlight.vision.utils import make_grid, save_image


def load(source: str, size: int) -> Tensor:
    """A square (1, 3, size, size) of a file, or of scikit-learn's "china.jpg" or "flower.jpg"."""
    if source in ("china.jpg", "flower.jpg"):
        read: Any = load_sample_image  # pyright: ignore[reportUnknownVariableType]
        image = Image.fromarray(read(source))
    else:
        image = Image.open(source)
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    square = image.convert("RGB").resize((size, size), box=(left, top, left + side, top + side))
    return pil_to_tensor(square).float()[None] / 255


class Maps(nn.Module):
    """Maps of convolutions of several widths side by side, at several sizes, of random weights."""

    def __init__(self, channels: int, sizes: int) -> None:
        super().__init__()
        self.sizes, self.halve = sizes, nn.AvgPool2d(2)
        self.banks = nn.ModuleList(
            nn.Conv2d(3, channels, side, padding=side // 2, padding_mode="reflect")
            for side in (3, 7, 11)
        )
        for bank in self.banks:
            assert isinstance(bank, nn.Conv2d) and bank.bias is not None
            weight = torch.randn_like(bank.weight)
            weight -= 0.8 * weight.mean((2, 3), keepdim=True)  # edges rather than colours
            bank.weight.data = weight / weight.square().sum((1, 2, 3), keepdim=True).sqrt()
            nn.init.uniform_(bank.bias, -0.5, 0.5)
        self.requires_grad_(False)

    def forward(self, x: Tensor) -> list[Tensor]:
        found: list[Tensor] = []
        x = (x - 0.5) * 4
        for i in range(self.sizes):
            x = self.halve(x) if i else x
            found += [bank(x).relu() for bank in self.banks]
        return found


def products(maps: Tensor) -> Tensor:
    """Means over all places of the products of channels (C, C)."""
    rows = maps.flatten(2)[0]
    return rows @ rows.T / rows.shape[1]


def paint(content: Tensor, style: Tensor, steps: int, weight: float, channels: int) -> Tensor:
    """The content's coarse forms with the style's products, and little noise."""
    network = Maps(channels, 3)
    wanted = [products(m) for m in network(style)]
    pool, square = nn.AvgPool2d(9, 1, padding=4, count_include_pad=False), nn.MSELoss()
    coarse = pool(content)
    # Pixels are sigmoids, so that they stay between 0 and 1.
    pixels = content.clamp(0.02, 0.98).logit().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [pixels], max_iter=4, history_size=10, line_search_fn="strong_wolfe"
    )
    told: dict[str, str] = {}

    def loss() -> Tensor:
        image = pixels.sigmoid()
        parts = [
            square(products(m), own) / own.square().mean()
            for m, own in zip(network(image), wanted, strict=True)
        ]
        like, form = torch.stack(parts).mean(), square(pool(image), coarse)
        rough = square(image[..., 1:], image[..., :-1]) + square(
            image[..., 1:, :], image[..., :-1, :]
        )
        total = like + weight * (form + rough)
        optimizer.zero_grad()
        total.backward()
        told.update(style=f"{like.item():.4f}", content=f"{form.item():.4f}")
        return total

    bar: Any
    with tqdm(range(steps), unit="step") as bar:
        for _ in bar:
            optimizer.step(loss)
            bar.set_postfix(told, refresh=False)
    return pixels.detach().sigmoid()


def main(
    content: str, style: str, size: int, steps: int, weight: float, channels: int, out: Path
) -> Tensor:
    """Paints and writes the three pictures beside each other."""
    torch.manual_seed(0)
    first, second = load(content, size), load(style, size)
    result = paint(first, second, steps, weight, channels)
    out.parent.mkdir(parents=True, exist_ok=True)
    save_image(make_grid(torch.cat([first, second, result]), padding=4, pad_value=1.0), out)
    print(f"see {out}")
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--content", default="flower.jpg", help="a file, china.jpg or flower.jpg")
    parser.add_argument("--style", default="china.jpg")
    parser.add_argument("--size", type=int, default=192)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--weight", type=float, default=8.0, help="of the content")
    parser.add_argument("--channels", type=int, default=48)
    parser.add_argument("--out", type=Path, default=Path("demo/style.png"))
    main(**vars(parser.parse_args()))
