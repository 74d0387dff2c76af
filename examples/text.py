"""Learns to write like this project's documentation, letter by letter, and writes a page.

A small transformer that sees only what stands before a letter (a causal mask) is asked for the next
one at every place. It prints samples as it learns and writes demo/text.txt.
"""

import argparse
from pathlib import Path
from typing import Any

from tqdm import tqdm

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.nn import functional as F

DOCS = Path(__file__).resolve().parent.parent / "docs"


class Alphabet:
    """The letters of a text and their numbers."""

    def __init__(self, text: str) -> None:
        self.letters = sorted(set(text))
        self.numbers = {letter: i for i, letter in enumerate(self.letters)}

    def encode(self, text: str) -> Tensor:
        return torch.tensor([self.numbers[letter] for letter in text])

    def decode(self, numbers: Tensor) -> str:
        return "".join(self.letters[int(i)] for i in numbers)


class Writer(nn.Module):
    """Letters (N, T) to logits of the letter that follows each, (N, T, letters)."""

    def __init__(self, letters: int, context: int, width: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.context = context
        self.letters = nn.Embedding(letters, width)
        self.places = nn.Embedding(context, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters)

    def forward(self, x: Tensor) -> Tensor:
        length = x.size(1)
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        h = self.letters(x) + self.places(torch.arange(length))
        return self.head(self.norm(self.layers(h, mask=mask, is_causal=True)))


def batch(text: Tensor, size: int, context: int) -> tuple[Tensor, Tensor]:
    """Pieces of the text, and the same one letter later."""
    begins = torch.randint(0, len(text) - context - 1, (size, 1))
    places = begins + torch.arange(context)
    return text[places], text[places + 1]


@torch.no_grad()
def write(model: Writer, alphabet: Alphabet, start: str, length: int, heat: float = 0.7) -> str:
    """Goes on from `start`: each letter is drawn by its probability, sharpened by `heat`."""
    model.eval()
    text = alphabet.encode(start)
    for _ in range(length):
        logits = model(text[None, -model.context :])[0, -1] / heat
        text = torch.cat([text, torch.multinomial(logits.softmax(0), 1)])
    model.train()
    return alphabet.decode(text)


def main(steps: int, size: int, context: int, length: int, out: Path) -> float:
    """Train and write; the mean loss of the last steps, in nats for a letter."""
    torch.manual_seed(0)
    pages = [page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md"))]
    corpus = "\n".join(pages).encode("ascii", "ignore").decode()
    alphabet = Alphabet(corpus)
    text = alphabet.encode(corpus)
    model = Writer(len(alphabet.letters), context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    losses: list[float] = []
    bar: Any = tqdm(range(steps), unit="step")
    for _ in bar:
        inputs, targets = batch(text, size, context)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
    page = write(model, alphabet, "# How to ", length)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page)
    print(f"{page}\n\nthe text is in {out}")
    return sum(losses[-10:]) / len(losses[-10:])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--length", type=int, default=600)
    parser.add_argument("--out", type=Path, default=Path("demo/text.txt"))
    arguments = parser.parse_args()
    main(arguments.steps, arguments.batch, arguments.context, arguments.length, arguments.out)
