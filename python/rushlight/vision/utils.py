"""Drawing of tensors: grids, files, boxes, masks, keypoints, optical flow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageColor, ImageDraw, ImageFont

import rushlight
from rushlight import Tensor
from rushlight._warnings import warn

__all__ = [
    "draw_bounding_boxes",
    "draw_keypoints",
    "draw_segmentation_masks",
    "flow_to_image",
    "make_grid",
    "save_image",
]


def make_grid(
    tensor: Tensor | list[Tensor],
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Tensor:
    """Arrange several images in a grid.

    Args:
        tensor: (N, C, H, W), or a list of N images of one size; grey ones get three channels.
        nrow: the number of images in a row.
        padding: pixels between them and around.
        normalize: whether values are moved and stretched to 0 … 1.
        value_range: (least, largest) value for that; those of the images if None.
        scale_each: whether each image is stretched by its own values.
        pad_value: the value of pixels between.

    Returns:
        (3, height, width) unless there is but one image.

    Raises:
        TypeError: it is neither a tensor nor a list of tensors.

    Example:
        >>> images = torch.zeros(5, 3, 8, 8)
        >>> torch.vision.utils.make_grid(images, nrow=3).shape
        torch.Size([3, 22, 32])
    """
    listed = isinstance(tensor, list) and all(isinstance(t, Tensor) for t in tensor)
    if not isinstance(tensor, Tensor) and not listed:
        what = "a list with other things" if isinstance(tensor, list) else str(type(tensor))
        raise TypeError(f"tensor or list of tensors expected, got {what}")
    images = rushlight.stack(tensor, dim=0) if isinstance(tensor, list) else tensor
    if images.dim() == 2:
        images = images.unsqueeze(0)
    if images.dim() == 3:
        images = images.expand(3, -1, -1) if images.size(0) == 1 else images
        images = images.unsqueeze(0)
    if images.dim() == 4 and images.size(1) == 1:
        images = images.expand(-1, 3, -1, -1)
    if normalize:
        if value_range is not None and not isinstance(value_range, tuple):
            raise TypeError(
                f"value_range has to be a tuple, the lowest and highest value, not {value_range}"
            )
        images = images.clone()
        for part in images if scale_each else [images]:
            low, high = value_range or (float(part.min()), float(part.max()))
            part.clamp_(min=low, max=high).sub_(low).div_(max(high - low, 1e-5))
    if images.size(0) == 1:
        return images.squeeze(0)
    n, channels = images.size(0), images.size(1)
    across = min(nrow, n)
    down = math.ceil(n / across)
    height, width = int(images.size(2) + padding), int(images.size(3) + padding)
    grid = images.new_full((channels, height * down + padding, width * across + padding), pad_value)
    for i in range(n):
        top, left = (i // across) * height + padding, (i % across) * width + padding
        grid[:, top : top + images.size(2), left : left + images.size(3)].copy_(images[i])
    return grid


def save_image(
    tensor: Tensor | list[Tensor], fp: Any, format: str | None = None, **kwargs: Any
) -> None:
    """Write an image, or a grid of several, to a file.

    Args:
        tensor: as `make_grid` takes them, of values from 0 to 1.
        fp: a path or an open file.
        format: the format of the file, by the name of the path if None.
        kwargs: arguments of `make_grid`.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.vision.utils.save_image(torch.rand(4, 1, 8, 8), file, format="png")
        >>> file.getvalue()[1:4]
        b'PNG'
    """
    levels = (make_grid(tensor, **kwargs) * 255 + 0.5).clamp(0, 255)
    pixels = levels.movedim(0, -1).to("cpu", rushlight.uint8)
    Image.fromarray(pixels.numpy()).save(fp, format)


# ---- drawing ----


def _check_image(image: Any) -> None:
    if not isinstance(image, Tensor):
        raise TypeError(f"Tensor expected, got {type(image)}")
    if image.dtype != rushlight.uint8 and not image.is_floating_point():
        raise ValueError("The image dtype must be uint8 or float")
    if image.dim() != 3:
        raise ValueError("Pass individual images, not batches")


def _palette(n: int) -> list[tuple[int, int, int]]:
    """n colours that differ."""
    steps = (2**25 - 1, 2**15 - 1, 2**21 - 1)
    return [tuple(i * s % 255 for s in steps) for i in range(n)]  # type: ignore[misc]


def _colours(colors: Any, n: int) -> list[tuple[int, int, int]]:
    """RGB for each of n things from None, a colour, or a list of n of them."""
    if colors is None:
        return _palette(n)
    if isinstance(colors, list):
        if len(colors) < n:
            raise ValueError(f"colors has {len(colors)} for {n} things; a list needs one for each")
        given = colors
    elif isinstance(colors, str | tuple):
        if isinstance(colors, tuple) and len(colors) != 3:
            raise ValueError(f"a colour is three numbers, red, green and blue, but got {colors}")
        given = [colors] * n
    else:
        raise ValueError(
            f"`colors` must be a tuple or a string, one colour or several, but got {colors}"
        )
    return [ImageColor.getrgb(c)[:3] if isinstance(c, str) else c for c in given]


def _to_canvas(image: Tensor) -> tuple[Any, Any]:
    """A picture of the image's values, and what draws on it."""
    bytes_ = image if image.dtype == rushlight.uint8 else image.mul(255).to(rushlight.uint8)
    picture = Image.fromarray(np.ascontiguousarray(bytes_.permute(1, 2, 0).cpu().numpy()))
    return picture, ImageDraw.Draw(picture)


