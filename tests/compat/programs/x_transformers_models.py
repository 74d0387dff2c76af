"""Decoders, encoders and their options."""
# packages: x_transformers

import torch
from shown import show, train
from x_transformers import (
    AutoregressiveWrapper,
    Decoder,
    Encoder,
    TransformerWrapper,
    ViTransformerWrapper,
    XTransformer,
)

torch.manual_seed(0)
ids = torch.randint(0, 99, (2, 16))
for options in (
    dict(rotary_pos_emb=True),
    dict(alibi_pos_bias=True, use_rmsnorm=True),
    dict(ff_glu=True, attn_flash=True),
    dict(rel_pos_bias=True, attn_qk_norm=True),
):
    model = TransformerWrapper(
        num_tokens=99, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=2, **options)
    )
    wrapped = AutoregressiveWrapper(model)
    train(wrapped, lambda: wrapped(ids))
show("logits", model(ids))
print(wrapped.generate(ids[:, :4], 6, temperature=0.0).tolist())
vit = ViTransformerWrapper(
    image_size=32, patch_size=8, num_classes=5, attn_layers=Encoder(dim=32, depth=1, heads=2)
)
show("vit", vit(torch.randn(1, 3, 32, 32)))
pair = XTransformer(
    dim=32,
    enc_num_tokens=50,
    enc_depth=1,
    enc_heads=2,
    enc_max_seq_len=16,
    dec_num_tokens=50,
    dec_depth=1,
    dec_heads=2,
    dec_max_seq_len=16,
)
pair_loss = pair(torch.randint(50, (1, 8)), torch.randint(50, (1, 8)))
pair_loss.backward()
show("pair", pair_loss)
