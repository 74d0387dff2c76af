"""Heads for proposed regions: classes, refined boxes, masks and keypoints."""

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn

from ...ops import boxes as box_ops
from ...ops import roi_align
from . import _utils

__all__ = [
    "RoIHeads",
    "expand_boxes",
    "expand_masks",
    "fastrcnn_loss",
    "heatmaps_to_keypoints",
    "keypointrcnn_inference",
    "keypointrcnn_loss",
    "keypoints_to_heatmap",
    "maskrcnn_inference",
    "maskrcnn_loss",
    "paste_mask_in_image",
    "paste_masks_in_image",
    "project_masks_on_boxes",
]


def fastrcnn_loss(
    class_logits: Tensor,
    box_regression: Tensor,
    labels: list[Tensor],
    regression_targets: list[Tensor],
) -> tuple[Tensor, Tensor]:
    """The losses of the classes and of the boxes of true classes.

    Args:
        class_logits: (N, classes).
        box_regression: moves, (N, classes * 4).
        labels: for each image the classes of its proposals.
        regression_targets: for each image the moves that are wanted.

    For an example see `vision.models.detection.fasterrcnn_resnet50_fpn`.
    """
    label, wanted = torch.cat(labels), torch.cat(regression_targets)
    positive = (label > 0).nonzero().squeeze(1)
    told = box_regression.reshape(len(class_logits), -1, 4)[positive, label[positive]]
    box_loss = F.smooth_l1_loss(told, wanted[positive], beta=1 / 9, reduction="sum")
    return F.cross_entropy(class_logits, label), box_loss / label.numel()


# ---- masks ----


def maskrcnn_inference(x: Tensor, labels: list[Tensor]) -> list[Tensor]:
    """Probabilities (K, 1, M, M) of the masks of each image's classes.

    Args:
        x: masks for each class, (N, classes, M, M).
        labels: for each image the classes of its boxes.

    For an example see `vision.models.detection.maskrcnn_resnet50_fpn`.
    """
    label = torch.cat(labels)
    chosen = x.sigmoid()[torch.arange(len(x), device=label.device), label][:, None]
    return list(chosen.split([len(part) for part in labels]))


def project_masks_on_boxes(gt_masks: Tensor, boxes: Tensor, matched_idxs: Tensor, M: int) -> Tensor:
    """Crop the masks (N, H, W) to the boxes (K, 4) that belong to them: (K, M, M).

    Args:
        gt_masks: (T, H, W).
        boxes: (N, 4).
        matched_idxs: which mask each box has, (N).
        M: the side of what is cut out.

    For an example see `vision.models.detection.maskrcnn_resnet50_fpn`.
    """
    rois = torch.cat([matched_idxs[:, None].to(boxes), boxes], dim=1)
    return roi_align(gt_masks[:, None].to(rois), rois, (M, M), 1.0)[:, 0]


def maskrcnn_loss(
    mask_logits: Tensor,
    proposals: list[Tensor],
    gt_masks: list[Tensor],
    gt_labels: list[Tensor],
    mask_matched_idxs: list[Tensor],
) -> Tensor:
    """The loss of masks against the true ones, cropped from their images.

    Args:
        mask_logits: (N, classes, M, M).
        proposals: for each image its boxes.
        gt_masks: for each image the true masks.
        gt_labels: for each image the true classes.
        mask_matched_idxs: for each image which thing each box has.

    For an example see `vision.models.detection.maskrcnn_resnet50_fpn`.
    """
    side = mask_logits.shape[-1]
    label = torch.cat([own[i] for own, i in zip(gt_labels, mask_matched_idxs, strict=True)])
    cut = zip(gt_masks, proposals, mask_matched_idxs, strict=True)
    targets = torch.cat([project_masks_on_boxes(*parts, side) for parts in cut])
    if targets.numel() == 0:
        return mask_logits.sum() * 0
    own = mask_logits[torch.arange(len(label), device=label.device), label]
    return F.binary_cross_entropy_with_logits(own, targets)


def expand_boxes(boxes: Tensor, scale: float) -> Tensor:
    """Boxes (K, 4) scaled around their centres.

    Args:
        boxes: (N, 4).
        scale: by how much they grow around their centres.

    Example:
        >>> from rushlight.vision.models.detection.roi_heads import expand_boxes
        >>> expand_boxes(torch.tensor([[0.0, 0.0, 2.0, 2.0]]), 2.0)
        tensor([[-1., -1.,  3.,  3.]])
    """
    middle = (boxes[:, :2] + boxes[:, 2:]) * 0.5
    half = (boxes[:, 2:] - boxes[:, :2]) * 0.5 * scale
    return torch.cat([middle - half, middle + half], 1)


