"""Parameters and operations by fvcore."""
# packages: fvcore

import torch
from fvcore.nn import (
    FlopCountAnalysis,
    giou_loss,
    parameter_count,
    parameter_count_table,
    sigmoid_focal_loss,
    smooth_l1_loss,
)
from shown import show
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
print(dict(parameter_count(net)))
print(parameter_count_table(net))
x = torch.randn(4, 6)
show("focal", sigmoid_focal_loss(x, (x > 0).float(), reduction="mean"))
show("smooth", smooth_l1_loss(x, torch.zeros_like(x), 0.5, "mean"))
boxes = torch.tensor([[0.0, 0, 2, 2], [1, 1, 3, 4]])
show("giou", giou_loss(boxes, boxes + 0.5))
print(FlopCountAnalysis(net, torch.randn(1, 3, 8, 8)).total())
