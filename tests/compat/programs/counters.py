"""Counts of operations: thop and ptflops."""
# packages: thop ptflops

import thop
import torch
from ptflops import get_model_complexity_info
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
    nn.Flatten(), nn.Linear(128, 10), nn.Softmax(-1),
)  # fmt: skip
macs, params = thop.profile(net, inputs=(torch.randn(1, 3, 32, 32),), verbose=False)
print(thop.clever_format([macs, params], "%.3f"))
for backend in ("pytorch", "aten"):
    print(
        backend,
        get_model_complexity_info(
            net,
            (3, 32, 32),
            backend=backend,
            as_strings=True,
            print_per_layer_stat=False,
            verbose=False,
        ),
    )
print(
    get_model_complexity_info(
        nn.Sequential(nn.LSTM(8, 16)),
        (5, 8),
        as_strings=False,
        print_per_layer_stat=False,
        backend="pytorch",
        verbose=False,
    )
)
