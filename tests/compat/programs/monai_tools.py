"""Medical images: transforms, networks, losses, metrics, sliding windows."""
# packages: monai
# cases: networks transforms losses inference

import sys

import monai
import numpy as np
import torch
from monai import transforms as T
from monai.inferers import SlidingWindowInferer
from monai.losses import DiceCELoss, DiceLoss, FocalLoss, SSIMLoss, TverskyLoss
from monai.metrics import DiceMetric, HausdorffDistanceMetric
from monai.networks import nets
from shown import show

monai.utils.set_determinism(0)
torch.manual_seed(0)
case = sys.argv[1]
x = torch.randn(1, 1, 32, 32, 32)
if case == "networks":
    for make in (
        lambda: nets.UNet(3, 1, 2, (4, 8, 16), (2, 2)), lambda: nets.BasicUNet(3, 1, 2, (4, 4, 8, 8, 8, 4)),
        lambda: nets.SegResNet(3, 8, 1, 2, blocks_down=(1, 1), blocks_up=(1,)), lambda: nets.AttentionUnet(3, 1, 2, (4, 8), (2,)),
        lambda: nets.UNETR(1, 2, 32, hidden_size=24, mlp_dim=32, num_heads=2, feature_size=4), lambda: nets.DenseNet(3, 1, 2, 4, 4, (2, 2)),
    ):  # fmt: skip
        torch.manual_seed(0)
        model = make()
        out = model(x)
        show(type(model).__name__, out)
        out.square().mean().backward()
elif case == "transforms":
    image = np.random.RandomState(0).rand(1, 20, 24, 16).astype(np.float32)
    chain = T.Compose(
        [
            T.ScaleIntensity(),
            T.Spacing((1.5, 1.5, 2.0)),
            T.RandFlip(prob=1.0, spatial_axis=0),
            T.RandRotate(0.3, prob=1.0),
            T.RandGaussianNoise(prob=1.0),
            T.Resize((16, 16, 16)),
            T.EnsureType(),
        ]
    )
    chain.set_random_state(0)
    out = chain(image)
    print(type(out).__name__, out.affine.shape, len(out.applied_operations))
    show("chain", out.as_tensor())
    named = T.Compose(
        [
            T.EnsureChannelFirstd("x", channel_dim="no_channel"),
            T.NormalizeIntensityd("x"),
            T.CropForegroundd("x", source_key="x"),
            T.RandAffined("x", prob=1.0, rotate_range=0.2),
        ]
    )
    named.set_random_state(1)
    show("named", named({"x": image[0]})["x"].as_tensor())
    loader = monai.data.DataLoader(
        monai.data.CacheDataset([{"x": image[0]}] * 4, named, progress=False), batch_size=2
    )
    for batch in loader:
        print(batch["x"].shape, type(batch["x"]).__name__)
elif case == "losses":
    p, y = torch.randn(2, 3, 16, 16, requires_grad=True), torch.randint(3, (2, 1, 16, 16))
    for loss in (
        DiceLoss(to_onehot_y=True, softmax=True),
        DiceCELoss(to_onehot_y=True, softmax=True),
        FocalLoss(to_onehot_y=True),
        TverskyLoss(to_onehot_y=True, softmax=True),
    ):
        value = loss(p, y)
        value.backward()
        show(type(loss).__name__, value)
    show("gradient", p.grad)
    hot = monai.networks.one_hot(y, 3)
    show("dice", DiceMetric()(hot, hot.roll(1, -1)))
    show("hausdorff", HausdorffDistanceMetric()(hot, hot.roll(1, -1)))
    show("ssim", SSIMLoss(2)(torch.rand(1, 1, 24, 24), torch.rand(1, 1, 24, 24)))
else:
    model = nets.UNet(3, 1, 2, (4, 8), (2,)).eval()
    with torch.no_grad():
        show(
            "windows",
            SlidingWindowInferer((16, 16, 16), 2, overlap=0.25, mode="gaussian")(x, model),
        )
