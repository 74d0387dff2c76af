"""Inner loops that are differentiated."""
# packages: higher

import higher
import torch
from shown import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
x, y = torch.randn(16, 4), torch.randn(16, 1)
for make in (torch.optim.SGD, torch.optim.Adam):
    inner = make(model.parameters(), lr=0.05)
    model.zero_grad()
    with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (fast, steps):
        for _ in range(3):
            steps.step((fast(x) - y).square().mean())
        outer = (fast(x) - y).abs().mean()
        outer.backward()
    show(make.__name__, outer)
    show("gradient", model[0].weight.grad)
