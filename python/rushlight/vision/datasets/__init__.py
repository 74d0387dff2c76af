"""Data sets of images and videos in their official layouts; most can be downloaded."""

# ruff: noqa: F401  # its modules and what they hold are names of the package

from ._wrapped import wrap_dataset_for_transforms_v2
from .arrays import STL10, SVHN, USPS
from .captions import SBU, Flickr8k, Flickr30k
from .cifar import CIFAR10, CIFAR100
from .classes import (
    FER2013,
    PCAM,
    SEMEION,
    SUN397,
    CLEVRClassification,
    FGVCAircraft,
    Imagenette,
    Omniglot,
    RenderedSST2,
    StanfordCars,
)
from .faces import CelebA, LFWPairs, LFWPeople, WIDERFace
from .fakedata import FakeData
from .flow import HD1K, FlyingChairs, FlyingThings3D, KittiFlow, Sintel
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
from .patches import LSUN, LSUNClass, MovingMNIST, PhotoTour
from .scenes import CocoCaptions, CocoDetection, VOCDetection, VOCSegmentation
from .stereo import (
    CarlaStereo,
    CREStereo,
    ETH3DStereo,
    FallingThingsStereo,
    InStereo2k,
    Kitti2012Stereo,
    Kitti2015Stereo,
    Middlebury2014Stereo,
    SceneFlowStereo,
    SintelStereo,
)
from .streets import Cityscapes, Kitti, SBDataset
from .trees import Caltech101, ImageNet, INaturalist, Places365
from .videos import HMDB51, UCF101, Kinetics
from .vision import StandardTransform, VisionDataset
