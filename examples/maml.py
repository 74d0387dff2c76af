"""Learns to learn: after a few steps on ten points of a sine it has not seen, a network fits it.

Model-agnostic meta-learning (Finn, Abbeel and Levine 2017, arXiv:1703.03400): the weights with
which every task begins are trained so that the loss *after* its steps is small. The gradient goes
through those steps: `grad` inside `grad`, and `vmap` takes all tasks of a batch together.
"""

import argparse
from collections.abc import Sequence

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.func import functional_call, grad, grad_and_value, vmap

Weights = dict[str, Tensor]


def sines(tasks: int, points: int) -> tuple[Tensor, Tensor]:
    """Points (tasks, points, 1) and the values there of sines of any height and phase."""
    height = 0.1 + 4.9 * torch.rand(tasks, 1, 1)
    phase = torch.pi * torch.rand(tasks, 1, 1)
    x = 10 * torch.rand(tasks, points, 1) - 5
    return x, height * (x - phase).sin()


class Learner:
    def __init__(self, rate: float, steps: int, points: int) -> None:
        self.net = nn.Sequential(
            nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1)
        )
        self.weights = {name: p.detach() for name, p in self.net.named_parameters()}
        self.rate, self.steps, self.points = rate, steps, points

    def loss(self, weights: Weights, x: Tensor, y: Tensor) -> Tensor:
        return (functional_call(self.net, weights, (x,)) - y).square().mean()

    def losses(self, weights: Weights, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        """Of one task: on the points that it does not learn from, before and after each step."""
        seen, rest = (x[: self.points], y[: self.points]), (x[self.points :], y[self.points :])
        found = [self.loss(weights, *rest)]
        for _ in range(self.steps):
            slopes = grad(self.loss)(weights, *seen)
            weights = {name: w - self.rate * slopes[name] for name, w in weights.items()}
            found.append(self.loss(weights, *rest))
        return tuple(found)

    def of_tasks(self, weights: Weights, tasks: int) -> Sequence[Tensor]:
        each = vmap(self.losses, in_dims=(None, 0, 0))(weights, *sines(tasks, 2 * self.points))
        return [loss.mean() for loss in each]


def train(rounds: int, tasks: int, rate: float, steps: int, points: int) -> list[float]:
    """Returns the mean loss on 500 new tasks before, and after each of ten steps."""
    learner = Learner(rate, 1, points)  # it learns for one step, and goes on well with more
    weights = learner.weights
    optimizer = torch.optim.Adam(list(weights.values()), lr=1e-3)

    def after_a_step(w: Weights) -> Tensor:
        return learner.of_tasks(w, tasks)[-1]

    for number in range(rounds):
        slopes, loss = grad_and_value(after_a_step)(weights)
        for name, w in weights.items():
            w.grad = slopes[name]
        optimizer.step()
        if (number + 1) % max(1, rounds // 10) == 0:
            print(f"round {number + 1:5}  loss after a step {loss.item():.3f}")
    learner.steps = steps
    found = [loss.item() for loss in learner.of_tasks(weights, 500)]
    print("new tasks, loss after 0, 1, 2 … steps:", " ".join(f"{loss:.2f}" for loss in found))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--tasks", type=int, default=25, help="tasks of a round")
    parser.add_argument("--rate", type=float, default=0.01, help="of the steps within a task")
    parser.add_argument("--steps", type=int, default=10, help="steps on a new task")
    parser.add_argument("--points", type=int, default=10, help="points that a task learns from")
    torch.manual_seed(0)
    train(**vars(parser.parse_args()))
