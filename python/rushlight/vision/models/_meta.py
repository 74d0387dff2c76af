"""Names of the classes of data sets, by torchvision's names."""

from ._api import categories

_IMAGENET_CATEGORIES = categories("imagenet")
_COCO_CATEGORIES = categories("coco")
_COCO_PERSON_CATEGORIES = categories("coco_person")
_COCO_PERSON_KEYPOINT_NAMES = categories("set17")
_VOC_CATEGORIES = categories("voc")
_KINETICS400_CATEGORIES = categories("kinetics400")
