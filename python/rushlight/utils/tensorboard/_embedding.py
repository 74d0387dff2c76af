"""Files of points for TensorBoard's projector: numbers, labels, small pictures."""

from __future__ import annotations

import math
import os
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.utils.tensorboard.summary import png


def folder_name(tag: str) -> str:
    """A tag as the name of a folder."""
    for c in "%/\\":
        tag = tag.replace(c, f"%{ord(c):02x}")
    return tag


def _sprite(pictures: Tensor) -> bytes:
    """All pictures (N, C, H, W), floats from 0 to 1, as the tiles of a square."""
    count, channels, height, width = pictures.shape
    side = math.ceil(math.sqrt(count))
    tiles = pictures.detach().cpu().float()
    tiles = rushlight.cat([tiles, tiles.new_zeros(side * side - count, channels, height, width)])
    grid = tiles.reshape(side, side, channels, height, width).permute(0, 3, 1, 4, 2)
    pixels = (grid.reshape(side * height, side * width, channels) * 255).clamp(0, 255)
    return png(pixels.to(rushlight.uint8))


def write(
    log_dir: str,
    place: str,
    mat: Any,
    metadata: Any = None,
    label_img: Any = None,
    tag: str = "default",
    metadata_header: Any = None,
) -> None:
    """Writes the files of one set of points, and names them in the folder's list.

    Args:
        log_dir: the folder of the run.
        place: where in it, "00000/default".
        mat: the points, (N, D).
        metadata: a label for each, or several with `metadata_header`.
        label_img: a square picture for each, (N, C, H, W).
        tag: their name.
        metadata_header: names of the labels where each point has several.
    """
    points = rushlight.as_tensor(mat).detach().cpu()
    if points.dim() != 2:
        raise ValueError(f"mat should be 2D, a row for each point, but got {list(points.shape)}")
    folder = os.path.join(log_dir, place)
    os.makedirs(folder, exist_ok=True)
    lines = [
        f'tensor_name: "{tag}:{place.partition("/")[0]}"',
        f'tensor_path: "{place}/tensors.tsv"',
    ]
    if metadata is not None:
        if len(metadata) != len(points):
            raise ValueError("#labels should equal with #data points")
        rows = [str(label) for label in metadata]
        if metadata_header:
            rows = ["\t".join(map(str, label)) for label in ([*metadata_header], *metadata)]
        with open(os.path.join(folder, "metadata.tsv"), "w", encoding="utf-8") as out:
            out.writelines(row + "\n" for row in rows)
        lines.append(f'metadata_path: "{place}/metadata.tsv"')
    if label_img is not None:
        pictures = rushlight.as_tensor(label_img)
        if len(pictures) != len(points):
            raise ValueError("#images should equal with #data points")
        if pictures.dim() != 4 or pictures.shape[2] != pictures.shape[3]:
            raise ValueError(f"images should be square, (N, C, H, H), not {list(pictures.shape)}")
        with open(os.path.join(folder, "sprite.png"), "wb") as out:
            out.write(_sprite(pictures))
        lines += [
            "sprite {",
            f'image_path: "{place}/sprite.png"',
            f"single_image_dim: {pictures.shape[3]}",
            f"single_image_dim: {pictures.shape[2]}",
            "}",
        ]
    with open(os.path.join(folder, "tensors.tsv"), "w", encoding="utf-8") as out:
        out.writelines("\t".join(map(str, row)) + "\n" for row in points.tolist())
    with open(os.path.join(log_dir, "projector_config.pbtxt"), "a", encoding="utf-8") as out:
        out.write("\n".join(["embeddings {", *(f"  {line}" for line in lines), "}", ""]))
