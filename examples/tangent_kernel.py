"""Predicts what a wide network will have learned, without training it, and then trains it.

Near its first weights a wide network is linear in them, so that gradient descent on a squared error
follows a differential equation whose solution is known (Jacot, Gabriel and Hongler 2018,
arXiv:1806.07572): with the tangent kernel K(a, b) = J(a) J(b)', J the Jacobian by the weights, the
outputs on the training points after time t are y + exp(-t K) (f - y). `vmap(jacrev(…))` gives J.
"""

import argparse

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.func import functional_call, grad_and_value, jacrev, vmap

Weights = dict[str, Tensor]


class Wide(nn.Module):
    """Two layers, each divided by the root of what it adds up, with weights of variance 1."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(width, 2))
        self.last = nn.Parameter(torch.randn(1, width))

    def forward(self, x: Tensor) -> Tensor:
        hidden = (x @ self.first.T).erf()
        return (hidden @ self.last.T).squeeze(-1) / self.last.shape[1] ** 0.5


def kernel(net: nn.Module, weights: Weights, a: Tensor, b: Tensor) -> Tensor:
    """K of all pairs of a point of a and one of b."""

    def jacobian(points: Tensor) -> dict[str, Tensor]:
        def one(w: Weights, point: Tensor) -> Tensor:
            return functional_call(net, w, (point,))

        return vmap(jacrev(one), in_dims=(None, 0))(weights, points)

    left, right = jacobian(a), jacobian(b)
    products = [left[name].flatten(1) @ right[name].flatten(1).T for name in weights]
    return torch.stack(products).sum(0)


def wave(angle: Tensor) -> Tensor:
    """The network has no biases, so that it is odd, as this is."""
    return angle.sin() + 0.5 * (3 * angle).cos()


def on_circle(angle: Tensor) -> Tensor:
    return torch.stack([angle.cos(), angle.sin()], 1)


def main(width: int, steps: int, rate: float) -> float:
    """Returns the largest difference between what was predicted and what was trained."""
    net = Wide(width)
    weights = {name: p.detach() for name, p in net.named_parameters()}
    angle = torch.linspace(0, 5.5, 12)
    x, y = on_circle(angle), wave(angle)
    fresh_angle = angle + 0.25
    fresh = on_circle(fresh_angle)

    first, first_fresh = net(x).detach(), net(fresh).detach()
    of_data, of_fresh = kernel(net, weights, x, x), kernel(net, weights, fresh, x)
    # d f / d t = -K (f - y): f - y decays along the eigenvectors, fresh points follow.
    values, vectors = torch.linalg.eigh(of_data)
    decayed = (1 - (-rate * steps * values).exp()) / values
    moved = vectors @ (decayed * (vectors.T @ (y - first)))
    predicted = first_fresh + of_fresh @ moved
    print("smallest and largest eigenvalue:", f"{values[0]:.4f} {values[-1]:.4f}")

    def loss(w: Weights) -> Tensor:
        return (functional_call(net, w, (x,)) - y).square().sum() / 2

    for step in range(steps):
        slopes, value = grad_and_value(loss)(weights)
        weights = {name: w - rate * slopes[name] for name, w in weights.items()}
        if (step + 1) % max(1, steps // 5) == 0:
            print(f"step {step + 1:5}  loss {value.item():.5f}")
    trained = functional_call(net, weights, (fresh,))
    print("  angle  wanted  predicted  trained")
    for a, p, t in zip(fresh_angle, predicted, trained, strict=True):
        print(f"{a:7.2f} {wave(a):7.2f} {p:10.3f} {t:8.3f}")
    return (predicted - trained).abs().max().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--width", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=0.05)
    torch.manual_seed(0)
    main(**vars(parser.parse_args()))
