"""Adapters on a small model: training, merging, saving."""
# packages: peft transformers
# cases: lora dora ia3 prompt prefix adalora loha lokr oft vera boft

import sys
import tempfile

import peft
import torch
from shown import show, train
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=64,
    vocab_size=99,
)
base = LlamaForCausalLM(config)
kind = {"task_type": "CAUSAL_LM"}
on = dict(kind, target_modules=["q_proj", "v_proj"])
made = {
    "lora": lambda: peft.LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, **on),
    "dora": lambda: peft.LoraConfig(r=4, use_dora=True, **on),
    "ia3": lambda: peft.IA3Config(feedforward_modules=[], **on),
    "prompt": lambda: peft.PromptTuningConfig(num_virtual_tokens=3, **kind),
    "prefix": lambda: peft.PrefixTuningConfig(num_virtual_tokens=3, **kind),
    "adalora": lambda: peft.AdaLoraConfig(total_step=20, tinit=2, tfinal=4, **on),
    "loha": lambda: peft.LoHaConfig(r=4, **on),
    "lokr": lambda: peft.LoKrConfig(r=4, **on),
    "oft": lambda: peft.OFTConfig(r=0, oft_block_size=8, **on),
    "vera": lambda: peft.VeraConfig(r=4, **dict(on, target_modules=["q_proj"])),
    "boft": lambda: peft.BOFTConfig(boft_block_size=4, **on),
}[sys.argv[1]]()
model = peft.get_peft_model(base, made)
print(model.get_nb_trainable_parameters())
ids = torch.randint(3, 99, (2, 9))
train(model, lambda: model(input_ids=ids, labels=ids).loss, lr=1e-2)
model.eval()
with torch.no_grad():
    logits = model(input_ids=ids).logits
    show("logits", logits)
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    torch.manual_seed(0)
    again = peft.PeftModel.from_pretrained(LlamaForCausalLM(config), folder).eval()
with torch.no_grad():
    show("same", torch.allclose(again(input_ids=ids).logits, logits, atol=1e-5))
if sys.argv[1] in ("lora", "dora", "ia3", "loha", "lokr", "oft", "vera"):
    merged = model.merge_and_unload()
    with torch.no_grad():
        show("merged", torch.allclose(merged(input_ids=ids).logits, logits, atol=1e-3))
