"""`python -m bench.transforms`: transforms against torchvision's, where it is installed.

Both run in turns in one process on the same inputs, with one seed; the ratio is the median over
rounds. `python -m bench.transforms NAME` measures the rows whose names contain it.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import timeit
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import rushlight
from rushlight.vision import datasets, transforms
from rushlight.vision.transforms import v2
from tests.parity import torchvision as oracle

# Between turns: threads of OpenMP that wait for work spin for some milliseconds.
PAUSE = 0.02
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def scene(height, width):
    """A picture that is neither flat nor noise."""
    y, x = np.mgrid[:height, :width] / 40
    waves = [np.sin(x * (i + 1) + y) + np.cos(y * (i + 2)) for i in range(3)]
    noise = np.random.default_rng(0).normal(0, 0.2, (height, width, 3))
    return np.clip((np.stack(waves, -1) + noise) * 50 + 128, 0, 255).astype(np.uint8)


def rows(package, new, datasets, module, folder):
    """What is measured: by name, a function without arguments. `folder` is for an ImageFolder."""
    pixels = scene(375, 500)
    file = folder / "class" / "scene.jpg"
    file.parent.mkdir(exist_ok=True)
    Image.fromarray(pixels).save(file, "JPEG", quality=90)
    picture = Image.fromarray(pixels)
    tensor = module.from_numpy(pixels.transpose(2, 0, 1).copy())
    floats = tensor.float() / 255
    batch = module.from_numpy(np.stack([scene(224, 224)] * 8).transpose(0, 3, 1, 2).copy())

    def items(transform=None):
        """Of a data set, from the file on."""
        data = datasets.ImageFolder(folder, transform)
        return lambda: data[0]

    def of(transform, image):
        return lambda: transform(image)

    def training(kinds, *converted):
        first = (kinds.RandomResizedCrop(224), kinds.RandomHorizontalFlip())
        return kinds.Compose([*first, *converted, kinds.Normalize(MEAN, STD)])

    scaled = new.ToDtype(module.float32, scale=True)
    old = training(package, package.ToTensor())
    on_pictures = training(new, new.ToImage(), scaled)
    on_tensors = training(new, scaled)
    on_tensors_old = training(package, package.ConvertImageDtype(module.float32))
    small = Image.fromarray(scene(32, 32))

    def cifar(kinds, *converted):
        first = (kinds.RandomCrop(32, padding=4), kinds.RandomHorizontalFlip())
        return kinds.Compose([*first, *converted, kinds.Normalize(MEAN, STD)])

    affine = new.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 5, interpolation="bilinear")
    jitter = (0.4, 0.4, 0.4, 0.1)
    return {
        "decode": items(),
        "training, decode and all, v1": items(old),
        "training, decode and all, v2": items(on_pictures),
        "training on a picture, v1": of(old, picture),
        "training on a picture, v2": of(on_pictures, picture),
        "training on a tensor, v1": of(on_tensors_old, tensor),
        "training on a tensor, v2": of(on_tensors, tensor),
        "training on 32 x 32, v1": of(cifar(package, package.ToTensor()), small),
        "training on 32 x 32, v2": of(cifar(new, new.ToImage(), scaled), small),
        "resize uint8 256, v1": of(package.Resize(256), tensor),
        "resize uint8 256, v2": of(new.Resize(256), tensor),
        "resize uint8 bicubic, v2": of(new.Resize(256, interpolation="bicubic"), tensor),
        "resize float 256": of(new.Resize(256), floats),
        "resize batch of 8 to 128": of(new.Resize(128), batch),
        "to tensor": of(package.ToTensor(), picture),
        "normalize": of(package.Normalize(MEAN, STD), floats),
        "normalize, v2": of(new.Normalize(MEAN, STD), floats),
        "flip": of(package.RandomHorizontalFlip(1.0), tensor),
        "colour jitter on bytes, v1": of(package.ColorJitter(*jitter), tensor),
        "colour jitter on bytes, v2": of(new.ColorJitter(*jitter), tensor),
        "colour jitter on floats": of(new.ColorJitter(*jitter), floats),
        "colour jitter on a picture": of(new.ColorJitter(*jitter), picture),
        "brightness": of(new.ColorJitter(brightness=0.4), tensor),
        "contrast": of(new.ColorJitter(contrast=0.4), tensor),
        "saturation": of(new.ColorJitter(saturation=0.4), tensor),
        "hue": of(new.ColorJitter(hue=0.1), tensor),
        "rotation": of(new.RandomRotation(30), tensor),
        "affine bilinear": of(affine, tensor),
        "perspective": of(new.RandomPerspective(p=1.0), tensor),
        "elastic": of(new.ElasticTransform(), tensor),
        "gaussian blur": of(new.GaussianBlur(5), tensor),
        "sharpness": of(new.RandomAdjustSharpness(2.0, 1.0), tensor),
        "equalize": of(new.RandomEqualize(1.0), tensor),
        "autocontrast": of(new.RandomAutocontrast(1.0), tensor),
        "erasing": of(new.RandomErasing(1.0), floats),
        "RandAugment on bytes": of(new.RandAugment(), tensor),
        "TrivialAugmentWide on a picture": of(new.TrivialAugmentWide(), picture),
    }


def main():
    """Print milliseconds and ratios."""
    torchvision = oracle.load()
    from torchvision.transforms import v2 as their_v2

    wanted = sys.argv[1:]
    # rushlight lets Pillow keep memory, which a process with torchvision alone has to ask for.
    kept = Image.core.get_blocks_max()
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name)
    theirs = rows(torchvision.transforms, their_v2, torchvision.datasets, torch, path)
    ours = rows(transforms, v2, datasets, rushlight, path)
    print(f"{'transform':34} {'torchvision':>11} {'rushlight':>10} {'ratio':>6}  (ms)")
    for name in ours:
        if wanted and not any(word in name for word in wanted):
            continue
        number = max(1, int(0.02 / timeit.timeit(theirs[name], number=2) * 2))
        pairs = []
        for i in range(9):
            times = []
            for module, call, blocks in ((torch, theirs[name], 0), (rushlight, ours[name], kept)):
                time.sleep(PAUSE)
                module.manual_seed(i)
                Image.core.set_blocks_max(blocks)
                times.append(timeit.timeit(call, number=number) / number)
            pairs.append(times)
        ratio = statistics.median(b / a for a, b in pairs)
        a, b = (1e3 * min(p[i] for p in pairs) for i in (0, 1))
        print(f"{name:34} {a:11.3f} {b:10.3f} {ratio:6.2f}", flush=True)


if __name__ == "__main__":
    main()