def expand_masks(mask: Tensor, padding: int) -> tuple[Tensor, float]:
    """Square masks (…, M, M) padded with zeros, and the factor by which they grew.

    Args:
        mask: (N, 1, M, M).
        padding: pixels on each side.

    For an example see `vision.models.detection.roi_heads.expand_boxes`.
    """
    side = mask.shape[-1]
    return F.pad(mask, (padding,) * 4), (side + 2 * padding) / side


def paste_mask_in_image(mask: Tensor, box: Tensor, im_h: int, im_w: int) -> Tensor:
    """Paste a mask (M, M) of an integer box into an image (im_h, im_w).

    Args:
        mask: (M, M).
        box: (4), in pixels.
        im_h, im_w: the image's height and width.

    For an example see `vision.models.detection.roi_heads.paste_masks_in_image`.
    """
    corners: list[int] = box.tolist()
    x1, y1, x2, y2 = corners
    size = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
    large = F.interpolate(mask[None, None], size=size, mode="bilinear", align_corners=False)[0, 0]
    image = mask.new_zeros((im_h, im_w))
    left, top, right, bottom = max(x1, 0), max(y1, 0), min(x2 + 1, im_w), min(y2 + 1, im_h)
    if right > left and bottom > top:
        image[top:bottom, left:right] = large[top - y1 : bottom - y1, left - x1 : right - x1]
    return image


def paste_masks_in_image(
    masks: Tensor, boxes: Tensor, img_shape: tuple[int, int], padding: int = 1
) -> Tensor:
    """Paste masks (K, 1, M, M) of boxes (K, 4) into images: (K, 1, H, W).

    Args:
        masks: (N, 1, M, M).
        boxes: (N, 4), in pixels.
        img_shape: (height, width) of the image.
        padding: pixels that are put around each mask before it is resized.

    Example:
        >>> from rushlight.vision.models.detection.roi_heads import paste_masks_in_image
        >>> masks, boxes = torch.ones(1, 1, 4, 4), torch.tensor([[1.0, 1.0, 3.0, 3.0]])
        >>> paste_masks_in_image(masks, boxes, (5, 5)).shape
        torch.Size([1, 1, 5, 5])
    """
    padded, scale = expand_masks(masks, padding)
    places = zip(padded[:, 0], expand_boxes(boxes, scale).long(), strict=True)
    pasted = [paste_mask_in_image(*place, *img_shape)[None] for place in places]
    return torch.stack(pasted) if pasted else masks.new_empty((0, 1, *img_shape))


# ---- keypoints ----


def keypoints_to_heatmap(
    keypoints: Tensor, rois: Tensor, heatmap_size: int
) -> tuple[Tensor, Tensor]:
    """Places (K, points) of keypoints in the square that a box is, and whether they are seen and
    inside.

    Args:
        keypoints: (N, K, 3).
        rois: the boxes, (N, 4).
        heatmap_size: its side.

    For an example see `vision.models.detection.keypointrcnn_resnet50_fpn`.
    """
    offset, size = rois[:, None, :2], rois[:, None, 2:] - rois[:, None, :2]
    place = ((keypoints[..., :2] - offset) * (heatmap_size / size)).floor().long()
    on_edge = keypoints[..., :2] == rois[:, None, 2:]
    place = torch.where(on_edge, heatmap_size - 1, place)
    valid = ((place >= 0) & (place < heatmap_size)).all(-1) & (keypoints[..., 2] > 0)
    flat = place[..., 1] * heatmap_size + place[..., 0]
    return flat * valid.long(), valid.long()


