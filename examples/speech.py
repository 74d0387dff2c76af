"""Understands eight spoken commands, spoken by a synthesiser that is made here.

A vowel is a buzz whose overtones are strong at two or three frequencies (formants, Peterson and
Barney 1952), "s" and "f" are noise, "p" and "t" a burst after silence. Words are strings of these;
the voice's pitch and size, how fast it speaks, loudness and noise differ each time. A convolutional
network looks at the spectrogram. It writes demo/speech.png: words as the network sees them, and
what it understood.
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
from rushlight.nn import functional as F

RATE, SECONDS = 8000, 0.6
# Formants of vowels in Hz, the middle of noises, and how long a sound lasts, in seconds.
SOUNDS: dict[str, tuple[str, tuple[float, ...], float]] = {
    "a": ("voice", (730, 1090, 2440), 0.13),
    "e": ("voice", (530, 1840, 2480), 0.11),
    "i": ("voice", (270, 2290, 3010), 0.12),
    "o": ("voice", (570, 840, 2410), 0.14),
    "u": ("voice", (300, 870, 2240), 0.12),
    "n": ("voice", (250, 1200, 2200), 0.07),
    "l": ("voice", (380, 1000, 2600), 0.06),
    "s": ("noise", (3400,), 0.11),
    "f": ("noise", (2200,), 0.09),
    "p": ("burst", (900,), 0.05),
    "t": ("burst", (3000,), 0.05),
    "g": ("burst", (1600,), 0.05),
}
WORDS = {"yes": "ies", "no": "nou", "up": "ap", "down": "taun", "left": "left", "go": "gou", "stop": "stop", "on": "on"}  # fmt: skip # noqa: E501


def uniform(low: float, high: float) -> float:
    return low + (high - low) * torch.rand(()).item()


def sound(name: str, pitch: float, size: float, speed: float) -> Tensor:
    """Samples of one sound, faded in and out."""
    kind, formants, seconds = SOUNDS[name]
    count = int(RATE * seconds / speed)
    time = torch.arange(count) / RATE
    if kind == "voice":
        overtones = torch.arange(1, int(RATE / 2 / pitch))[:, None] * pitch
        peaks = [(-(((overtones / size - f) / 120) ** 2) / 2).exp() for f in formants]
        strength = sum(p * w for p, w in zip(peaks, (1.0, 0.6, 0.3), strict=True)) + 0.01
        glide = time * (1 - 0.1 * time / seconds)
        made = (strength * (2 * math.pi * overtones * glide).sin()).sum(0)
    else:
        spectrum = torch.fft.rfft(torch.randn(count))
        place = torch.fft.rfftfreq(count, 1 / RATE)
        made = torch.fft.irfft(spectrum * (-(((place - formants[0]) / 500) ** 2)).exp(), n=count)
        made = made * (6 if kind == "noise" else 9)
        if kind == "burst":  # silence, then the burst dies away
            made = made * torch.where(time < 0.02, 0.0, (-(time - 0.02) / 0.008).exp())
    fade = min(80, count // 3)
    window = torch.ones(count)
    window[:fade], window[-fade:] = torch.linspace(0, 1, fade), torch.linspace(1, 0, fade)
    return made * window


def speak(word: str) -> Tensor:
    """A word (RATE * SECONDS), in another voice each time, with noise around it."""
    pitch, size, speed = uniform(90, 230), uniform(0.85, 1.15), uniform(0.85, 1.25)
    parts = [sound(s, pitch * uniform(0.95, 1.05), size, speed) for s in WORDS[word]]
    said = torch.cat(parts)[: int(RATE * SECONDS)]
    said = said / said.abs().max()
    room = int(RATE * SECONDS) - len(said)
    before = int(uniform(0, room))
    quiet = uniform(0.005, 0.06) * torch.randn(int(RATE * SECONDS))
    return F.pad(said, (before, room - before)) * uniform(0.4, 1.0) + quiet


def spectrogram(waves: Tensor) -> Tensor:
    """Loudness by frequency and time, (N, 1, 65, frames), from 0 to 1."""
    found = torch.stft(waves, 128, 64, window=torch.hann_window(128), return_complex=True).abs()
    return ((found + 1e-3).log10() + 3)[:, None] / 5


class Ear(nn.Module):
    """Spectrograms (N, 1, F, T) to logits of words (N, 8)."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 1
        for out in (width, 2 * width, 2 * width):
            layers += [nn.Conv2d(channels, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
            layers += [nn.MaxPool2d(2)]
            channels = out
        self.maps = nn.Sequential(*layers, nn.AdaptiveAvgPool2d((4, 4)), nn.Flatten())
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(32 * width, len(WORDS)))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.maps(x))


def recordings(each: int) -> tuple[Tensor, Tensor]:
    """Spectrograms of each word so many times, and the numbers of the words."""
    waves = torch.stack([speak(word) for _ in range(each) for word in WORDS])
    return spectrogram(waves), torch.arange(len(WORDS)).repeat(each)


def main(each: int, epochs: int, size: int, out: Path) -> float:
    """Train and listen; the share of fresh recordings that is understood."""
    torch.manual_seed(0)
    sounds, labels = recordings(each)
    fresh, right = recordings(max(4, each // 4))
    model = Ear()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    rounds = epochs * -(-len(sounds) // size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=rounds)
    loss = torch.zeros(())
    bar: Any = tqdm(range(epochs), unit="epoch")
    for _ in bar:
        for chosen in torch.randperm(len(sounds)).split(size):
            loss = F.cross_entropy(model(sounds[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
    model.eval()
    with torch.no_grad():
        said = model(fresh).argmax(1)
    share = (said == right).float().mean().item()
    print(f"{100 * share:.1f} % of {len(fresh)} fresh recordings are understood")
    names = list(WORDS)
    images: list[Image.Image] = []
    for i in range(min(16, len(fresh))):
        x, heard, true = fresh[i], int(said[i]), int(right[i])
        colour = (20, 120, 50) if heard == true else (190, 30, 30)
        images.append(drawing.captioned(drawing.picture(x[0].flip(0), 2), names[heard], colour))
    drawing.save(drawing.sheet(images, 4), out)
    return share


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=120, help="recordings of a word")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--out", type=Path, default=Path("demo/speech.png"))
    arguments = parser.parse_args()
    main(arguments.each, arguments.epochs, arguments.batch, arguments.out)
