"""Trains a detector on drawn scenes in two minutes: circles, squares and triangles on noise.

The network is FCOS of one map, small enough for a processor: each place of the map tells its class
and how far the sides of its box are. It writes demo/detector.png: fresh scenes with what is found,
green where a true thing of that class is there.
"""

import argparse
import random
import time
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw
from tqdm import tqdm

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.vision import ops
from rushlight.vision.models.detection import FCOS
from rushlight.vision.models.detection.anchor_utils import AnchorGenerator
from rushlight.vision.models.detection.fcos import FCOSHead
from rushlight.vision.transforms.functional import pil_to_tensor
from rushlight.vision.utils import draw_bounding_boxes, make_grid, save_image

NAMES = ["nothing", "circle", "square", "triangle"]
SIZE = 96
Scene = tuple[Tensor, dict[str, Tensor]]


def draw_scene(chance: random.Random) -> Scene:
    """One to four things of random sizes, places and colours, none hidden by another."""
    noise = Image.effect_noise((SIZE, SIZE), chance.uniform(10, 60))
    image = Image.merge("RGB", [noise.point([chance.randrange(60) for _ in range(256)])] * 3)
    draw = ImageDraw.Draw(image)
    boxes: list[tuple[int, int, int, int]] = []
    labels: list[int] = []
    for _ in range(chance.randint(1, 4)):
        side = chance.randint(14, 36)
        x, y = chance.randint(0, SIZE - side - 1), chance.randint(0, SIZE - side - 1)
        box = x, y, x + side, y + side
        if any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in boxes):
            continue
        colour = tuple(chance.randint(110, 255) for _ in range(3))
        label = chance.randint(1, 3)
        if label == 1:
            draw.ellipse(box, fill=colour)
        elif label == 2:
            draw.rectangle(box, fill=colour)
        else:
            draw.polygon([(x, y + side), (x + side, y + side), (x + side / 2, y)], fill=colour)
        boxes.append(box)
        labels.append(label)
    target = {
        "boxes": torch.tensor(boxes, dtype=torch.float32),
        "labels": torch.tensor(labels, dtype=torch.int64),
    }
    return pil_to_tensor(image).float() / 255, target


def build(channels: int) -> FCOS:
    """A map of 12 x 12 places, and a tower of two convolutions on it."""
    layers: list[nn.Module] = []
    before = 3
    for width in (channels // 2, channels, channels):
        layers += [
            nn.Conv2d(before, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        before = width
    layers += [nn.Conv2d(before, channels, 3, padding=1), nn.ReLU()]
    backbone: Any = nn.Sequential(*layers)
    backbone.out_channels = channels
    head = FCOSHead(channels, 1, len(NAMES), num_convs=2)
    # Distances begin at a place's size: those at 0 would get no gradient.
    nn.init.ones_(head.regression_head.bbox_reg.bias)
    return FCOS(
        backbone,
        len(NAMES),
        min_size=SIZE,
        max_size=SIZE,
        anchor_generator=AnchorGenerator(((8,),), ((1.0,),)),
        head=head,
        score_thresh=0.3,
    )


def train(model: FCOS, chance: random.Random, seconds: float, batch: int) -> int:
    """Trains on new scenes until the time is over; how many scenes it has seen."""
    optimizer: Any = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    model.train()
    start, seen, mean = time.monotonic(), 0, 0.0
    bar: Any
    with tqdm(
        total=round(seconds), unit="s", bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt} s{postfix}"
    ) as bar:
        while (spent := time.monotonic() - start) < seconds:
            for group in optimizer.param_groups:  # falls to nothing with the time that is left
                group["lr"] = 2e-3 * min(1.0, 1.5 * (1 - spent / seconds))
            scenes = [draw_scene(chance) for _ in range(batch)]
            losses = model([image for image, _ in scenes], [target for _, target in scenes])
            loss = torch.stack(list(losses.values())).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += batch
            mean = loss.item() if seen == batch else 0.95 * mean + 0.05 * loss.item()
            bar.n = round(spent)
            bar.set_postfix(scenes=str(seen), loss=f"{mean:.3f}", refresh=False)
            bar.update(0)
    return seen


def hits(found: dict[str, Tensor], target: dict[str, Tensor]) -> list[bool]:
    """Of each thing found, best first, whether a true one is there that no better one took."""
    overlap = ops.box_iou(found["boxes"], target["boxes"])
    taken: set[int] = set()
    right: list[bool] = []
    for i, label in enumerate(found["labels"].tolist()):
        fitting = [
            j
            for j, own in enumerate(target["labels"].tolist())
            if own == label and j not in taken and overlap[i, j].item() > 0.5
        ]
        taken |= set(fitting[:1])
        right.append(bool(fitting))
    return right


def evaluate(model: FCOS, scenes: list[Scene]) -> tuple[float, list[dict[str, Tensor]]]:
    """The mean precision over all recalls, of things that overlap true ones by half, and what is
    found.
    """
    model.eval()
    results: list[dict[str, Tensor]] = []
    scored: list[tuple[float, bool]] = []
    with torch.no_grad():
        for image, target in scenes:
            found: dict[str, Tensor] = model([image])[0]
            results.append(found)
            scored += zip(found["scores"].tolist(), hits(found, target), strict=True)
    true = sum(len(target["labels"]) for _, target in scenes)
    scored.sort(key=lambda pair: -pair[0])
    right, area, best = 0, 0.0, 0.0
    precisions: list[float] = []
    for i, (_, hit) in enumerate(scored, 1):
        right += hit
        if hit:
            precisions.append(right / i)
    for precision in reversed(precisions):
        best = max(best, precision)
        area += best
    return area / max(true, 1), results


def picture(path: Path, scenes: list[Scene], results: list[dict[str, Tensor]]) -> None:
    """Scenes with the boxes that are found."""
    tiles: list[Tensor] = []
    enlarge = nn.Upsample(scale_factor=3.0)
    for (image, target), found in zip(scenes, results, strict=True):
        large = enlarge(image[None])[0]
        labels: list[str | None] = [
            f"{NAMES[label]} {score:.2f}"
            for label, score in zip(found["labels"].tolist(), found["scores"].tolist(), strict=True)
        ]
        colours = ["lime" if hit else "red" for hit in hits(found, target)]
        pixels = (large * 255).to(torch.uint8)
        if labels:
            pixels = draw_bounding_boxes(pixels, found["boxes"] * 3, labels, colours, width=2)
        tiles.append(pixels.float() / 255)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_image(make_grid(tiles, nrow=4, padding=4, pad_value=1.0), path)


def main(seconds: float, channels: int, batch: int, out: Path) -> float:
    """Trains, tells the precision on fresh scenes, and draws some of them."""
    chance = random.Random(0)
    torch.manual_seed(0)
    model = build(channels)
    seen = train(model, chance, seconds, batch)
    fresh = random.Random(1)
    scenes = [draw_scene(fresh) for _ in range(100)]
    precision, results = evaluate(model, scenes)
    picture(out, scenes[:12], results[:12])
    print(f"after {seen} scenes: average precision {precision:.1%} on 100 fresh ones; see {out}")
    return precision


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120, help="how long it trains")
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("demo/detector.png"))
    main(**vars(parser.parse_args()))