def heatmaps_to_keypoints(maps: Tensor, rois: Tensor) -> tuple[Tensor, Tensor]:
    """Keypoints (K, points, 3), x, y and 1, at the largest of heat maps, and the values there
    (K, points), in float32.

    Args:
        maps: (N, K, H, W).
        rois: the boxes, (N, 4).

    For an example see `vision.models.detection.keypointrcnn_resnet50_fpn`.
    """
    sizes = (rois[:, 2:] - rois[:, :2]).clamp(min=1)
    pixels: list[list[int]] = sizes.ceil().long().tolist()
    found, scores = [], []
    for heat, roi, size, (wide, tall) in zip(maps, rois, sizes, pixels, strict=True):
        large = F.interpolate(heat[None], size=(tall, wide), mode="bicubic", align_corners=False)[0]
        place = large.flatten(1).argmax(1)
        x, y = place % wide, place // wide
        at = (torch.stack((x, y), 1) + 0.5) * (
            size / torch.tensor([wide, tall], dtype=size.dtype)
        ) + roi[:2]
        found.append(torch.cat([at, torch.ones_like(at[:, :1])], 1))
        scores.append(large[torch.arange(len(large)), y, x])
    if not found:
        none = torch.zeros((0, maps.shape[1], 3), dtype=torch.float32, device=maps.device)
        return none, none[..., 0]
    return torch.stack(found).float(), torch.stack(scores).float()


