"""Optimisers as functions, steps that are differentiated, implicit gradients."""
# packages: torchopt

import functorch
import torch
import torchopt
from shown import show
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(16, 3), torch.randn(16, 1)

model = nn.Linear(3, 1)
call, params = functorch.make_functional(model)
optimizer = torchopt.adam(lr=0.1)
state = optimizer.init(params)
for _ in range(5):
    loss = (call(params, x) - y).square().mean()
    grads = torch.autograd.grad(loss, params)
    updates, state = optimizer.update(grads, state, inplace=False)
    params = torchopt.apply_updates(params, updates, inplace=False)
show("functional", torch.cat([p.reshape(-1) for p in params]))

scale = torch.ones((), requires_grad=True)
inner = nn.Linear(3, 1)
meta = torchopt.MetaSGD(inner, lr=0.1)
for _ in range(3):
    meta.step((scale * (inner(x) - y)).square().mean())
outer = (inner(x) - y).square().mean()
show("meta", torch.autograd.grad(outer, scale)[0])

for kind in (torchopt.Adam, torchopt.RMSProp, torchopt.AdamW):
    layer = nn.Linear(3, 1)
    steps = kind(layer.parameters(), lr=0.05)
    for _ in range(4):
        steps.zero_grad()
        (layer(x) - y).square().mean().backward()
        steps.step()
    show(kind.__name__, layer.weight)


@torchopt.diff.implicit.custom_root(
    functorch.grad(lambda w, k: ((x @ w - y) ** 2).mean() + k * (w**2).sum(), argnums=0),
    argnums=1,
    solve=torchopt.linear_solve.solve_normal_cg(),
)
def ridge(w, k):
    return torch.linalg.solve(x.T @ x / len(x) + k * torch.eye(3), x.T @ y / len(x))


k = torch.tensor(0.5, requires_grad=True)
show("implicit", torch.autograd.grad(ridge(torch.zeros(3, 1), k).sum(), k)[0])