def _from_canvas(picture: Any, image: Tensor) -> Tensor:
    out = rushlight.from_numpy(np.array(picture)).permute(2, 0, 1)
    if image.dtype != rushlight.uint8:
        out = out.to(image.dtype) / 255
    return out.to(image.device)


def draw_bounding_boxes(
    image: Tensor,
    boxes: Tensor,
    labels: list[str | None] | None = None,
    colors: Any = None,
    fill: bool = False,
    width: int = 1,
    font: str | None = None,
    font_size: int | None = None,
    label_colors: Any = None,
    label_background_colors: Any = None,
    fill_labels: bool = False,
) -> Tensor:
    """Draw boxes on an image.

    Args:
        image: (1 or 3, H, W), bytes or numbers from 0 to 1.
        boxes: (N, 4): xmin, ymin, xmax, ymax in pixels; or (N, 8): the corners of turned boxes.
        labels: a text, or None, for each box.
        colors: one colour (RGB or a name) or a list of one for each box; some that differ if None.
        fill: whether rectangles are filled, half transparent.
        width: of the lines, in pixels.
        font: a TrueType file; Pillow's own if None.
        font_size: in points; 10 if None.
        label_colors: of the texts; those of the boxes if None, or black with fill_labels.
        label_background_colors: the colours behind the labels if fill_labels is True.
        fill_labels: whether labels have a background.

    Raises:
        TypeError, ValueError: it is no such image, a box is inverted, or numbers do not match.

    Example:
        >>> image = torch.zeros(3, 16, 16, dtype=torch.uint8)
        >>> boxes = torch.tensor([[2, 2, 10, 12]])
        >>> drawn = torch.vision.utils.draw_bounding_boxes(image, boxes, colors="red")
        >>> drawn[:, 2, 5]
        tensor([255,   0,   0], dtype=torch.uint8)
    """
    _check_image(image)
    if image.size(0) not in (1, 3):
        raise ValueError("Only grayscale and RGB images are supported")
    if boxes.shape[-1] not in (4, 8):
        raise ValueError(f"boxes have 4 or 8 numbers each, but got shape {tuple(boxes.shape)}")
    inverted = (boxes[:, 0] > boxes[:, 2]) | (boxes[:, 1] > boxes[:, 3])
    if boxes.shape[-1] == 4 and inverted.any():
        raise ValueError(
            "boxes are (xmin, ymin, xmax, ymax), with no max below its min; "
            "vision.ops.box_convert converts other formats"
        )
    n = boxes.shape[0]
    if n == 0:
        warn("boxes doesn't contain any box. No box was drawn")
        return image
    captions: list[str | None] = [None] * n if labels is None else labels
    if labels is not None and len(labels) != n:
        raise ValueError(
            f"The number of boxes ({n}) and labels ({len(labels)}) mismatch: each box has one"
        )
    lines = _colours(colors, n)
    texts = lines
    if label_colors or fill_labels:
        texts = _colours(label_colors or "black", n)
    behind = lines
    if fill_labels and label_background_colors is not None:
        behind = _colours(label_background_colors, n)
    if font is None:
        if font_size is not None:
            warn("Argument 'font_size' will be ignored since 'font' is not set.")
        letters = ImageFont.load_default()
    else:
        letters = ImageFont.truetype(font=font, size=font_size or 10)
    if image.size(0) == 1:
        image = image.expand(3, -1, -1)
    picture, draw = _to_canvas(image)
    if fill:
        draw = ImageDraw.Draw(picture, "RGBA")
    for i, box in enumerate(boxes.to(rushlight.int64).tolist()):
        inside = (*lines[i], 100) if fill else None
        shape = draw.polygon if len(box) > 4 else draw.rectangle
        shape(box, width=width, outline=lines[i], fill=inside)
        label = captions[i]
        if label is not None:
            at = (box[0] + width + 1, box[1] + width + 1)
            if fill_labels:
                left, top, right, bottom = draw.textbbox(at, label, font=letters)
                draw.rectangle((left - 1, top - 1, right + 1, bottom + 1), fill=behind[i])
            draw.text(at, label, fill=texts[i], font=letters)
    return _from_canvas(picture, image)


