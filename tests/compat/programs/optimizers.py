"""Optimisers of others: lion_pytorch, torch_optimizer."""
# packages: lion_pytorch torch_optimizer

import torch
import torch_optimizer
from lion_pytorch import Lion
from shown import show

makers = {"Lion": Lion}
for name in [
    "AccSGD",
    "AdaBound",
    "AdaMod",
    "AdamP",
    "AggMo",
    "Apollo",
    "DiffGrad",
    "Lamb",
    "LARS",
    "MADGRAD",
    "NovoGrad",
    "PID",
    "QHAdam",
    "QHM",
    "RAdam",
    "Ranger",
    "RangerQH",
    "RangerVA",
    "SGDP",
    "SGDW",
    "SWATS",
    "Yogi",
    "AdaBelief",
    "Adafactor",
    "Adahessian",
    "Shampoo",
]:
    makers[name] = getattr(torch_optimizer, name)
for name, make in makers.items():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    x, y = torch.randn(16, 6), torch.randn(16, 1)
    optimizer = make(net.parameters(), lr=1e-3) if name != "Adafactor" else make(net.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean()
        loss.backward(create_graph=name == "Adahessian")
        optimizer.step()
    show(name, loss)
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
look = torch_optimizer.Lookahead(torch.optim.SGD(net.parameters(), lr=0.1), k=2)
for _ in range(4):
    look.zero_grad()
    loss = (net(x) - y).square().mean()
    loss.backward()
    look.step()
show("Lookahead", loss)
