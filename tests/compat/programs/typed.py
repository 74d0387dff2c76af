"""Types with shapes, checked at run time."""
# packages: jaxtyping typeguard

import torch
from jaxtyping import Float, Int, TypeCheckError, jaxtyped
from shown import show
from torch import Tensor
from typeguard import typechecked


@jaxtyped(typechecker=typechecked)
def product(a: Float[Tensor, "n k"], b: Float[Tensor, "k m"]) -> Float[Tensor, "n m"]:
    return a @ b


show("product", product(torch.ones(2, 3), torch.ones(3, 4)))
try:
    product(torch.ones(2, 3), torch.ones(4, 4))
except (TypeCheckError, TypeError) as error:
    print(type(error).__name__)
print(isinstance(torch.ones(3), Float[Tensor, "3"]), isinstance(torch.ones(3), Int[Tensor, "3"]))
print(
    isinstance(torch.ones(2, dtype=torch.int64), Int[Tensor, "..."]),
    isinstance(torch.ones(3), Float[torch.Tensor, "a b"]),
)
