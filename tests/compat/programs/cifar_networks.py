"""Loss and gradients of networks for CIFAR-10."""
# repositories: kuangliu/pytorch-cifar
# cases: VGG11 ResNet18 PreActResNet18 GoogLeNet densenet_cifar ResNeXt29_2x64d MobileNet MobileNetV2 DPN26 SENet18 ShuffleNetV2 EfficientNetB0 RegNetX_200MF SimpleDLA

import os
import sys

import torch
from shown import show, train

sys.path.insert(0, os.environ["COMPAT_REPOSITORIES"] + "/pytorch-cifar")
import models

name = sys.argv[1]
torch.manual_seed(0)
arguments = {"VGG11": ("VGG", "VGG11"), "ShuffleNetV2": ("ShuffleNetV2", 1)}.get(name, (name,))
network = getattr(models, arguments[0])(*arguments[1:])
images, labels = torch.randn(4, 3, 32, 32), torch.tensor([1, 2, 3, 4])
network.eval()
show("output", network(images))
network.train()
train(network, lambda: torch.nn.functional.cross_entropy(network(images), labels), steps=1)
