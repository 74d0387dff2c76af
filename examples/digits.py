"""Trains a small convolutional network on scikit-learn's 1,797 handwritten digits.

`./dev demo` runs this. It writes into demo/ the trained network (digits.pt), the same as a program
that C++ runs without Python (digits.pt2), and a picture of the loss and of test digits with the
network's answers (digits.png).
"""

import argparse
import math
import time
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont
from sklearn.datasets import load_digits  # pyright: ignore[reportMissingTypeStubs]
from tqdm import tqdm

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.utils.data import DataLoader, Subset, TensorDataset, random_split


class DigitNet(nn.Module):
    """Two convolutions and two linear layers: 8x8 grey images in, ten logits out."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(64 * 4 * 4, 128),
            nn.ReLU(),
            nn.Linear(128, 10),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x))


def digits() -> list[Subset]:
    """The images, (1797, 1, 8, 8) in [0, 1], with their labels; a fixed fifth is held out."""
    bunch: Any = load_digits()  # pyright: ignore[reportUnknownVariableType]
    images = torch.from_numpy(bunch.images).to(torch.float32).unsqueeze(1) / 16
    labels = torch.from_numpy(bunch.target).to(torch.int64)
    split = torch.Generator().manual_seed(0)
    return random_split(TensorDataset(images, labels), [0.8, 0.2], generator=split)


def train(
    model: DigitNet, loader: DataLoader, epochs: int
) -> tuple[list[float], torch.optim.Optimizer]:
    """Train with AdamW and a falling learning rate; the loss of every step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1e-2, epochs=epochs, steps_per_epoch=len(loader)
    )
    losses: list[float] = []
    model.train()
    bar: Any
    with tqdm(total=epochs * len(loader), unit="step") as bar:
        for epoch in range(epochs):
            bar.set_description(f"epoch {epoch + 1}/{epochs}")
            for images, labels in loader:
                loss = F.cross_entropy(model(images), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
                bar.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
                bar.update()
    return losses, optimizer


def predict(model: DigitNet, images: Tensor) -> tuple[Tensor, Tensor]:
    """The class of each image and how sure the network is of it."""
    model.eval()
    with torch.no_grad():
        certainty, classes = model(images).softmax(dim=1).max(dim=1)
    return classes, certainty


def save_and_reload(
    path: Path,
    model: DigitNet,
    optimizer: torch.optim.Optimizer,
    accuracy: float,
    losses: list[float],
    images: Tensor,
) -> DigitNet:
    """Write a checkpoint, read it into a fresh network, and check that it answers the same."""
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "accuracy": accuracy,
        "losses": losses,
    }
    torch.save(state, path)
    restored = DigitNet()
    restored.load_state_dict(torch.load(path)["model"])
    restored.eval()
    with torch.no_grad():
        if not torch.equal(model(images), restored(images)):
            raise RuntimeError(f"the network read from {path} differs from the one written")
    return restored


def export_program(path: Path, model: DigitNet, images: Tensor) -> Path:
    """Write the network as a program for any number of images; see examples/cpp/server.cpp."""
    rows = torch.export.Dim("rows")
    program = torch.export.export(model, (images[:8],), dynamic_shapes=({0: rows},))
    torch.export.save(program, path)
    return path


# ---- the picture ----

INK, PAPER, GRID, RIGHT, WRONG = "#1b2733", "#ffffff", "#dfe5ea", "#1a7f4b", "#c8322b"
Font = ImageFont.ImageFont | ImageFont.FreeTypeFont
SCALE = 3  # drawn this much larger and made smaller at the end, which smooths lines


def smooth(values: list[float], weight: float = 0.9) -> list[float]:
    """A running mean, without its start's pull towards zero."""
    result: list[float] = []
    mean, total = 0.0, 0.0
    for value in values:
        mean = weight * mean + (1 - weight) * value
        total = weight * total + (1 - weight)
        result.append(mean / total)
    return result


