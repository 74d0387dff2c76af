"""Vector quantisation: code books of every kind, and moving averages of models."""
# packages: vector_quantize_pytorch ema_pytorch

import torch
import vector_quantize_pytorch as vq
from ema_pytorch import EMA, PostHocEMA
from shown import show, train

x = torch.randn(2, 24, 16)
makers = {
    "plain": lambda: vq.VectorQuantize(dim=16, codebook_size=32, decay=0.8),
    "kmeans": lambda: vq.VectorQuantize(dim=16, codebook_size=16, kmeans_init=True, kmeans_iters=4),
    "cosine": lambda: vq.VectorQuantize(
        dim=16, codebook_size=32, use_cosine_sim=True, threshold_ema_dead_code=2
    ),
    "heads": lambda: vq.VectorQuantize(
        dim=16, codebook_dim=8, heads=2, separate_codebook_per_head=True, codebook_size=16
    ),
    "learnable": lambda: vq.VectorQuantize(
        dim=16, codebook_size=16, learnable_codebook=True, ema_update=False
    ),
    "rotation": lambda: vq.VectorQuantize(dim=16, codebook_size=16, rotation_trick=True),
    "orthogonal": lambda: vq.VectorQuantize(
        dim=16, codebook_size=16, orthogonal_reg_weight=10, orthogonal_reg_max_codes=8
    ),
    "residual": lambda: vq.ResidualVQ(dim=16, num_quantizers=3, codebook_size=16),
    "residual soft": lambda: vq.ResidualVQ(
        dim=16, num_quantizers=2, codebook_size=16, stochastic_sample_codes=True
    ),
    "grouped": lambda: vq.GroupedResidualVQ(dim=16, num_quantizers=2, groups=2, codebook_size=16),
    "random": lambda: vq.RandomProjectionQuantizer(
        dim=16, num_codebooks=2, codebook_dim=8, codebook_size=16
    ),
    "fsq": lambda: vq.FSQ(levels=[8, 5, 5, 5], dim=16),
    "residual fsq": lambda: vq.ResidualFSQ(dim=16, levels=[5, 5, 5], num_quantizers=2),
    "lfq": lambda: vq.LFQ(codebook_size=256, dim=16, entropy_loss_weight=0.02),
    "sim": lambda: vq.SimVQ(dim=16, codebook_size=32, rotation_trick=True),
    "latent": lambda: vq.LatentQuantize(levels=[4, 4, 4, 4], dim=16, commitment_loss_weight=0.1),
}
for name, make in makers.items():
    torch.manual_seed(1)
    layer = make()
    x = torch.randn(2, 24, 16, requires_grad=True)
    out = layer(x.transpose(1, 2) if name == "latent" else x)
    out = out if isinstance(out, tuple) else (out,)
    for part in out:
        if isinstance(part, torch.Tensor):
            show(name, part)
    if out[0].is_floating_point():
        (out[0].square().sum() + sum(o.sum() for o in out[2:3])).backward()
        show(f"{name} grad", x.grad)

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
ema = EMA(net, beta=0.99, update_after_step=1, update_every=2)
post = PostHocEMA(net, sigma_rels=(0.05, 0.28), update_every=1, checkpoint_every_num_steps=2)
inputs = torch.randn(16, 4)
for _ in range(4):
    train(net, lambda: net(inputs).square().mean(), steps=1)
    ema.update()
    post.update()
show("ema", ema(inputs))
made = post.synthesize_ema_model(sigma_rel=0.15)
show("post", made(inputs))
