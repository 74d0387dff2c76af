"""Vision transformers."""
# packages: vit_pytorch torchvision
# cases: vit simple_vit cait deepvit cct levit mobile_vit nest pit t2t

import importlib
import sys

import torch
from shown import show, train

torch.manual_seed(0)
case = sys.argv[1]
module = importlib.import_module("vit_pytorch." + case)
plain = dict(image_size=32, patch_size=8, num_classes=5, dim=32, depth=2, heads=2, mlp_dim=64)
make = {
    "vit": lambda: module.ViT(**plain),
    "simple_vit": lambda: module.SimpleViT(**plain),
    "cait": lambda: module.CaiT(cls_depth=1, **plain),
    "deepvit": lambda: module.DeepViT(**plain),
    "cct": lambda: module.CCT(
        img_size=32,
        embedding_dim=32,
        n_conv_layers=1,
        num_layers=2,
        num_heads=2,
        mlp_ratio=2,
        num_classes=5,
        positional_embedding="learnable",
    ),
    "levit": lambda: module.LeViT(
        image_size=64, num_classes=5, stages=2, dim=(16, 32), depth=1, heads=(2, 2), mlp_mult=2
    ),
    "mobile_vit": lambda: module.MobileViT(
        image_size=(64, 64),
        dims=[16, 16, 16],
        channels=[8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 16],
        num_classes=5,
    ),
    "nest": lambda: module.NesT(
        image_size=32,
        patch_size=4,
        dim=16,
        heads=2,
        num_hierarchies=2,
        block_repeats=(1, 1),
        num_classes=5,
    ),
    "pit": lambda: module.PiT(
        image_size=32, patch_size=8, dim=32, num_classes=5, depth=(1, 1), heads=2, mlp_dim=64
    ),
    "t2t": lambda: module.T2TViT(
        image_size=32,
        dim=32,
        num_classes=5,
        depth=1,
        heads=2,
        mlp_dim=64,
        t2t_layers=((7, 4), (3, 2)),
    ),
}[case]
model = make()
x = torch.randn(2, 3, 64, 64) if case in ("levit", "mobile_vit") else torch.randn(2, 3, 32, 32)
train(model, lambda: torch.nn.functional.cross_entropy(model(x), torch.tensor([1, 3])))
model.eval()
show("logits", model(x))
