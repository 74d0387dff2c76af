"""Ordinary differential equations, with gradients by the adjoint method and events."""
# packages: torchdiffeq

import torch
from shown import show
from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_event

torch.manual_seed(0)


class F(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y**3)


f, y0, t = F(), torch.tensor([[2.0, 0.0]]), torch.linspace(0, 1, 5)
for method in (
    "dopri5",
    "rk4",
    "euler",
    "midpoint",
    "bosh3",
    "adaptive_heun",
    "dopri8",
    "explicit_adams",
    "implicit_adams",
    "fehlberg2",
):
    show(method, odeint(f, y0, t, method=method))
for solve in (odeint, odeint_adjoint):
    f.zero_grad()
    solve(f, y0, t).square().mean().backward()
    show(solve.__name__, f.net[0].weight.grad)
time, state = odeint_event(
    lambda t, y: -torch.ones_like(y),
    torch.tensor([1.0]),
    torch.tensor(0.0),
    event_fn=lambda t, y: y[0],
    atol=1e-6,
    rtol=1e-6,
)
show("event", time)
