"""Modules of torchvision that are none here: what they hold stands in another one.

Under the alias they can be imported like torchvision's. NAME=MODULE: it stands in a module of the
package, or, as a point, in the package itself.
"""

NESTED = {
    "rushlight.vision": "extension=. version=.",
    "rushlight.vision.datasets": "_optical_flow=flow _stereo_matching=stereo caltech=. "
    "celeba=faces cityscapes=streets clevr=classes coco=scenes country211=listed dtd=listed "
    "eurosat=listed fer2013=classes fgvc_aircraft=classes flickr=captions flowers102=listed "
    "food101=listed gtsrb=listed hmdb51=videos imagenet=trees imagenette=classes inaturalist=trees "
    "kinetics=videos kitti=streets lfw=faces lsun=patches moving_mnist=patches omniglot=classes "
    "oxford_iiit_pet=listed pcam=classes phototour=patches places365=trees rendered_sst2=classes "
    "sbd=streets sbu=captions semeion=classes stanford_cars=classes stl10=arrays sun397=classes "
    "svhn=arrays ucf101=videos usps=arrays voc=scenes widerface=faces",
    "rushlight.vision.datasets.samplers": "clip_sampler=.",
    "rushlight.vision.ops": "ciou_loss=losses diou_loss=losses drop_block=dropping "
    "focal_loss=losses giou_loss=losses ps_roi_align=rois ps_roi_pool=rois roi_align=rois "
    "roi_pool=rois stochastic_depth=dropping",
    "rushlight.vision.transforms.v2": "_auto_augment=. _container=_containers _temporal=. "
    "_type_conversion=.",
    "rushlight.vision.transforms.v2.functional": "_augment=. _temporal=. _type_conversion=. "
    "_utils=_registry",
    "rushlight.vision.tv_tensors": "_bounding_boxes=_places _image=_images _keypoints=_places "
    "_mask=_images _torch_function_helpers=_base _tv_tensor=_base _video=_images",
}


def nested(name: str) -> dict[str, str]:
    """Of the modules that a package stands for, names and the modules in which they stand."""
    pairs = (word.partition("=") for word in NESTED.get(name, "").split())
    return {child: name if place == "." else f"{name}.{place}" for child, _, place in pairs}
