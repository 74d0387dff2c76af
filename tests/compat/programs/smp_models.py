"""Segmentation networks."""
# packages: segmentation_models_pytorch torchvision
# cases: Unet UnetPlusPlus FPN PSPNet DeepLabV3 DeepLabV3Plus Linknet MAnet PAN UPerNet
# differs[MAnet]: rounding of float32, which its layers let grow; in float64 gradients are equal
# differs[UPerNet]: rounding of float32, which its layers let grow; in float64 gradients are equal

import sys

import segmentation_models_pytorch as smp
import torch
from shown import show, train

torch.manual_seed(0)
model = getattr(smp, sys.argv[1])("resnet18", encoder_weights=None, classes=3)
x, y = torch.randn(2, 3, 64, 64), torch.randint(3, (2, 64, 64))
loss = smp.losses.DiceLoss("multiclass")
# One step that is small: rounding grows from layer to layer, and Adam takes its sign.
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
train(model, lambda: loss(model(x), y), steps=1, optimizer=optimizer)
model.eval()
with torch.no_grad():
    out = model(x)
show("out", out)
stats = smp.metrics.get_stats(out.argmax(1), y, mode="multiclass", num_classes=3)
show("iou", smp.metrics.iou_score(*stats, reduction="micro"))
for kind in (
    smp.losses.JaccardLoss,
    smp.losses.FocalLoss,
    smp.losses.LovaszLoss,
    smp.losses.TverskyLoss,
):
    show(kind.__name__, kind("multiclass")(out, y))
