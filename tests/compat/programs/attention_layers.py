"""Layers of attention: rotary positions, local, performer's and linformer's attention."""
# packages: rotary_embedding_torch local_attention performer_pytorch linformer

import torch
from linformer import Linformer, LinformerSelfAttention
from local_attention import LocalAttention, LocalTransformer
from performer_pytorch import FastAttention, Performer, PerformerLM
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb
from shown import show, train

torch.manual_seed(0)
rotary = RotaryEmbedding(dim=16)
q, k = torch.randn(1, 4, 32, 32, requires_grad=True), torch.randn(1, 4, 32, 32)
turned = rotary.rotate_queries_or_keys(q)
show("rotary", turned)
turned.square().sum().backward()
show("rotary grad", q.grad)
scaled = RotaryEmbedding(dim=16, use_xpos=True)
for name, t in zip("qk", scaled.rotate_queries_and_keys(q, k), strict=True):
    show(f"xpos {name}", t)
pixel = RotaryEmbedding(dim=8, freqs_for="pixel", max_freq=64)
axial = pixel.get_axial_freqs(4, 5)
show("axial", apply_rotary_emb(axial, torch.randn(2, 4, 5, 32)))
for name, t in zip("qk", rotary.rotate_queries_with_cached_keys(q[:, :, -1:], k), strict=True):
    show(f"cached {name}", t)

attend = LocalAttention(dim=16, window_size=8, causal=True, look_backward=1, autopad=True)
x = torch.randn(2, 20, 16)
mask = torch.ones(2, 20).bool()
mask[1, 15:] = False
show("local", attend(x, x, x, mask=mask))
model = LocalTransformer(num_tokens=32, dim=32, depth=2, max_seq_len=64, local_attn_window_size=8)
tokens = torch.randint(0, 32, (2, 32))
train(model, lambda: model(tokens, return_loss=True))
model.eval()
show("generated", model.generate(tokens[:, :8], 6, temperature=0.0))

fast = FastAttention(dim_heads=16, nb_features=32, causal=False)
q, k, v = torch.randn(3, 1, 2, 24, 16)
show("favor", fast(q, k, v))
model = Performer(dim=32, depth=2, heads=2, dim_head=16, nb_features=24, reversible=True)
x = torch.randn(1, 24, 32, requires_grad=True)
train(model, lambda: model(x).square().mean())
model = PerformerLM(
    num_tokens=32, max_seq_len=32, dim=32, depth=1, heads=2, dim_head=16, nb_features=24
)
train(model, lambda: model(tokens).square().mean())
model.fix_projection_matrices_()

attention = LinformerSelfAttention(dim=32, seq_len=32, heads=2, k=8, one_kv_head=True)
show("linformer", attention(torch.randn(2, 32, 32)))
model = Linformer(dim=32, seq_len=24, depth=2, heads=2, k=8, reversible=True)
train(model, lambda: model(x).square().mean())
