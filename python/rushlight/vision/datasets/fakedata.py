"""Random pictures."""

from PIL import Image

import rushlight as torch

from .vision import Transform, VisionDataset

__all__ = ["FakeData"]


class FakeData(VisionDataset):
    """`size` pictures of random numbers and random classes, the same each time for the same
    index.

    Args:
        size: how many items there are.
        image_size: channels, height and width of a picture.
        num_classes: classes are numbers from 0 to one less.
        random_offset: is added to the index before it seeds the numbers, so that sets differ.

    Example:
        >>> data = torch.vision.datasets.FakeData(size=3, image_size=(3, 8, 8), num_classes=5)
        >>> len(data), data[0][0].size, data[0] == data[0]
        (3, (8, 8), True)
    """

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Transform = None,
        target_transform: Transform = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(transform=transform, target_transform=target_transform)
        self.size, self.num_classes, self.image_size = size, num_classes, image_size
        self.random_offset = random_offset

    def __getitem__(self, index: int):
        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range")
        state = torch.get_rng_state()
        torch.manual_seed(index + self.random_offset)
        image = torch.randn(*self.image_size)
        target = torch.randint(0, self.num_classes, size=(1,), dtype=torch.long)[0]
        torch.set_rng_state(state)
        pixels = image.mul(255).byte().permute(1, 2, 0).squeeze(-1).numpy()
        return self._apply(Image.fromarray(pixels), target.item())

    def __len__(self) -> int:
        return self.size
