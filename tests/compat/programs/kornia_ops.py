"""Filters, geometry, colour, losses, augmentation."""
# packages: kornia

import kornia as K
import torch
from shown import show

torch.manual_seed(0)
x = torch.rand(2, 3, 24, 24, requires_grad=True)
show("blur", K.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)))
show("sobel", K.filters.sobel(x))
show("canny", K.filters.canny(x)[0])
show("median", K.filters.median_blur(x, (3, 3)))
show("hsv", K.color.rgb_to_hsv(x))
show("lab", K.color.rgb_to_lab(x))
show("grey", K.color.rgb_to_grayscale(x))
show("rotate", K.geometry.transform.rotate(x, torch.tensor([30.0, 45.0])))
show("resize", K.geometry.transform.resize(x, (12, 18)))
m = torch.eye(3)[None].repeat(2, 1, 1) + 0.01 * torch.randn(2, 3, 3)
show("warp", K.geometry.transform.warp_perspective(x, m, (20, 20)))
show("ssim", K.losses.ssim_loss(x, x.flip(-1), 5))
show("dice", K.losses.dice_loss(torch.randn(2, 3, 8, 8), torch.randint(3, (2, 8, 8))))
show("harris", K.feature.harris_response(x.mean(1, keepdim=True)))
show("dilate", K.morphology.dilation(x, torch.ones(3, 3)))
show("equalize", K.enhance.equalize(x))
show(
    "angle",
    K.geometry.conversions.quaternion_to_rotation_matrix(torch.tensor([[1.0, 0.5, 0.0, 0.0]])),
)
points = torch.rand(1, 8, 2)
show(
    "homography",
    K.geometry.homography.find_homography_dlt(
        points, points @ torch.tensor([[1.0, 0.2], [0.1, 0.9]]) + 0.1
    ),
)
augment = K.augmentation.AugmentationSequential(
    K.augmentation.RandomHorizontalFlip(p=1.0), K.augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
    K.augmentation.RandomAffine(10.0, p=1.0), K.augmentation.RandomErasing(p=1.0), data_keys=["input", "mask"],
)  # fmt: skip
out, mask = augment(x, torch.ones(2, 1, 24, 24))
show("augmented", out)
show("mask", mask)
out.sum().backward()
show("gradient", x.grad)
