"""Schedules, cache classes, attention implementations, gradient checkpointing, bf16, quantities."""
# packages: transformers

import torch
from shown import show, train
from transformers import LlamaConfig, LlamaForCausalLM, get_cosine_schedule_with_warmup
from transformers.cache_utils import DynamicCache, StaticCache

torch.manual_seed(0)
config = LlamaConfig(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=64,
    vocab_size=99,
)
model = LlamaForCausalLM(config)
ids = torch.randint(3, 99, (2, 9))
for kind in ("eager", "sdpa"):
    model.set_attn_implementation(kind)
    with torch.no_grad():
        show(kind, model(ids).logits)
cache = DynamicCache(config=config)
with torch.no_grad():
    model(ids[:, :6], past_key_values=cache, use_cache=True)
    show("cached", model(ids[:, 6:], past_key_values=cache).logits)
    print("length", cache.get_seq_length())
    static = StaticCache(config=config, max_cache_len=16)
    places = torch.arange(6)
    show("static", model(ids[:, :6], past_key_values=static, cache_position=places).logits)
model.gradient_checkpointing_enable()
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = get_cosine_schedule_with_warmup(optimizer, 2, 10)
train(model, lambda: model(ids, labels=ids).loss, optimizer=optimizer)
for _ in range(3):
    schedule.step()
show("lr", schedule.get_last_lr()[0])
half = LlamaForCausalLM(config).to(torch.bfloat16).eval()
with torch.no_grad():
    print("half", half(ids).logits.dtype, half(ids).logits.shape)
mask = torch.ones_like(ids)
mask[0, :3] = 0
model.eval()
print(
    model.generate(
        ids, attention_mask=mask, max_new_tokens=5, do_sample=False, pad_token_id=0
    ).tolist()
)
print(
    model.generate(
        ids, max_new_tokens=4, do_sample=False, cache_implementation="static", pad_token_id=0
    ).tolist()
)
