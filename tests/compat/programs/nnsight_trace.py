"""Interventions with nnsight."""
# packages: nnsight

from collections import OrderedDict

import nnsight
import torch
from shown import show
from torch import nn

torch.manual_seed(0)
network = nn.Sequential(OrderedDict([("first", nn.Linear(4, 8)), ("second", nn.Linear(8, 2))]))
model = nnsight.NNsight(network)
x = torch.randn(3, 4)
with model.trace(x):
    hidden = model.first.output.save()
    model.first.output[:, 0] = 0
    output = model.output.save()
show("hidden", hidden)
show("output", output)
with model.trace(x):
    gradient = model.first.output
    out = model.second.output.sum().save()
show("sum", out)
