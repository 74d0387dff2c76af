"""Classification networks as backbones of detectors, with a feature pyramid."""

from collections.abc import Callable
from typing import Any

from rushlight import Tensor, nn

from ...ops.feature_pyramid_network import ExtraFPNBlock, FeaturePyramidNetwork, LastLevelMaxPool
from ...ops.misc import FrozenBatchNorm2d
from .. import mobilenetv3, resnet
from .._api import get_model_builder
from .._utils import IntermediateLayerGetter
from ._utils import training_layers

__all__ = ["BackboneWithFPN", "mobilenet_backbone", "resnet_fpn_backbone"]


class BackboneWithFPN(nn.Module):
    """Feature maps of a network, {layer: name}, through a `FeaturePyramidNetwork`.

    Args:
        backbone: a network.
        return_layers: a dict from names of its parts to names of maps.
        in_channels_list: channels of these maps.
        out_channels: channels of the maps that come out.
        extra_blocks: what makes further maps of the last.
        norm_layer: makes the norms; none if None.

    For an example see `vision.models.detection.backbone_utils.resnet_fpn_backbone`.
    """

    def __init__(
        self,
        backbone: nn.Module,
        return_layers: dict[str, str],
        in_channels_list: list[int],
        out_channels: int,
        extra_blocks: ExtraFPNBlock | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.body = IntermediateLayerGetter(backbone, return_layers)
        extra = LastLevelMaxPool() if extra_blocks is None else extra_blocks
        self.fpn = FeaturePyramidNetwork(in_channels_list, out_channels, extra, norm_layer)
        self.out_channels = out_channels

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """The maps of the pyramid by name."""
        return self.fpn(self.body(x))


def _resnet_fpn_extractor(
    backbone: resnet.ResNet,
    trainable_layers: int,
    returned_layers: list[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
    norm_layer: Callable[..., nn.Module] | None = None,
) -> BackboneWithFPN:
    """A pyramid on a residual network of which the last trainable_layers stages are trained."""
    if not 0 <= trainable_layers <= 5:
        raise ValueError(f"Trainable layers should be in the range [0,5], got {trainable_layers}")
    trained = ["layer4", "layer3", "layer2", "layer1", "conv1"][:trainable_layers]
    trained += ["bn1"] if trainable_layers == 5 else []
    for name, parameter in backbone.named_parameters():
        if not name.startswith(tuple(trained)):
            parameter.requires_grad_(False)
    stages = [1, 2, 3, 4] if returned_layers is None else returned_layers
    if min(stages) <= 0 or max(stages) >= 5:
        raise ValueError(f"Each returned layer should be in the range [1,4]. Got {stages}")
    names = {f"layer{stage}": str(i) for i, stage in enumerate(stages)}
    channels = [backbone.inplanes // 8 * 2 ** (stage - 1) for stage in stages]
    return BackboneWithFPN(backbone, names, channels, 256, extra_blocks, norm_layer)


def resnet50_pyramid(
    weights_backbone: Any,
    trained: bool,
    trainable: int | None,
    norm: Callable[..., nn.Module] | None = None,
    extra: Callable[[], ExtraFPNBlock] | None = None,
    **pyramid: Any,
) -> BackboneWithFPN:
    """A pyramid on the residual network of 50 layers, whose norms are frozen where it was trained
    before.

    trained: whether weights of the whole detector will be loaded; extra makes the extra blocks,
    when the network has drawn its weights; pyramid: arguments of `_resnet_fpn_extractor`.
    """
    trained = trained or weights_backbone is not None
    norm = norm or (FrozenBatchNorm2d if trained else nn.BatchNorm2d)
    network = resnet.resnet50(weights=weights_backbone, norm_layer=norm)
    stages = training_layers(trained, trainable, 5, 3)
    blocks = extra() if extra is not None else None
    return _resnet_fpn_extractor(network, stages, extra_blocks=blocks, **pyramid)


def resnet_fpn_backbone(
    *,
    backbone_name: str,
    weights: Any,
    norm_layer: Callable[..., nn.Module] = FrozenBatchNorm2d,
    trainable_layers: int = 3,
    returned_layers: list[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
) -> BackboneWithFPN:
    """A ResNet, by its name, with a feature pyramid.

    Args:
        backbone_name: such as "resnet50".
        weights: of the ResNet, or None.
        norm_layer: makes the norms; `FrozenBatchNorm2d` by default.
        trainable_layers: layers that learn, from the last: 0 to 5.
        returned_layers: layers whose results become maps: 1 to 4; all if None.
        extra_blocks: what makes further maps of the last.

    Example:
        >>> from rushlight.vision.models.detection.backbone_utils import resnet_fpn_backbone
        >>> net = resnet_fpn_backbone(backbone_name="resnet18", weights=None)
        >>> {name: tuple(x.shape) for name, x in net(torch.zeros(1, 3, 64, 64)).items()}["0"]
        (1, 256, 16, 16)
    """
    network = get_model_builder(backbone_name)(weights=weights, norm_layer=norm_layer)
    return _resnet_fpn_extractor(network, trainable_layers, returned_layers, extra_blocks)


def mobilenet_backbone(
    *,
    backbone_name: str,
    weights: Any,
    fpn: bool,
    norm_layer: Callable[..., nn.Module] = FrozenBatchNorm2d,
    trainable_layers: int = 2,
    returned_layers: list[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
) -> nn.Module:
    """A MobileNet, by its name, with a feature pyramid or one map of 256 channels.

    Args:
        backbone_name: such as "mobilenet_v3_large".
        weights: of the network, or None.
        fpn: give maps of several sizes.
        norm_layer: makes the norms; `FrozenBatchNorm2d` by default.
        trainable_layers: stages that learn, from the last: 0 to 6.
        returned_layers: stages whose results become maps.
        extra_blocks: what makes further maps of the last.

    For an example see `vision.models.detection.backbone_utils.resnet_fpn_backbone`.
    """
    network = get_model_builder(backbone_name)(weights=weights, norm_layer=norm_layer)
    return _mobilenet_extractor(network, fpn, trainable_layers, returned_layers, extra_blocks)


def frozen_mobilenet(layers: Any, trainable_layers: int) -> list[int]:
    """Where each size of a MobileNet begins, and its last layer; only the last trainable_layers of
    these are trained.
    """
    ends = [0, *(i for i, b in enumerate(layers) if getattr(b, "_is_cn", False)), len(layers) - 1]
    if not 0 <= trainable_layers <= len(ends):
        raise ValueError(
            f"Trainable layers should be in the range [0,{len(ends)}], got {trainable_layers}"
        )
    first = len(layers) if trainable_layers == 0 else ends[len(ends) - trainable_layers]
    for layer in layers[:first]:
        layer.requires_grad_(False)
    return ends


def _mobilenet_extractor(
    backbone: mobilenetv3.MobileNetV3,
    fpn: bool,
    trainable_layers: int,
    returned_layers: list[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
    norm_layer: Callable[..., nn.Module] | None = None,
) -> nn.Module:
    """A MobileNet of which the last trainable_layers sizes are trained, with a pyramid or one
    map of 256 channels.
    """
    layers = backbone.features
    ends = frozen_mobilenet(layers, trainable_layers)
    if not fpn:
        last = nn.Conv2d(layers[-1].out_channels, 256, 1)
        model = nn.Sequential(layers, last)
        model.out_channels = 256
        return model
    stages = [len(ends) - 2, len(ends) - 1] if returned_layers is None else returned_layers
    if min(stages) < 0 or max(stages) >= len(ends):
        raise ValueError(
            f"Each returned layer should be in the range [0,{len(ends) - 1}], got {stages} "
        )
    names = {f"{ends[stage]}": str(i) for i, stage in enumerate(stages)}
    channels = [layers[ends[stage]].out_channels for stage in stages]
    return BackboneWithFPN(layers, names, channels, 256, extra_blocks, norm_layer)
