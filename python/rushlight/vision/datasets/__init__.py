"""Data sets of images and videos in their official layouts; most can be downloaded."""

# its modules and what they hold are names of the package

from ._wrapped import wrap_dataset_for_transforms_v2 as wrap_dataset_for_transforms_v2
from .arrays import STL10 as STL10, SVHN as SVHN, USPS as USPS
from .captions import SBU as SBU, Flickr8k as Flickr8k, Flickr30k as Flickr30k
from .cifar import CIFAR10 as CIFAR10, CIFAR100 as CIFAR100
from .classes import (
    FER2013 as FER2013,
    PCAM as PCAM,
    SEMEION as SEMEION,
    SUN397 as SUN397,
    CLEVRClassification as CLEVRClassification,
    FGVCAircraft as FGVCAircraft,
    Imagenette as Imagenette,
    Omniglot as Omniglot,
    RenderedSST2 as RenderedSST2,
    StanfordCars as StanfordCars,
)
from .faces import (
    CelebA as CelebA,
    LFWPairs as LFWPairs,
    LFWPeople as LFWPeople,
    WIDERFace as WIDERFace,
)
from .fakedata import FakeData as FakeData
from .flow import (
    HD1K as HD1K,
    FlyingChairs as FlyingChairs,
    FlyingThings3D as FlyingThings3D,
    KittiFlow as KittiFlow,
    Sintel as Sintel,
)
from .folder import DatasetFolder as DatasetFolder, ImageFolder as ImageFolder
from .listed import (
    DTD as DTD,
    GTSRB as GTSRB,
    Caltech256 as Caltech256,
    Country211 as Country211,
    EuroSAT as EuroSAT,
    Flowers102 as Flowers102,
    Food101 as Food101,
    OxfordIIITPet as OxfordIIITPet,
)
from .mnist import (
    EMNIST as EMNIST,
    KMNIST as KMNIST,
    MNIST as MNIST,
    QMNIST as QMNIST,
    FashionMNIST as FashionMNIST,
)
from .patches import (
    LSUN as LSUN,
    LSUNClass as LSUNClass,
    MovingMNIST as MovingMNIST,
    PhotoTour as PhotoTour,
)
from .scenes import (
    CocoCaptions as CocoCaptions,
    CocoDetection as CocoDetection,
    VOCDetection as VOCDetection,
    VOCSegmentation as VOCSegmentation,
)
from .stereo import (
    CarlaStereo as CarlaStereo,
    CREStereo as CREStereo,
    ETH3DStereo as ETH3DStereo,
    FallingThingsStereo as FallingThingsStereo,
    InStereo2k as InStereo2k,
    Kitti2012Stereo as Kitti2012Stereo,
    Kitti2015Stereo as Kitti2015Stereo,
    Middlebury2014Stereo as Middlebury2014Stereo,
    SceneFlowStereo as SceneFlowStereo,
    SintelStereo as SintelStereo,
)
from .streets import Cityscapes as Cityscapes, Kitti as Kitti, SBDataset as SBDataset
from .trees import (
    Caltech101 as Caltech101,
    ImageNet as ImageNet,
    INaturalist as INaturalist,
    Places365 as Places365,
)
from .videos import HMDB51 as HMDB51, UCF101 as UCF101, Kinetics as Kinetics
from .vision import StandardTransform as StandardTransform, VisionDataset as VisionDataset
