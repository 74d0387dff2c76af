"""Operations of einx."""
# packages: einx

import einx
import torch
from shown import show

torch.manual_seed(0)
x, w = torch.randn(2, 6, 4, requires_grad=True), torch.randn(4, 8, requires_grad=True)
show("rearrange", einx.id("a (b c) d -> a d (c b)", x, b=2))
show("mean", einx.mean("a [b] d", x))
show("dot", einx.dot("a b [d], [d] e -> a b e", x, w))
show("add", einx.add("a b d, d -> a b d", x, w[:, 0]))
show("softmax", einx.softmax("a b [d]", x))
show("get", einx.get_at("a [b] d, a i -> a i d", x, torch.tensor([[0, 3], [2, 1]])))
show("flip", einx.flip("a [b] d", x))
einx.dot("a b [d], [d] e -> a b e", x, w).square().sum().backward()
show("gradient", w.grad)
