"""Learns to translate numbers in words from English into German, letter by letter.

"four hundred seventy-two" is "vierhundertzweiundsiebzig": the order changes, and words melt into
one, so that letters have to be looked up where they stand (attention). Pairs are made by rules; a
fifth of the numbers is never trained on. It prints translations and writes demo/translate.png:
which English letters the German ones were made of.
"""

import argparse
from pathlib import Path
from typing import Any

import drawing
from tqdm import tqdm

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.nn import functional as F

ENGLISH = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]  # fmt: skip # noqa: E501
ENGLISH_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
GERMAN = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf", "dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"]  # fmt: skip # noqa: E501
GERMAN_TENS = [
    "zwanzig",
    "dreißig",
    "vierzig",
    "fünfzig",
    "sechzig",
    "siebzig",
    "achtzig",
    "neunzig",
]
LETTERS = "_<>" + "abcdefghijklmnopqrstuvwxyzäöüß -"  # nothing, begin, end
NOTHING, BEGIN, END = 0, 1, 2
MOST = 9999


def english(n: int) -> str:
    if n < 20:
        return ENGLISH[n]
    if n < 100:
        tens, one = divmod(n, 10)
        return ENGLISH_TENS[tens - 2] + (f"-{ENGLISH[one]}" if one else "")
    base, word = (100, "hundred") if n < 1000 else (1000, "thousand")
    count, rest = divmod(n, base)
    return f"{english(count)} {word}" + (f" {english(rest)}" if rest else "")


def german(n: int, before: bool = False) -> str:
    """The words of a number; `before` another word "eins" loses its last letter."""
    if n < 20:
        return "ein" if n == 1 and before else GERMAN[n]
    if n < 100:
        tens, one = divmod(n, 10)
        return (f"{german(one, True)}und" if one else "") + GERMAN_TENS[tens - 2]
    base, word = (100, "hundert") if n < 1000 else (1000, "tausend")
    count, rest = divmod(n, base)
    return f"{german(count, True)}{word}" + (german(rest) if rest else "")


def encode(text: str) -> Tensor:
    return torch.tensor([BEGIN, *(LETTERS.index(letter) for letter in text), END])


def decode(numbers: list[int]) -> str:
    ends = numbers.index(END) if END in numbers else len(numbers)
    return "".join(LETTERS[i] for i in numbers[:ends] if i > END)


class Translator(nn.Module):
    """An encoder reads English letters (N, S), a decoder writes German ones (N, T).

    Recurrent layers know the order; attention (Bahdanau 2015) looks back at what was read.
    """

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), width, padding_idx=NOTHING)
        self.reader = nn.GRU(width, width // 2, batch_first=True, bidirectional=True)
        self.writer = nn.GRU(width, width, batch_first=True)
        self.asks = nn.Linear(width, width, bias=False)
        self.head = nn.Sequential(
            nn.Linear(2 * width, width), nn.Tanh(), nn.Linear(width, len(LETTERS))
        )

    def read(self, words: Tensor) -> tuple[Tensor, Tensor]:
        read, last = self.reader(self.letters(words))
        return read, last.transpose(0, 1).flatten(1)[None]

    def write(
        self, read: Tensor, words: Tensor, state: Tensor, written: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of the next letters, the state behind them, and where attention was."""
        made, state = self.writer(self.letters(written), state)
        scores = self.asks(made) @ read.transpose(1, 2) / read.size(-1) ** 0.5
        looks = scores.masked_fill((words == NOTHING)[:, None], -torch.inf).softmax(-1)
        return self.head(torch.cat([made, looks @ read], -1)), state, looks

    def forward(self, words: Tensor, written: Tensor) -> Tensor:
        read, state = self.read(words)
        return self.write(read, words, state, written)[0]

    @torch.no_grad()
    def translate(self, text: str, most: int = 60) -> tuple[str, Tensor]:
        """The German words, and for each letter how much it looked at each English one."""
        words = encode(text)[None]
        read, state = self.read(words)
        letter = torch.tensor([[BEGIN]])
        letters: list[int] = []
        looks: list[Tensor] = []
        for _ in range(most):
            logits, state, look = self.write(read, words, state, letter)
            letter = logits.argmax(-1)
            letters.append(int(letter))
            looks.append(look[0, 0])
            if letters[-1] == END:
                break
        return decode(letters), torch.stack(looks)


def pairs(numbers: list[int]) -> tuple[Tensor, Tensor]:
    """English and German letters of numbers, filled up with nothing."""
    pad = nn.utils.rnn.pad_sequence
    read = pad([encode(english(n)) for n in numbers], batch_first=True, padding_value=NOTHING)
    written = pad([encode(german(n)) for n in numbers], batch_first=True, padding_value=NOTHING)
    return read, written


def main(steps: int, size: int, tried: int, out: Path) -> float:
    """Train and translate numbers that were not trained on; the share that is right."""
    torch.manual_seed(0)
    order = torch.randperm(MOST + 1).tolist()
    known, fresh = order[: 4 * len(order) // 5], order[4 * len(order) // 5 :]
    read, written = pairs(known)
    model = Translator()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=steps)
    bar: Any = tqdm(range(steps), unit="step")
    for _ in bar:
        chosen = torch.randint(0, len(known), (size,))
        logits = model(read[chosen], written[chosen, :-1])
        targets = written[chosen, 1:].flatten()
        loss = F.cross_entropy(logits.flatten(0, 1), targets, ignore_index=NOTHING)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        bar.set_postfix(loss=f"{loss.item():.4f}", refresh=False)
    model.eval()
    right = sum(model.translate(english(n))[0] == german(n) for n in fresh[:tried])
    for n in fresh[:6]:
        print(f"{n:5d}  {english(n)}  →  {model.translate(english(n))[0]}")
    print(f"{right} of {tried} numbers that it has not seen are right")
    said, looks = model.translate(english(fresh[0]))
    image = drawing.picture(looks / looks.amax(), 10)
    drawing.save(drawing.captioned(image, f"{english(fresh[0])}: {said}"), out)
    return right / tried


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--tried", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("demo/translate.png"))
    arguments = parser.parse_args()
    main(arguments.steps, arguments.batch, arguments.tried, arguments.out)
