"""Data sets of images in their official layouts; most download themselves."""

# ruff: noqa: F401  # its modules and what they hold are names of the package

from .arrays import STL10, SVHN, USPS
from .cifar import CIFAR10, CIFAR100
from .fakedata import FakeData
from .folder import DatasetFolder, ImageFolder
from .listed import (
    DTD,
    GTSRB,
    Caltech256,
    Country211,
    EuroSAT,
    Flowers102,
    Food101,
    OxfordIIITPet,
)
from .mnist import EMNIST, KMNIST, MNIST, QMNIST, FashionMNIST
from .scenes import CocoCaptions, CocoDetection, VOCDetection, VOCSegmentation
from .vision import StandardTransform, VisionDataset
