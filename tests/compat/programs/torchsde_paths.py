"""Stochastic differential equations."""
# packages: torchsde

import torch
import torchsde
from shown import show

torch.manual_seed(0)


class SDE(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.mu, self.sigma = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def f(self, t, y):
        return self.mu(y)

    def g(self, t, y):
        return self.sigma(y).sigmoid()


sde, y0, ts = SDE(), torch.full((4, 3), 0.1), torch.linspace(0, 1, 5)
motion = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(4, 3), entropy=7)
show("path", torchsde.sdeint(sde, y0, ts, bm=motion, method="euler", dt=0.05))
show(
    "srk",
    torchsde.sdeint(
        sde,
        y0,
        ts,
        bm=torchsde.BrownianInterval(
            t0=0.0, t1=1.0, size=(4, 3), entropy=7, levy_area_approximation="space-time"
        ),
        method="srk",
        dt=0.05,
    ),
)
out = torchsde.sdeint(sde, y0, ts, bm=motion, method="euler", dt=0.05)
out.mean().backward()
show("gradient", sde.mu.weight.grad)
