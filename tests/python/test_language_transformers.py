"""A network of transformers and one of a GGUF file with its weights say the same of a text."""

import subprocess
import sys

import pytest

pytest.importorskip("transformers")

# transformers runs over rushlight itself. Files of llama.cpp have the numbers of a head that are
# turned together side by side, transformers has them half a head apart.
PROGRAM = """
import rushlight.as_torch
import torch
import rushlight
from rushlight.language import Llama
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(
    hidden_size=96, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
    intermediate_size=160, vocab_size=99, max_position_embeddings=64, rms_norm_eps=1e-5,
    tie_word_embeddings={tied}, rope_parameters={rope},
)
model = LlamaForCausalLM(config).eval()
for p in model.parameters():
    p.data.mul_(3 if p.dim() == 2 else 1).add_(0.01)
metadata = {{
    "general.architecture": "llama",
    "llama.block_count": 3,
    "llama.context_length": 64,
    "llama.embedding_length": 96,
    "llama.feed_forward_length": 160,
    "llama.attention.head_count": 6,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 5000.0,
    **{said},
}}

def paired(weight, heads):
    return weight.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2)

names = {{
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}}
state = {{k: v.detach().clone() for k, v in model.state_dict().items()}}
tensors = {{
    "token_embd.weight": state["model.embed_tokens.weight"],
    "output_norm.weight": state["model.norm.weight"],
}}
if not {tied}:
    tensors["output.weight"] = state["lm_head.weight"]
for i in range(3):
    of = f"model.layers.{{i}}."
    for theirs, ours in names.items():
        tensors[f"blk.{{i}}.{{ours}}.weight"] = state[f"{{of}}{{theirs}}.weight"]
    for letter, heads in (("q", 6), ("k", 2)):
        weight = state[f"{{of}}self_attn.{{letter}}_proj.weight"]
        tensors[f"blk.{{i}}.attn_{{letter}}.weight"] = paired(weight, heads)
rushlight.gguf.save({path!r}, metadata, tensors)
net = Llama.load({path!r})
ids = torch.randint(0, 99, (1, 30))
with torch.no_grad():
    expected = model(ids).logits
    found = torch.cat([net(part) for part in ids.split([17, 1, 5, 7], 1)], 1)
    apart = (found - expected).abs().max() / expected.abs().max()
    made = model.generate(ids, max_new_tokens=12, do_sample=False, eos_token_id=None)
assert apart < 1e-5, apart
assert list(net.generate(ids[0].tolist(), 12)) == made[0, 30:].tolist()
print("same", float(expected.abs().max()) > 0.1)
"""


# How positions are scaled, in transformers' words and in those of metadata. Files have Llama 3's way as factors that
# angles are divided by.
SCALED = {
    "none": ({"rope_type": "default"}, {}, None),
    "linear": ({"rope_type": "linear", "factor": 4.0}, {"type": "linear", "factor": 4.0}, None),
    "yarn": (
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
        {"type": "yarn", "factor": 4.0, "original_context_length": 16},
        None,
    ),
    "llama3": (
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
        {},
        (8.0, 1.0, 4.0, 64),
    ),
}
FACTORS = """
angles = 5000.0 ** -(torch.arange(0, 16, 2).double() / 16)
factor, low, high, original = {llama3}
turns = original * angles / (2 * torch.pi)
smooth = ((turns - low) / (high - low)).clamp(0, 1)
tensors["rope_freqs.weight"] = 1 / ((1 - smooth) / factor + smooth)
"""


@pytest.mark.parametrize(
    ("tied", "kind"),
    [(False, "none"), (True, "none"), *((False, k) for k in SCALED if k != "none")],
)
def test_logits_are_those_of_transformers(tied, kind, tmp_path):
    rope, said, llama3 = SCALED[kind]
    said = {f"llama.rope.scaling.{k}": v for k, v in said.items()}
    code = PROGRAM.format(
        path=str(tmp_path / "net.gguf"), tied=tied, rope=rope | {"rope_theta": 5000.0}, said=said
    )
    if llama3 is not None:
        code = code.replace(
            "rushlight.gguf.save(", FACTORS.format(llama3=llama3) + "rushlight.gguf.save("
        )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.stdout.endswith("same True\n"), done.stdout + done.stderr