def keypointrcnn_inference(x: Tensor, boxes: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """`heatmaps_to_keypoints` for the heat maps of the boxes of each image.

    Args:
        x: heat maps, (N, K, H, W).
        boxes: for each image its boxes.

    For an example see `vision.models.detection.keypointrcnn_resnet50_fpn`.
    """
    maps = x.split([len(own) for own in boxes])
    found = [heatmaps_to_keypoints(heat, own) for heat, own in zip(maps, boxes, strict=True)]
    return [points for points, _ in found], [scores for _, scores in found]


def keypointrcnn_loss(
    keypoint_logits: Tensor,
    proposals: list[Tensor],
    gt_keypoints: list[Tensor],
    keypoint_matched_idxs: list[Tensor],
) -> Tensor:
    """The loss of keypoint positions, each a choice among all positions of its box.

    Args:
        keypoint_logits: heat maps, (N, K, H, W).
        proposals: for each image its boxes.
        gt_keypoints: for each image the true keypoints.
        keypoint_matched_idxs: for each image which thing each box has.

    For an example see `vision.models.detection.keypointrcnn_resnet50_fpn`.
    """
    places, valid = [], []
    for boxes, points, matched in zip(proposals, gt_keypoints, keypoint_matched_idxs, strict=True):
        place, seen = keypoints_to_heatmap(points[matched], boxes, keypoint_logits.shape[-1])
        places.append(place.view(-1))
        valid.append(seen.view(-1))
    target, chosen = torch.cat(places), torch.cat(valid).nonzero().squeeze(1)
    if keypoint_logits.numel() == 0 or chosen.numel() == 0:
        return keypoint_logits.sum() * 0
    return F.cross_entropy(keypoint_logits.flatten(0, 1).flatten(1)[chosen], target[chosen])


class RoIHeads(nn.Module):
    """Results of each image, a dict with "boxes", "labels", "scores" and what more heads there
    are; or losses.

    Args:
        box_roi_pool, box_head, box_predictor: what cuts proposals out of maps, what follows, what
            gives results.
        fg_iou_thresh, bg_iou_thresh: overlap from which, and up to which, a proposal learns to be a
            thing, or none.
        batch_size_per_image: proposals of an image that learn.
        positive_fraction: share of things among them.
        bbox_reg_weights: factors of the moves along x, y, width and height.
        score_thresh: boxes of lower scores go.
        nms_thresh: overlap from which the worse of two boxes of a class goes.
        detections_per_img: boxes of an image at most.
        mask_roi_pool, mask_head, mask_predictor: those of masks, or None.
        keypoint_roi_pool, keypoint_head, keypoint_predictor: those of keypoints, or None.

    For an example see `vision.models.detection.fasterrcnn_resnet50_fpn`.
    """

    def __init__(
        self,
        box_roi_pool: nn.Module,
        box_head: nn.Module,
        box_predictor: nn.Module,
        fg_iou_thresh: float,
        bg_iou_thresh: float,
        batch_size_per_image: int,
        positive_fraction: float,
        bbox_reg_weights: tuple[float, float, float, float] | None,
        score_thresh: float,
        nms_thresh: float,
        detections_per_img: int,
        mask_roi_pool: nn.Module | None = None,
        mask_head: nn.Module | None = None,
        mask_predictor: nn.Module | None = None,
        keypoint_roi_pool: nn.Module | None = None,
        keypoint_head: nn.Module | None = None,
        keypoint_predictor: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.box_similarity = box_ops.box_iou
        self.proposal_matcher = _utils.Matcher(fg_iou_thresh, bg_iou_thresh)
        self.fg_bg_sampler = _utils.BalancedPositiveNegativeSampler(
            batch_size_per_image, positive_fraction
        )
        self.box_coder = _utils.BoxCoder(bbox_reg_weights or (10.0, 10.0, 5.0, 5.0))
        self.box_roi_pool, self.box_head, self.box_predictor = box_roi_pool, box_head, box_predictor
        self.score_thresh, self.nms_thresh, self.detections_per_img = (
            score_thresh,
            nms_thresh,
            detections_per_img,
        )
        self.mask_roi_pool, self.mask_head, self.mask_predictor = (
            mask_roi_pool,
            mask_head,
            mask_predictor,
        )
        self.keypoint_roi_pool, self.keypoint_head = keypoint_roi_pool, keypoint_head
        self.keypoint_predictor = keypoint_predictor

    def has_mask(self) -> bool:
        """Whether there is a head of masks."""
        return (
            self.mask_roi_pool is not None
            and self.mask_head is not None
            and self.mask_predictor is not None
        )

    def has_keypoint(self) -> bool:
        """Whether there is a head of keypoints."""
        return (
            self.keypoint_roi_pool is not None
            and self.keypoint_head is not None
            and self.keypoint_predictor is not None
        )

    def add_gt_proposals(self, proposals: list[Tensor], gt_boxes: list[Tensor]) -> list[Tensor]:
        """The proposals and the true boxes of each image."""
        return [torch.cat([own, true]) for own, true in zip(proposals, gt_boxes, strict=True)]

    def assign_targets_to_proposals(
        self, proposals: list[Tensor], gt_boxes: list[Tensor], gt_labels: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Indices of the true boxes of proposals, and classes: 0 for background, -1 for undecided
        ones.
        """
        matched, labels = [], []
        for own, boxes, classes in zip(proposals, gt_boxes, gt_labels, strict=True):
            if boxes.numel() == 0:
                number = torch.zeros(len(own), dtype=torch.int64, device=own.device)
                label = torch.zeros_like(number)
            else:
                number = self.proposal_matcher(self.box_similarity(boxes, own))
                label = classes.to(torch.int64)[number.clamp(min=0)]
                label[number == self.proposal_matcher.BELOW_LOW_THRESHOLD] = 0
                label[number == self.proposal_matcher.BETWEEN_THRESHOLDS] = -1
            matched.append(number.clamp(min=0))
            labels.append(label)
        return matched, labels

    def subsample(self, labels: list[Tensor]) -> list[Tensor]:
        """Indices of the proposals of each image that are used for training."""
        positive, negative = self.fg_bg_sampler(labels)
        return [(p | n).nonzero().squeeze(1) for p, n in zip(positive, negative, strict=True)]

    def check_targets(self, targets: list[dict[str, Tensor]] | None) -> None:
        """ValueError without targets, AssertionError if a target lacks what is trained."""
        if targets is None:
            raise ValueError("targets should not be None")
        wanted = ["boxes", "labels"]
        if self.has_mask():
            wanted.append("masks")
        for name in wanted:
            if not all(name in target for target in targets):
                raise AssertionError(f"Every element of targets should have a {name} key")

    def select_training_samples(
        self, proposals: list[Tensor], targets: list[dict[str, Tensor]] | None
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
        """A sample of proposals and true boxes of each image, what they are, and where."""
        self.check_targets(targets)
        assert targets is not None
        dtype = proposals[0].dtype
        gt_boxes = [target["boxes"].to(dtype) for target in targets]
        everything = self.add_gt_proposals(proposals, gt_boxes)
        matched, labels = self.assign_targets_to_proposals(
            everything, gt_boxes, [target["labels"] for target in targets]
        )
        kept = self.subsample(labels)
        samples, labels, matched = (
            [own[i] for own, i in zip(values, kept, strict=True)]
            for values in (everything, labels, matched)
        )
        true = []
        for boxes, number in zip(gt_boxes, matched, strict=True):
            true.append((boxes if boxes.numel() else boxes.new_zeros((1, 4)))[number])
        return samples, matched, labels, list(self.box_coder.encode(true, samples))

    def postprocess_detections(
        self,
        class_logits: Tensor,
        box_regression: Tensor,
        proposals: list[Tensor],
        image_shapes: list[tuple[int, int]],
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Boxes, scores and labels of each image: probable, not tiny, and overlapping no better
        one of their class.
        """
        counts = [len(boxes) for boxes in proposals]
        every = self.box_coder.decode(box_regression, proposals)
        # Three names: PyTorch's programs lose what goes into lists that a tuple holds.
        all_boxes: list[Tensor] = []
        all_scores: list[Tensor] = []
        all_labels: list[Tensor] = []
        of_images = every.split(counts), F.softmax(class_logits, -1).split(counts)
        for boxes, scores, shape in zip(*of_images, image_shapes, strict=True):
            boxes = box_ops.clip_boxes_to_image(boxes, shape)
            labels = (
                torch.arange(scores.shape[1], device=boxes.device).view(1, -1).expand_as(scores)
            )
            boxes, scores, labels = (
                boxes[:, 1:].reshape(-1, 4),
                scores[:, 1:].flatten(),
                labels[:, 1:].flatten(),
            )
            kept = (scores > self.score_thresh).nonzero().squeeze(1)
            kept = kept[box_ops.remove_small_boxes(boxes[kept], min_size=1e-2)]
            boxes, scores, labels = boxes[kept], scores[kept], labels[kept]
            kept = box_ops.batched_nms(boxes, scores, labels, self.nms_thresh)[
                : self.detections_per_img
            ]
            all_boxes.append(boxes[kept])
            all_scores.append(scores[kept])
            all_labels.append(labels[kept])
        return all_boxes, all_scores, all_labels

    def forward(
        self,
        features: dict[str, Tensor],
        proposals: list[Tensor],
        image_shapes: list[tuple[int, int]],
        targets: list[dict[str, Tensor]] | None = None,
    ) -> tuple[list[dict[str, Tensor]], dict[str, Tensor]]:
        """Boxes, scores and labels of each image in evaluation, and losses in training."""
        matched: list[Tensor] = []
        labels: list[Tensor] = []
        wanted: list[Tensor] = []
        if self.training:
            proposals, matched, labels, wanted = self.select_training_samples(proposals, targets)
        hidden = self.box_head(self.box_roi_pool(features, proposals, image_shapes))
        class_logits, box_regression = self.box_predictor(hidden)
        result: list[dict[str, Tensor]] = []
        losses: dict[str, Tensor] = {}
        if self.training:
            for_class, for_box = fastrcnn_loss(class_logits, box_regression, labels, wanted)
            losses = {"loss_classifier": for_class, "loss_box_reg": for_box}
            # More is learned from proposals alone that hold something.
            kept = [(label > 0).nonzero().squeeze(1) for label in labels]
            chosen = [boxes[i] for boxes, i in zip(proposals, kept, strict=True)]
            matched = [number[i] for number, i in zip(matched, kept, strict=True)]
        else:
            parts = self.postprocess_detections(
                class_logits, box_regression, proposals, image_shapes
            )
            result = [
                {"boxes": boxes, "labels": label, "scores": scores}
                for boxes, scores, label in zip(*parts, strict=True)
            ]
            chosen = [found["boxes"] for found in result]
        if (
            self.mask_roi_pool is not None
            and self.mask_head is not None
            and self.mask_predictor is not None
        ):
            hidden = self.mask_head(self.mask_roi_pool(features, chosen, image_shapes))
            logits = self.mask_predictor(hidden)
            if self.training:
                assert targets is not None
                true = [t["masks"] for t in targets], [t["labels"] for t in targets]
                losses["loss_mask"] = maskrcnn_loss(logits, chosen, *true, matched)
            else:
                own = maskrcnn_inference(logits, [found["labels"] for found in result])
                for found, masks in zip(result, own, strict=True):
                    found["masks"] = masks
        if (
            self.keypoint_roi_pool is not None
            and self.keypoint_head is not None
            and self.keypoint_predictor is not None
        ):
            hidden = self.keypoint_head(self.keypoint_roi_pool(features, chosen, image_shapes))
            logits = self.keypoint_predictor(hidden)
            if self.training:
                assert targets is not None
                points = [t["keypoints"] for t in targets]
                losses["loss_keypoint"] = keypointrcnn_loss(logits, chosen, points, matched)
            else:
                both = keypointrcnn_inference(logits, chosen)
                for found, places, scores in zip(result, *both, strict=True):
                    found["keypoints"], found["keypoints_scores"] = places, scores
        return result, losses