def draw_segmentation_masks(
    image: Tensor, masks: Tensor, alpha: float = 0.8, colors: Any = None
) -> Tensor:
    """Draw coloured masks on an image.

    Args:
        image: (3, H, W), bytes or numbers from 0 to 1.
        masks: (N, H, W) or (H, W), bool.
        alpha: the opacity of the masks, from 0 to 1.
        colors: one colour (RGB or a name) or a list of one for each mask; some that differ if None.

    Example:
        >>> image = torch.zeros(3, 4, 4, dtype=torch.uint8)
        >>> mask = torch.eye(4, dtype=torch.bool)
        >>> drawn = torch.vision.utils.draw_segmentation_masks(
        ...     image, mask, alpha=1.0, colors="blue"
        ... )
        >>> drawn[:, 0, 0], drawn[:, 0, 1]
        (tensor([  0,   0, 255], dtype=torch.uint8), tensor([0, 0, 0], dtype=torch.uint8))
    """
    _check_image(image)
    if image.size(0) != 3:
        raise ValueError(f"Pass an RGB image, of 3 channels: this one has {image.size(0)}")
    masks = masks[None] if masks.ndim == 2 else masks
    if masks.ndim != 3:
        raise ValueError(
            f"masks are (height, width), or one such for each thing; not {tuple(masks.shape)}"
        )
    if masks.dtype != rushlight.bool:
        raise ValueError(f"The masks must be of dtype bool. Got {masks.dtype}")
    if masks.shape[-2:] != image.shape[-2:]:
        size = tuple(image.shape[-2:])
        raise ValueError(f"masks must have the same height and width as the image, {size}")
    if masks.size(0) == 0:
        warn("masks doesn't contain any mask. No mask was drawn")
        return image
    over = image.detach().clone()
    white = 255 if image.dtype == rushlight.uint8 else 1
    for mask, colour in zip(masks, _colours(colors, masks.size(0)), strict=False):
        value = rushlight.tensor(colour, device=image.device) * white / 255
        over[:, mask] = value.to(image.dtype)[:, None]
    over[:, masks.sum(0) > 1] = 0  # where masks meet
    return (image * (1 - alpha) + over * alpha).to(image.dtype)


