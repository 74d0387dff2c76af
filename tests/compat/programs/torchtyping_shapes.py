"""Types with shapes, in torchtyping's way."""
# packages: torchtyping

import torch
from torchtyping import TensorType, patch_typeguard
from typeguard import typechecked

patch_typeguard()


@typechecked
def f(x: TensorType["batch", 3], y: TensorType["batch"]) -> TensorType["batch", 3]:
    return x * y[:, None]


print(f(torch.ones(2, 3), torch.ones(2)).shape)
try:
    f(torch.ones(2, 3), torch.ones(4))
except TypeError:
    print("TypeError")
print(isinstance(torch.ones(2, 3), TensorType[2, 3]), isinstance(torch.ones(2), TensorType[int]))
