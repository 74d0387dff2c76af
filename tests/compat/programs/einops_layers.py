"""Rearranging tensors and layers that do."""
# packages: einops

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from shown import show, train

torch.manual_seed(0)
x = torch.randn(2, 3, 16, 16)
show("patches", rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4))
show("mean", reduce(x, "b c (h 2) (w 2) -> b c h w", "mean"))
show("repeat", repeat(x, "b c h w -> b c (h 2) w n", n=2))
show("einsum", einsum(x, x, "b c h w, b d h w -> b c d"))
packed, shapes = pack([x, x[..., 0]], "b c *")
show("packed", packed)
print(shapes, [tuple(t.shape) for t in unpack(packed, shapes, "b c *")])
model = torch.nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) (c p q)", p=4, q=4),
    EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=48, d=8),
    torch.nn.GELU(),
    Reduce("b t d -> b d", "max"),
    torch.nn.Linear(8, 5),
)
print(model)
train(model, lambda: model(x).logsumexp(-1).mean())
show("script", torch.jit.script(model)(x))
