"""Modules of torchvision that lie in others here."""

from rushlight.foreign.rows import NO_EFFECT, PROTOCOL, Accepted

# By package, NAME=MODULE: it stands in a module of the package, or, as a point, in the package.
_NESTED = {
    "vision": "extension=. version=.",
    "vision.datasets": "_optical_flow=flow _stereo_matching=stereo caltech=. "
    "celeba=faces cityscapes=streets clevr=classes coco=scenes country211=listed dtd=listed "
    "eurosat=listed fer2013=classes fgvc_aircraft=classes flickr=captions flowers102=listed "
    "food101=listed gtsrb=listed hmdb51=videos imagenet=trees imagenette=classes inaturalist=trees "
    "kinetics=videos kitti=streets lfw=faces lsun=patches moving_mnist=patches omniglot=classes "
    "oxford_iiit_pet=listed pcam=classes phototour=patches places365=trees rendered_sst2=classes "
    "sbd=streets sbu=captions semeion=classes stanford_cars=classes stl10=arrays sun397=classes "
    "svhn=arrays ucf101=videos usps=arrays voc=scenes widerface=faces",
    "vision.datasets.samplers": "clip_sampler=.",
    "vision.ops": "ciou_loss=losses diou_loss=losses drop_block=dropping "
    "focal_loss=losses giou_loss=losses ps_roi_align=rois ps_roi_pool=rois roi_align=rois "
    "roi_pool=rois stochastic_depth=dropping",
    "vision.transforms.v2": "_auto_augment=. _container=_containers _temporal=. _type_conversion=.",
    "vision.transforms.v2.functional": "_augment=. _temporal=. _type_conversion=. _utils=_registry",
    "vision.tv_tensors": "_bounding_boxes=_places _image=_images _keypoints=_places "
    "_mask=_images _torch_function_helpers=_base _tv_tensor=_base _video=_images",
}

MODULES = {
    **{
        f"{package}.{name}": package if place == "." else f"{package}.{place}"
        for package, words in _NESTED.items()
        for name, _, place in (word.partition("=") for word in words.split())
    },
    "vision._internally_replaced_utils": {"hub": "load_state_dict_from_url"},
    "vision.models.mobilenet": {
        "vision.models.mobilenetv2": "*",
        "vision.models.mobilenetv3": "*",
    },
    "vision.models.quantization.mobilenet": {
        "vision.models.quantization.mobilenetv2": "*",
        "vision.models.quantization.mobilenetv3": "*",
    },
}

ACCEPTED = (
    # sparse tensors and images
    Accepted("sparse._make.*", "check_invariants", NO_EFFECT, "indices are always checked"),
    Accepted("sparse._make.*", "pin_memory check_pinning", NO_EFFECT, "memory is not pinned"),
    Accepted("sparse._make.*", "layout", NO_EFFECT, "the function's name gives the layout"),
    Accepted(
        "vision.datasets.utils.download_url",
        "max_redirect_hops",
        NO_EFFECT,
        "urllib limits redirects",
    ),
    Accepted(
        "vision.datasets.video_utils.VideoClips.* vision.datasets.videos.*",
        "_video_width _video_height _video_min_dimension _video_max_dimension _audio_samples "
        "_audio_channels",
        NO_EFFECT,
        "PyAV decodes at the size of the video, as in torchvision",
    ),
    Accepted(
        "vision.datasets.videos.Kinetics.*",
        "num_download_workers",
        NO_EFFECT,
        "parts are downloaded one after the other",
    ),
    Accepted(
        "vision.models.*", "kwargs", NO_EFFECT, "torchvision's functions accept any arguments, too"
    ),
    Accepted("vision.models.video.resnet.*", "midplanes", NO_EFFECT, PROTOCOL),
    Accepted(
        "vision.ops.feature_pyramid_network.LastLevelMaxPool.forward", "y", NO_EFFECT, PROTOCOL
    ),
    Accepted("vision.transforms.v2.*.transform", "params", NO_EFFECT, PROTOCOL),
    Accepted("vision.transforms.v2.*.make_params", "flat_inputs", NO_EFFECT, PROTOCOL),
    Accepted("vision.transforms.v2.*.check_inputs", "flat_inputs", NO_EFFECT, PROTOCOL),
)
