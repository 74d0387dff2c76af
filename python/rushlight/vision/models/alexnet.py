"""AlexNet (Krizhevsky 2014)."""

from rushlight import Tensor, nn

from ._api import builder, weights_enum


class AlexNet(nn.Module):
    """Images (N, 3, H, W), usually of 224², to scores (N, num_classes).

    Args:
        num_classes: how many scores there are.
        dropout: the probability with which numbers before the linear layers become 0.

    Example:
        >>> with torch.device("meta"):  # shapes alone
        ...     scores = torch.vision.models.AlexNet(num_classes=10)(torch.empty(2, 3, 224, 224))
        >>> scores.shape
        torch.Size([2, 10])
    """

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        convs = ((3, 64, 11, 4, 2, True), (64, 192, 5, 1, 2, True), (192, 384, 3, 1, 1, False))
        for inputs, outputs, kernel, stride, padding, pool in (
            *convs,
            (384, 256, 3, 1, 1, False),
            (256, 256, 3, 1, 1, True),
        ):
            layers += [nn.Conv2d(inputs, outputs, kernel, stride, padding), nn.ReLU(inplace=True)]
            layers += [nn.MaxPool2d(3, 2)] if pool else []
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout),
            nn.Linear(256 * 6 * 6, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Linear(4096, num_classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


AlexNet_Weights = weights_enum("AlexNet_Weights", __name__)
alexnet = builder("alexnet", AlexNet_Weights, AlexNet, module=__name__)

__all__ = ["AlexNet", "AlexNet_Weights", "alexnet"]
