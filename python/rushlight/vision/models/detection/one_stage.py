"""Detectors of one stage: classes and boxes at all positions of all maps; the best are kept."""

from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import Tensor, nn

from ...ops import boxes as box_ops
from . import _utils
from .transform import GeneralizedRCNNTransform

__all__: list[str] = []

Found = tuple[Tensor, Tensor, Tensor]  # of anchors: places, then classes and scores, or boxes


def best_of(scores: Tensor, threshold: float, most: int) -> tuple[Tensor, Tensor]:
    """Places and values of the highest scores (N) above the threshold, by falling scores."""
    above = (scores > threshold).nonzero().squeeze(1)
    best = scores[above].topk(min(most, len(above)))
    return above[best.indices], best.values


def boxes_to_learn(targets: list[dict[str, Tensor]], matched: list[Tensor]) -> list[Found]:
    """Of each image the positions of anchors that have a box, those boxes, and their classes.

    Args:
        matched: of each anchor, the number of its box, negative where it has none.
    """
    found: list[Found] = []
    for target, number in zip(targets, matched, strict=True):
        positive = (number >= 0).nonzero().squeeze(1)
        chosen = number[positive]
        found.append((positive, target["boxes"][chosen], target["labels"][chosen]))
    return found


def init_convs(layers: nn.Module, draw: Callable[[Tensor], object]) -> None:
    """Draws the weights of convolutions, whose biases become 0."""
    for layer in layers.modules():
        if isinstance(layer, nn.Conv2d):
            draw(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


class OneStageDetector(nn.Module):
    """A list of images (C, H, W) to a list of dicts; in training, with targets, to a dict of
    losses. Compiled by `jit.script` it gives both, the losses first.

    The head makes of a list of maps a dict of "cls_logits" (N, A, classes), "bbox_regression"
    (N, A, 4) and what else it says of each anchor. Subclasses say what their losses and scores are.
    """

    def __init__(
        self,
        backbone: nn.Module,
        anchor_generator: nn.Module,
        head: nn.Module,
        transform: GeneralizedRCNNTransform,
        score_thresh: float,
        nms_thresh: float,
        detections_per_img: int,
        topk_candidates: int,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.anchor_generator = anchor_generator
        self.head = head
        self.transform = transform
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img, self.topk_candidates = detections_per_img, topk_candidates

    def _losses(
        self,
        targets: list[dict[str, Tensor]],
        outputs: dict[str, Tensor],
        anchors: list[Tensor],
        counts: list[int],
    ) -> dict[str, Tensor]:
        """counts: anchors of each map."""
        raise NotImplementedError

    def _scores(self, outputs: dict[str, Tensor]) -> Tensor:
        """Of what the head says of one image, scores (A, classes)."""
        return outputs["cls_logits"].sigmoid()

    def _candidates(self, scores: Tensor, counts: list[int]) -> list[Found]:
        """The best anchors of each map, with each of their classes."""
        first, classes = 0, scores.shape[1]
        found: list[Found] = []
        for part in scores.split(counts):
            best, values = best_of(part.flatten(), self.score_thresh, self.topk_candidates)
            found.append((best // classes + first, best % classes, values))
            first += len(part)
        return found

    def _decode(self, codes: Tensor, anchors: Tensor) -> Tensor:
        return self.box_coder.decode_single(codes, anchors)

    def _detect(
        self,
        outputs: dict[str, Tensor],
        anchors: Tensor,
        size: tuple[int, int],
        counts: list[int],
    ) -> dict[str, Tensor]:
        """What is found in one image."""
        found = self._candidates(self._scores(outputs), counts)
        place, labels, scores = (torch.cat([one[i] for one in found]) for i in (0, 1, 2))
        boxes = self._decode(outputs["bbox_regression"][place], anchors[place])
        boxes = box_ops.clip_boxes_to_image(boxes, size)
        kept = box_ops.batched_nms(boxes, scores, labels, self.nms_thresh)
        kept = kept[: self.detections_per_img]
        return {"boxes": boxes[kept], "scores": scores[kept], "labels": labels[kept]}

    @torch.jit.unused
    def eager_outputs(self, losses: dict[str, Tensor], detections: list[dict[str, Tensor]]) -> Any:
        """The result of the model: losses in training, detections in evaluation."""
        return losses if self.training else detections

    def postprocess_detections(
        self,
        head_outputs: dict[str, list[Tensor]],
        anchors: list[list[Tensor]],
        image_shapes: list[tuple[int, int]],
    ) -> list[dict[str, Tensor]]:
        """The detections of each image, from the outputs of the head for the anchors of each map.

        head_outputs: by name, a list of (N, anchors of the map, …); anchors: of each image a list.
        """
        whole = {name: torch.cat(parts, 1) for name, parts in head_outputs.items()}
        return [
            self._detect(
                {name: values[i] for name, values in whole.items()},
                torch.cat(own),
                size,
                [len(part) for part in own],
            )
            for i, (own, size) in enumerate(zip(anchors, image_shapes, strict=True))
        ]

    def _postprocess(
        self,
        outputs: dict[str, Tensor],
        anchors: list[Tensor],
        sizes: list[tuple[int, int]],
        counts: list[int],
    ) -> list[dict[str, Tensor]]:
        parts = {name: list(values.split(counts, 1)) for name, values in outputs.items()}
        each = [list(own.split(counts)) for own in anchors]
        return self.postprocess_detections(parts, each, sizes)

    def forward(
        self, images: list[Tensor], targets: list[dict[str, Tensor]] | None = None
    ) -> tuple[dict[str, Tensor], list[dict[str, Tensor]]]:
        """Losses in training, a dict of boxes, scores and labels for each image in evaluation."""
        if self.training:
            _utils.check_targets(targets)
        sizes = [(image.shape[-2], image.shape[-1]) for image in images]
        batch, wanted = self.transform(images, targets)
        features = self.backbone(batch.tensors)
        maps = [features] if isinstance(features, Tensor) else list(features.values())
        outputs = self.head(maps)
        anchors = self.anchor_generator(batch, maps)
        places = [m.shape[-2] * m.shape[-1] for m in maps]
        each = self.anchor_generator.num_anchors_per_location()
        each = each if len(each) == len(maps) else each * len(maps)
        counts = [n * k for n, k in zip(places, each, strict=True)]
        losses: dict[str, Tensor] = {}
        found: list[dict[str, Tensor]] = []
        if self.training:
            assert wanted is not None
            losses = self._losses(wanted, outputs, anchors, counts)
        else:
            found = self._postprocess(outputs, anchors, batch.image_sizes, counts)
            found = self.transform.postprocess(found, batch.image_sizes, sizes)
        if torch.jit.is_scripting():
            return losses, found
        return self.eager_outputs(losses, found)
