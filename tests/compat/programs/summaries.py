"""Summaries of models: torchinfo, torchsummary."""
# packages: torchinfo torchsummary

import torch
import torchinfo
from torch import nn
from torchsummary import summary

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(8 * 15 * 15, 10)

    def forward(self, x):
        return self.head(self.conv(x).flatten(1))


print(
    torchinfo.summary(
        Net(),
        (2, 3, 32, 32),
        verbose=0,
        col_names=(
            "input_size",
            "output_size",
            "num_params",
            "kernel_size",
            "mult_adds",
            "trainable",
        ),
    )
)
print(torchinfo.summary(nn.LSTM(4, 8, 2), input_data=torch.zeros(5, 1, 4), verbose=0, depth=3))
print(torchinfo.summary(nn.TransformerEncoderLayer(16, 2, 32), (3, 2, 16), verbose=0))
summary(Net(), (3, 32, 32), device="cpu")