def draw_curve(draw: ImageDraw.ImageDraw, box: list[int], losses: list[float], font: Font) -> None:
    """The loss of every step and its running mean, on a logarithmic scale."""
    left, top, right, bottom = box
    low, high = 1e-4, 10.0
    decades = 5

    def place(step: int, loss: float) -> tuple[float, float]:
        # One step of the scale is a factor of ten.
        height = (bottom - top) / decades
        exponent = math.log10(min(max(loss, low), high))
        return (
            left + (right - left) * step / max(1, len(losses) - 1),
            top + height * (1 - exponent),
        )

    for exponent in range(-4, 2):
        _, y = place(0, 10.0**exponent)
        draw.line([(left, y), (right, y)], fill=GRID, width=SCALE)
        label = f"{10.0**exponent:g}"
        draw.text((left - 8 * SCALE, y), label, fill=INK, font=font, anchor="rm")
    points = [place(i, loss) for i, loss in enumerate(losses)]
    draw.line(points, fill="#b9cbe0", width=SCALE)
    mean = [place(i, loss) for i, loss in enumerate(smooth(losses))]
    draw.line(mean, fill="#1f5fa8", width=3 * SCALE, joint="curve")
    draw.text((left, bottom + 8 * SCALE), "step 1", fill=INK, font=font, anchor="la")
    draw.text((right, bottom + 8 * SCALE), f"{len(losses)}", fill=INK, font=font, anchor="ra")


def draw_digit(
    canvas: Image.Image,
    draw: ImageDraw.ImageDraw,
    place: tuple[int, int],
    size: int,
    image: Tensor,
    label: int,
    answer: int,
    sure: float,
    font: Font,
) -> None:
    """One digit with the network's answer: green where it is right, red where it is wrong."""
    x, y = place
    grey = ((1 - image) * 255).to(torch.uint8)
    tile = Image.frombytes("L", (8, 8), bytes(grey.flatten().tolist()))
    canvas.paste(tile.resize((size, size), Image.Resampling.BICUBIC), (x, y))
    right = label == answer
    colour = RIGHT if right else WRONG
    draw.rectangle([x, y, x + size, y + size], outline=colour, width=2 * SCALE)
    text = f"{answer}  {100 * sure:.0f} %" if right else f"{answer}, not {label}"
    draw.text((x + size / 2, y + size + 4 * SCALE), text, fill=colour, font=font, anchor="ma")


def picture(
    path: Path,
    losses: list[float],
    images: Tensor,
    labels: Tensor,
    classes: Tensor,
    certainty: Tensor,
    accuracy: float,
) -> None:
    """The loss curve above a grid of test digits; what the network got wrong comes first."""
    columns, rows, tile, gap = 10, 4, 64, 26
    width, curve = 60 + columns * (tile + 16) + 20, 300
    height = curve + 70 + rows * (tile + gap) + 20
    canvas = Image.new("RGB", (width * SCALE, height * SCALE), PAPER)
    draw = ImageDraw.Draw(canvas)
    title = ImageFont.load_default(18 * SCALE)
    small = ImageFont.load_default(12 * SCALE)
    draw.text((60 * SCALE, 14 * SCALE), "Training loss", fill=INK, font=title)
    box = [v * SCALE for v in (60, 48, width - 28, curve - 28)]
    draw_curve(draw, box, losses, small)
    heading = f"Held-out digits: {100 * accuracy:.1f} % right"
    draw.text((60 * SCALE, (curve + 16) * SCALE), heading, fill=INK, font=title)
    wrong_first = sorted(range(len(labels)), key=lambda i: bool(classes[i] == labels[i]))
    for slot, i in enumerate(wrong_first[: columns * rows]):
        x = 60 + slot % columns * (tile + 16)
        y = curve + 52 + slot // columns * (tile + gap)
        draw_digit(
            canvas,
            draw,
            (x * SCALE, y * SCALE),
            tile * SCALE,
            images[i, 0],
            int(labels[i]),
            int(classes[i]),
            float(certainty[i]),
            small,
        )
    canvas.resize((width, height), Image.Resampling.LANCZOS).save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    start = time.perf_counter()
    torch.manual_seed(options.seed)
    training, held_out = digits()
    model = DigitNet()
    loader = DataLoader(training, batch_size=64, shuffle=True)
    losses, optimizer = train(model, loader, options.epochs)

    images, labels = next(iter(DataLoader(held_out, batch_size=len(held_out))))
    classes, _ = predict(model, images)
    accuracy = (classes == labels).to(torch.float32).mean().item()
    checkpoint = options.out / "digits.pt"
    restored = save_and_reload(checkpoint, model, optimizer, accuracy, losses, images)
    program = export_program(options.out / "digits.pt2", restored, images)
    classes, certainty = predict(restored, images)
    drawing = options.out / "digits.png"
    picture(drawing, losses, images, labels, classes, certainty, accuracy)

    seconds = time.perf_counter() - start
    print(f"Accuracy on {len(held_out)} held-out digits: {100 * accuracy:.1f} % ({seconds:.0f} s)")
    print(f"Network: {checkpoint}")
    print(f"Program for C++: {program}")
    print(f"Picture: {drawing}")


if __name__ == "__main__":
    main()
