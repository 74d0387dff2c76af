"""Foretells how many bicycles are rented in an hour from a table of numbers and kinds.

The table is made here, by rules that a reader knows from life (rush hours of working days, sun,
warmth, rain), with noise; so it is known how good a model can be. Kinds (hour, weekday, weather)
are looked up as vectors, numbers are scaled, a residual network does the rest, and a linear model
is compared with. It writes demo/tabular.png: foretold and true days, and which columns matter, by
how much worse it gets where one is shuffled (Breiman 2001).
"""

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import drawing

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.nn import functional as F

KINDS = {"hour": 24, "weekday": 7, "weather": 3}
NUMBERS = ("temperature", "wind", "day of year", "price of bread")  # the last one tells nothing


@dataclass
class Table:
    """Columns of kinds (N, 3) and of numbers (N, 4), and what is to be foretold (N)."""

    kinds: Tensor
    numbers: Tensor
    rented: Tensor

    def __getitem__(self, rows: Tensor | slice) -> "Table":
        return Table(self.kinds[rows], self.numbers[rows], self.rented[rows])


def table(days: int, noise: float) -> Table:
    """So many days of 24 hours."""
    hour = torch.arange(24).repeat(days)
    day = torch.arange(days).repeat_interleave(24)
    weekday, season = day % 7, 2 * math.pi * day / 365
    weather = torch.multinomial(torch.tensor([0.6, 0.25, 0.15]), days, True).repeat_interleave(24)
    warm = 10 - 12 * season.cos() + 5 * (2 * math.pi * (hour - 9) / 24).sin()
    warm = warm + 3 * torch.randn(days).repeat_interleave(24)
    wind = 10 * torch.rand(days).repeat_interleave(24)
    bread = 2 + 0.1 * torch.randn(len(hour))

    def around(middle: float, width: float) -> Tensor:
        return (-(((hour - middle) / width) ** 2)).exp()

    work = 300 * around(8, 1.2) + 350 * around(17.5, 1.8) + 80 * around(13, 4)
    rest = 260 * around(14, 4)
    rented = torch.where(weekday < 5, work, rest) + 10
    rented = rented * ((warm + 5) / 30).clamp(0.05, 1.2) * torch.tensor([1.0, 0.8, 0.3])[weather]
    rented = rented * (1 - 0.04 * wind)
    rented = (rented + noise * torch.randn(len(hour))).clamp(min=0)
    kinds = torch.stack([hour, weekday, weather], 1)
    numbers = torch.stack([warm, wind, day % 365, bread], 1).float()
    return Table(kinds, (numbers - numbers.mean(0)) / numbers.std(0), rented)


class Foreteller(nn.Module):
    """Kinds and numbers to one number."""

    def __init__(self, width: int = 64, blocks: int = 3) -> None:
        super().__init__()
        self.kinds = nn.ModuleList(nn.Embedding(n, 8) for n in KINDS.values())
        self.before = nn.Linear(8 * len(KINDS) + len(NUMBERS), width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width),
                nn.Linear(width, 2 * width),
                nn.GELU(),
                nn.Linear(2 * width, width),
            )
            for _ in range(blocks)
        )
        self.after = nn.Linear(width, 1)

    def forward(self, kinds: Tensor, numbers: Tensor) -> Tensor:
        looked_up = [look(kinds[:, i]) for i, look in enumerate(self.kinds)]
        h = self.before(torch.cat([*looked_up, numbers], 1))
        for block in self.blocks:
            h = h + block(h)
        return self.after(h)[:, 0]


def linear(known: Table, fresh: Table) -> Tensor:
    """What least squares foretells from all columns, kinds as zeros and ones."""

    def columns(t: Table) -> Tensor:
        hot = [F.one_hot(t.kinds[:, i], n).float() for i, n in enumerate(KINDS.values())]
        return torch.cat([*hot, t.numbers], 1)

    found = torch.linalg.lstsq(columns(known), known.rented[:, None], driver="gelsd").solution
    return (columns(fresh) @ found)[:, 0]


def error(foretold: Tensor, t: Table) -> float:
    """The root of the mean squared error, in bicycles."""
    return (foretold - t.rented).square().mean().sqrt().item()


@torch.no_grad()
def importance(model: Foreteller, t: Table, scale: float) -> dict[str, float]:
    """By how many bicycles the error grows where a column is shuffled."""
    usual = error(model(t.kinds, t.numbers) * scale, t)
    found: dict[str, float] = {}
    for i, name in enumerate([*KINDS, *NUMBERS]):
        kinds, numbers = t.kinds.clone(), t.numbers.clone()
        order = torch.randperm(len(kinds))
        if i < len(KINDS):
            kinds[:, i] = kinds[order, i]
        else:
            numbers[:, i - len(KINDS)] = numbers[order, i - len(KINDS)]
        found[name] = error(model(kinds, numbers) * scale, t) - usual
    return found


def main(days: int, epochs: int, size: int, out: Path) -> tuple[float, float]:
    """Train and foretell; the errors of the network and of the linear model, in bicycles."""
    torch.manual_seed(0)
    noise = 12.0
    every = table(days, noise)
    order = torch.randperm(days)  # whole days are kept apart
    hours = (order[:, None] * 24 + torch.arange(24)).flatten()
    known, fresh = every[hours[: 18 * days]], every[hours[18 * days :]]
    model, scale = Foreteller(), known.rented.std().item()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    rounds = epochs * -(-len(known.rented) // size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=rounds)
    loss = torch.zeros(())
    for epoch in range(1, epochs + 1):
        for chosen in torch.randperm(len(known.rented)).split(size):
            part = known[chosen]
            loss = F.mse_loss(model(part.kinds, part.numbers), part.rented / scale)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        if epoch % max(1, epochs // 5) == 0:
            print(f"epoch {epoch:3d}: error {loss.item() ** 0.5 * scale:.1f} bicycles")
    model.eval()
    with torch.no_grad():
        foretold = model(fresh.kinds, fresh.numbers) * scale
    network, line = error(foretold, fresh), error(linear(known, fresh), fresh)
    print(f"fresh days: network {network:.1f}, linear {line:.1f}, noise alone {noise:.1f}")
    matters = importance(model, fresh, scale)
    for name, value in sorted(matters.items(), key=lambda pair: -pair[1]):
        print(f"  {name:15s} {value:6.1f}")
    shown = min(len(foretold), 96)
    named = {"true": fresh.rented[:shown].tolist(), "foretold": foretold[:shown].tolist()}
    chart = drawing.curves(named, "bicycles in an hour, four fresh days", (720, 260))
    drawing.save(chart, out)
    return network, line


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=730)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--out", type=Path, default=Path("demo/tabular.png"))
    arguments = parser.parse_args()
    main(arguments.days, arguments.epochs, arguments.batch, arguments.out)
