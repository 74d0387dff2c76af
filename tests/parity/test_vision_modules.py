"""Each public module of torchvision can be imported under the alias, and holds what it holds there."""

import importlib
import json
import pkgutil
import subprocess
import sys

from tests.parity import torchvision as oracle

torchvision = oracle.load()

# Parts of models and readers of one file each that torchvision has for itself.
INNER = {
    "datasets.celeba": "CSV",
    "datasets.flickr": "Flickr8kParser",
    "datasets.folder": "accimage_loader",
    "datasets.imagenet": "load_meta_file parse_devkit_archive parse_train_archive parse_val_archive",
    "datasets.mnist": "get_int",
    "datasets.phototour": "read_image_file read_info_file read_matches_files",
    "datasets.utils": "T",
    "datasets.video_utils": "T",
    "datasets.vision": "T_co",
    "io.image": "decode_avif decode_heic",
    "models.detection.backbone_utils": "mobilenet_backbone",
    "models.detection.roi_heads": "project_masks_on_boxes keypointrcnn_inference expand_boxes "
    "expand_masks_tracing_scale expand_masks paste_mask_in_image",
    "models.detection.rpn": "permute_and_flatten concat_box_prediction_layers",
    "models.feature_extraction": "LeafModuleAwareTracer",
    "models.maxvit": "SwapAxes WindowPartition WindowDepartition",
    "models.quantization.googlenet": "QuantizableBasicConv2d QuantizableInception "
    "QuantizableInceptionAux",
    "models.quantization.inception": "QuantizableBasicConv2d QuantizableInceptionA "
    "QuantizableInceptionB QuantizableInceptionC QuantizableInceptionD QuantizableInceptionE "
    "QuantizableInceptionAux",
    "models.quantization.mobilenetv2": "QuantizableInvertedResidual",
    "models.quantization.mobilenetv3": "QuantizableSqueezeExcitation QuantizableInvertedResidual",
    "models.quantization.resnet": "QuantizableBasicBlock QuantizableBottleneck",
    "models.quantization.shufflenetv2": "QuantizableInvertedResidual",
    "models.quantization.utils": "quantize_model",
    "models.regnet": "AnyStage",
    "models.video.resnet": "Bottleneck",
    "models.video.swin_transformer": "shifted_window_attention_3d",
    "ops.poolers": "initLevelMapper LevelMapper",
    "ops.roi_align": "lazy_compile maybe_cast",
}


def modules():
    for info in pkgutil.walk_packages(torchvision.__path__, "torchvision.", lambda name: None):
        compiled = info.name == "torchvision.image"
        if not compiled and not any(part.startswith("_") for part in info.name.split(".")):
            yield info.name


def own_names(name):
    try:
        module = importlib.import_module(name)
    except ImportError:
        return []
    own = (n for n, value in vars(module).items() if getattr(value, "__module__", "") == name)
    return [n for n in own if not n.startswith("_")]


PROGRAM = """
import rushlight.as_torch, importlib, json, sys, torchvision
missing = {}
for name, names in json.load(sys.stdin).items():
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        missing[name] = str(error)
    else:
        absent = [n for n in names if not hasattr(module, n)]
        if absent:
            missing[name] = absent
import torchvision.ops.focal_loss as f
from torchvision.ops.roi_align import roi_align
assert callable(torchvision.ops.roi_align) and torchvision.ops.roi_align is roi_align
assert f.sigmoid_focal_loss is torchvision.ops.sigmoid_focal_loss
print(json.dumps(missing))
"""


def test_modules():
    wanted = {name: own_names(name) for name in modules()}
    assert len(wanted) > 120 and sum(map(len, wanted.values())) > 650
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(wanted), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    missing = json.loads(done.stdout)
    assert missing == {f"torchvision.{name}": names.split() for name, names in INNER.items()}