def draw_keypoints(
    image: Tensor,
    keypoints: Tensor,
    connectivity: Sequence[tuple[int, int]] | None = None,
    colors: Any = None,
    radius: int = 2,
    width: int = 3,
    visibility: Tensor | None = None,
) -> Tensor:
    """Draw points, and lines between them, on an image.

    Args:
        image: (3, H, W), bytes or numbers from 0 to 1.
        keypoints: (N, K, 2): x and y of K points of N things.
        connectivity: pairs of points that lines join.
        colors: of the points: one RGB or name, or a list of one for each thing; None draws the
            lines alone, as torchvision does.
        radius: the radius of the points, in pixels.
        width: of the lines, in pixels.
        visibility: (N, K): points that are 0 are not drawn.

    Example:
        >>> image = torch.zeros(3, 16, 16, dtype=torch.uint8)
        >>> points = torch.tensor([[[4.0, 8.0]]])
        >>> torch.vision.utils.draw_keypoints(image, points, colors="red")[:, 8, 4]
        tensor([255,   0,   0], dtype=torch.uint8)
    """
    _check_image(image)
    if image.size(0) != 3:
        raise ValueError(f"Pass an RGB image, of 3 channels: this one has {image.size(0)}")
    if keypoints.ndim != 3:
        raise ValueError("keypoints must be of shape (num_instances, K, 2)")
    shown = rushlight.ones(keypoints.shape[:-1]) if visibility is None else visibility
    shown = shown.squeeze(-1) if shown.ndim == 3 else shown
    if shown.shape != keypoints.shape[:-1]:
        raise ValueError(
            "keypoints and visibility must have the same dimensionality but for the coordinates; "
            f"they are {keypoints.shape} and {shown.shape}"
        )
    picture, draw = _to_canvas(image)
    fills = None if colors is None else _colours(colors, keypoints.size(0))
    for thing, (points, seen) in enumerate(
        zip(keypoints.to(rushlight.int64).tolist(), shown.tolist(), strict=True)
    ):
        for (x, y), visible in zip(points, seen, strict=True):
            if visible:
                ends = [x - radius, y - radius, x + radius, y + radius]
                fill = None if fills is None else fills[thing]
                draw.ellipse(ends, fill=fill, outline=None, width=0)
        for a, b in connectivity or ():
            if seen[a] and seen[b]:
                draw.line((*points[a], *points[b]), width=width)
    return _from_canvas(picture, image)


def _wheel() -> Tensor:
    """Colours of directions: from red over yellow, green, cyan, blue and magenta, (55, 3), by Baker
    et al. (2011).
    """
    parts = []
    # Steps of each part, the channel that is full and the one that rises or falls.
    for steps, full, changing, rises in (
        (15, 0, 1, True),
        (6, 1, 0, False),
        (4, 1, 2, True),
        (11, 2, 1, False),
        (13, 2, 0, True),
        (6, 0, 2, False),
    ):
        part = rushlight.zeros(steps, 3)
        part[:, full] = 255
        ramp = rushlight.floor(255 * rushlight.arange(0, steps) / steps)
        part[:, changing] = ramp if rises else 255 - ramp
        parts.append(part)
    return rushlight.cat(parts)


def flow_to_image(flow: Tensor) -> Tensor:
    """Convert optical flow to colours: the hue is the direction, the saturation the relative
    length.

    Args:
        flow: (N, 2, H, W) or (2, H, W), float32.

    Returns:
        Bytes, with 3 in the place of 2.

    Example:
        >>> flow = torch.zeros(2, 4, 4)
        >>> torch.vision.utils.flow_to_image(flow).shape
        torch.Size([3, 4, 4])
    """
    if flow.dtype != rushlight.float32:
        raise ValueError(f"Flow should be of dtype torch.float32, got {flow.dtype}.")
    batch = flow[None] if flow.ndim == 3 else flow
    if batch.ndim != 4 or batch.shape[1] != 2:
        raise ValueError(
            f"Input flow should have shape (2, H, W), or more of them, got {flow.shape}"
        )
    longest = (batch**2).sum(1).sqrt().max()
    batch = batch / (longest + rushlight.finfo(flow.dtype).eps)
    length = (batch**2).sum(1).sqrt()
    wheel = _wheel().to(flow.device)
    n = wheel.shape[0]
    turn = rushlight.atan2(-batch[:, 1], -batch[:, 0]) / math.pi
    at = (turn + 1) / 2 * (n - 1)
    below = at.floor().to(rushlight.int64)
    above = (below + 1) % n
    share = (at - below)[..., None]
    colour = (1 - share) * wheel[below] / 255.0 + share * wheel[above] / 255.0
    colour = 1 - length[..., None] * (1 - colour)
    out = (255 * colour).floor().to(rushlight.uint8).permute(0, 3, 1, 2)
    return out[0] if flow.ndim == 3 else out


def _log_api_usage_once(obj: Any) -> None:
    """Nothing: calls are not counted. Copies of torchvision's models ask for it."""
