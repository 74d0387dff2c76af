"""Learns to balance a pole on a cart, by trying: 64 carts at once, written in tensors.

An actor says how likely a push to the right is, a critic how long it expects the pole to stand
(advantage actor-critic, Mnih 2016, arXiv:1602.01783). The cart is that of Barto, Sutton and
Anderson 1983: pole and cart obey the equations of motion, twenty milliseconds a step; it ends where
the pole leans over 12 degrees or the cart leaves the track. It writes demo/cartpole.png: how long
poles stood while it learned, and one balanced at the end.
"""

import argparse
import math
from pathlib import Path
from typing import Any

import drawing
from PIL import Image, ImageDraw
from tqdm import tqdm

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.distributions import Bernoulli
from rushlight.nn import functional as F

GRAVITY, CART, POLE, HALF, PUSH, TICK = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02  # SI units
MOST = 500
AHEAD = 0.98  # what a tick counts beside the one before it; values lie between 0 and 1


class Carts:
    """States (N, 4): place and speed of the cart, angle and turning speed of the pole."""

    def __init__(self, count: int) -> None:
        self.state = torch.empty(count, 4)
        self.age = torch.zeros(count)
        self.begin(torch.ones(count, dtype=torch.bool))

    def begin(self, which: Tensor) -> None:
        """Sets some carts to the middle, a little off."""
        fresh = torch.rand_like(self.state) * 0.1 - 0.05
        self.state = torch.where(which[:, None], fresh, self.state)
        self.age = torch.where(which, 0.0, self.age)

    def push(self, right: Tensor) -> Tensor:
        """One tick; which poles fell, or have stood for as long as is asked."""
        x, speed, angle, turning = self.state.unbind(-1)
        force = PUSH * (2 * right - 1)
        sin, cos = angle.sin(), angle.cos()
        total = CART + POLE
        pull = (force + POLE * HALF * turning**2 * sin) / total
        spin = (GRAVITY * sin - cos * pull) / (HALF * (4 / 3 - POLE * cos**2 / total))
        moved = pull - POLE * HALF * spin * cos / total
        self.state = torch.stack(
            [x + TICK * speed, speed + TICK * moved, angle + TICK * turning, turning + TICK * spin],
            -1,
        )
        self.age = self.age + 1
        return (self.state[:, 2].abs() > math.radians(12)) | (self.state[:, 0].abs() > 2.4)


class Mind(nn.Module):
    """States (N, 4) to logits of a push to the right (N), and expected rewards (N)."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))
        self.critic = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, state: Tensor) -> tuple[Tensor, Tensor]:
        state = state * torch.tensor([1.0, 1.0, 5.0, 1.0])
        return self.actor(state)[..., 0], self.critic(state)[..., 0]


def rollout(mind: Mind, carts: Carts, ticks: int, stood: list[float]) -> dict[str, Tensor]:
    """What happened in some ticks: states, pushes and falls, each (ticks, carts)."""
    seen: dict[str, list[Tensor]] = {"state": [], "push": [], "fell": [], "over": []}
    for _ in range(ticks):
        with torch.no_grad():
            push = Bernoulli(logits=mind(carts.state)[0]).sample()
        seen["state"].append(carts.state)
        fell = carts.push(push)
        over = fell | (carts.age >= MOST)
        stood += carts.age[over].tolist()
        for name, value in (("push", push), ("fell", fell.float()), ("over", over.float())):
            seen[name].append(value)
        carts.begin(over)
    return {name: torch.stack(values) for name, values in seen.items()}


def learn(
    mind: Mind, optimizer: torch.optim.Optimizer, seen: dict[str, Tensor], last: Tensor
) -> None:
    """A step of both: pushes that led to more than was expected become likelier."""
    logits, values = mind(seen["state"])
    with torch.no_grad():
        expected = mind(last)[1]
        returns = torch.empty_like(values)
        for t in range(len(values) - 1, -1, -1):  # a fall ends what is to come
            after = torch.where(seen["over"][t] > seen["fell"][t], values[t], expected)
            expected = (1 - AHEAD) + AHEAD * after * (1 - seen["fell"][t])
            returns[t] = expected
    better = returns - values.detach()
    better = (better - better.mean()) / (better.std() + 1e-6)
    chosen = Bernoulli(logits=logits)
    loss = -(chosen.log_prob(seen["push"]) * better).mean()
    loss = loss + F.mse_loss(values, returns) - 0.01 * chosen.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(mind.parameters(), 0.5)
    optimizer.step()


@torch.no_grad()
def balance(mind: Mind, ticks: int) -> tuple[float, Image.Image]:
    """How long a pole stands that is pushed as the actor thinks best, and pictures of it."""
    carts, size, age = Carts(1), (100, 70), 0
    frames: list[Image.Image] = []
    for age in range(1, ticks + 1):
        if age % -(-ticks // 12) == 1:
            x, _, angle, _ = carts.state[0].tolist()
            image = Image.new("RGB", size, (255, 255, 255))
            draw = ImageDraw.Draw(image)
            middle = size[0] / 2 + x / 2.4 * size[0] / 2
            draw.rectangle((middle - 10, 52, middle + 10, 60), fill=drawing.COLOURS[0])
            tip = middle + 44 * math.sin(angle), 52 - 44 * math.cos(angle)
            draw.line((middle, 52, *tip), fill=drawing.COLOURS[1], width=3)
            frames.append(image)
        if bool(carts.push((mind(carts.state)[0] > 0).float())):
            break
    return float(age), drawing.sheet(frames, 6)


def main(rounds: int, count: int, ticks: int, out: Path) -> float:
    """Train and balance; for how many ticks the pole stood at the end."""
    torch.manual_seed(0)
    carts, mind = Carts(count), Mind()
    optimizer = torch.optim.Adam(mind.parameters(), lr=5e-3)
    stood: list[float] = []
    curve: list[float] = []
    bar: Any = tqdm(range(rounds), unit="round")
    for _ in bar:
        seen = rollout(mind, carts, ticks, stood)
        learn(mind, optimizer, seen, carts.state)
        recent = stood[-count:]
        curve.append(sum(recent) / max(1, len(recent)))
        bar.set_postfix(stood=f"{curve[-1]:.0f}", refresh=False)
    age, frames = balance(mind, MOST)
    print(f"the pole stood for {age:.0f} of {MOST} ticks")
    chart = drawing.curves({"ticks": curve}, "how long poles stood")
    drawing.save(drawing.sheet([chart, frames], 1), out)
    return age


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--carts", type=int, default=64)
    parser.add_argument("--ticks", type=int, default=32)
    parser.add_argument("--out", type=Path, default=Path("demo/cartpole.png"))
    arguments = parser.parse_args()
    main(arguments.rounds, arguments.carts, arguments.ticks, arguments.out)
