"""Optimisers of others, averages of parameters, the search for a learning rate."""
# packages: schedulefree prodigyopt adabelief_pytorch madgrad torch_ema torch_lr_finder

import contextlib
import io

import schedulefree
import torch
from adabelief_pytorch import AdaBelief
from madgrad import MADGRAD, MirrorMADGRAD
from prodigyopt import Prodigy
from shown import show
from torch_ema import ExponentialMovingAverage
from torch_lr_finder import LRFinder

makers = {
    "schedulefree adamw": lambda p: schedulefree.AdamWScheduleFree(p, lr=0.01, warmup_steps=2),
    "schedulefree sgd": lambda p: schedulefree.SGDScheduleFree(p, lr=0.1),
    "schedulefree radam": lambda p: schedulefree.RAdamScheduleFree(p, lr=0.01, foreach=True),
    "schedulefree reference": lambda p: schedulefree.AdamWScheduleFreeReference(p, lr=0.01),
    "prodigy": lambda p: Prodigy(p, lr=1.0, weight_decay=0.01, slice_p=2),
    "adabelief": lambda p: AdaBelief(p, lr=1e-2, rectify=True, print_change_log=False),
    "adabelief plain": lambda p: AdaBelief(
        p, lr=1e-2, rectify=False, amsgrad=True, print_change_log=False
    ),
    "madgrad": lambda p: MADGRAD(p, lr=1e-2, momentum=0.9, weight_decay=1e-3),
    "mirror madgrad": lambda p: MirrorMADGRAD(p, lr=1e-2),
}


def net_and_data():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    return net, torch.randn(16, 6), torch.randn(16, 1)


for name, make in makers.items():
    net, x, y = net_and_data()
    with contextlib.redirect_stdout(io.StringIO()):
        optimizer = make(net.parameters())
    if hasattr(optimizer, "train"):
        optimizer.train()
    for _ in range(5):
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean()
        loss.backward()
        optimizer.step()
    show(name, loss)
    if hasattr(optimizer, "eval"):
        optimizer.eval()
        show(f"{name} eval", (net(x) - y).square().mean())
    optimizer.load_state_dict(optimizer.state_dict())

net, x, y = net_and_data()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
ema = ExponentialMovingAverage(net.parameters(), decay=0.9)
for _ in range(5):
    optimizer.zero_grad()
    (net(x) - y).square().mean().backward()
    optimizer.step()
    ema.update()
ema.load_state_dict(ema.state_dict())
with ema.average_parameters():
    show("ema", (net(x) - y).square().mean())

net, x, y = net_and_data()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=4)
finder = LRFinder(net, optimizer, torch.nn.MSELoss(), device="cpu")
with contextlib.redirect_stdout(io.StringIO()):
    finder.range_test(loader, end_lr=1, num_iter=12)
for loss in finder.history["loss"]:
    show("loss", float(loss))
finder.reset()
show("after", (net(x) - y).square().mean())
