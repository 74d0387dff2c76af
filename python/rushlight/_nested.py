"""Modules of torchvision that are none here: what they hold stands in the package around them.

Under the alias they can be imported like torchvision's.
"""

NESTED = {
    "rushlight.vision": "extension version",
    "rushlight.vision.datasets": "caltech celeba cityscapes clevr coco country211 dtd eurosat "
    "fer2013 fgvc_aircraft flickr flowers102 food101 gtsrb hmdb51 imagenet imagenette inaturalist "
    "kinetics kitti lfw lsun moving_mnist omniglot oxford_iiit_pet pcam phototour places365 "
    "rendered_sst2 sbd sbu semeion stanford_cars stl10 sun397 svhn ucf101 usps voc widerface",
    "rushlight.vision.datasets.samplers": "clip_sampler",
    "rushlight.vision.models.quantization": "googlenet inception mobilenet mobilenetv2 mobilenetv3 "
    "resnet shufflenetv2 utils",
    "rushlight.vision.ops": "ciou_loss diou_loss drop_block focal_loss giou_loss ps_roi_align "
    "ps_roi_pool roi_align roi_pool stochastic_depth",
}
