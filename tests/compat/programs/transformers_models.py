"""Architectures from configurations: logits, training, saving and loading, generation."""
# packages: transformers
# cases: bert roberta distilbert albert electra deberta_v2 gpt2 gpt_neox opt llama mistral qwen2 qwen3 gemma gemma2 phi mixtral bloom falcon mamba t5 bart vit swin convnext clip whisper wav2vec2 detr resnet segformer

import sys
import tempfile

import torch
import transformers
from shown import show, train

small = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=99
)
rope = dict(small, num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0)
image = {k: v for k, v in small.items() if k != "vocab_size"}
C = transformers
CASES = {
    "bert": (C.BertConfig, small, C.BertForSequenceClassification),
    "roberta": (C.RobertaConfig, small, C.RobertaForMaskedLM),
    "distilbert": (C.DistilBertConfig, dict(dim=32, n_layers=2, n_heads=4, hidden_dim=64, vocab_size=99), C.DistilBertForMaskedLM),
    "albert": (C.AlbertConfig, dict(small, embedding_size=16), C.AlbertForMaskedLM),
    "electra": (C.ElectraConfig, dict(small, embedding_size=16), C.ElectraForMaskedLM),
    "deberta_v2": (C.DebertaV2Config, dict(small, relative_attention=True, pos_att_type=["p2c", "c2p"]), C.DebertaV2ForMaskedLM),
    "gpt2": (C.GPT2Config, dict(n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=64), C.GPT2LMHeadModel),
    "gpt_neox": (C.GPTNeoXConfig, dict(small), C.GPTNeoXForCausalLM),
    "opt": (C.OPTConfig, dict(small, ffn_dim=64, word_embed_proj_dim=32), C.OPTForCausalLM),
    "llama": (C.LlamaConfig, rope, C.LlamaForCausalLM),
    "mistral": (C.MistralConfig, dict(rope, sliding_window=8), C.MistralForCausalLM),
    "qwen2": (C.Qwen2Config, rope, C.Qwen2ForCausalLM),
    "qwen3": (C.Qwen3Config, dict(rope, head_dim=8), C.Qwen3ForCausalLM),
    "gemma": (C.GemmaConfig, dict(rope, head_dim=8), C.GemmaForCausalLM),
    "gemma2": (C.Gemma2Config, dict(rope, head_dim=8), C.Gemma2ForCausalLM),
    "phi": (C.PhiConfig, rope, C.PhiForCausalLM),
    "mixtral": (C.MixtralConfig, dict(rope, num_local_experts=4), C.MixtralForCausalLM),
    "bloom": (C.BloomConfig, dict(hidden_size=32, n_layer=2, n_head=4, vocab_size=99), C.BloomForCausalLM),
    "falcon": (C.FalconConfig, dict(small), C.FalconForCausalLM),
    "mamba": (C.MambaConfig, dict(hidden_size=32, num_hidden_layers=2, vocab_size=99, state_size=8), C.MambaForCausalLM),
    "t5": (C.T5Config, dict(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=99, decoder_start_token_id=0), C.T5ForConditionalGeneration),
    "bart": (C.BartConfig, dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=99, max_position_embeddings=64), C.BartForConditionalGeneration),
    "vit": (C.ViTConfig, dict(image, image_size=32, patch_size=8), C.ViTForImageClassification),
    "swin": (C.SwinConfig, dict(image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 4], window_size=4), C.SwinForImageClassification),
    "convnext": (C.ConvNextConfig, dict(hidden_sizes=[16, 32], depths=[1, 1], num_stages=2), C.ConvNextForImageClassification),
    "resnet": (C.ResNetConfig, dict(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic"), C.ResNetForImageClassification),
    "segformer": (C.SegformerConfig, dict(num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[16, 32], patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=32), C.SegformerForImageClassification),
    "clip": (C.CLIPConfig, dict(text_config=dict(small, max_position_embeddings=16), vision_config=dict(image, image_size=32, patch_size=8), projection_dim=16), C.CLIPModel),
    "whisper": (C.WhisperConfig, dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=99, num_mel_bins=16, max_source_positions=32, max_target_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3, suppress_tokens=None, begin_suppress_tokens=None), C.WhisperForConditionalGeneration),
    "wav2vec2": (C.Wav2Vec2Config, dict(small, conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, mask_time_prob=0.0), C.Wav2Vec2ForCTC),
    "detr": (C.DetrConfig, dict(d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_queries=5, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=C.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic", out_features=["stage2"])), C.DetrForObjectDetection),
}  # fmt: skip

name = sys.argv[1]
torch.manual_seed(0)
make_config, sizes, Model = CASES[name]
config = make_config(**sizes)
model = Model(config).eval()
show("parameters", sum(p.numel() for p in model.parameters()))

ids = torch.randint(3, 99, (2, 12))
inputs, causal = {"input_ids": ids}, hasattr(model, "generate")
if name in ("vit", "swin", "convnext", "resnet", "segformer"):
    inputs = {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([0, 1])}
elif name == "detr":
    boxes = [{"class_labels": torch.tensor([1]), "boxes": torch.rand(1, 4)} for _ in range(2)]
    inputs = {"pixel_values": torch.randn(2, 3, 64, 64)}
elif name == "clip":
    inputs = {"input_ids": ids, "pixel_values": torch.randn(2, 3, 32, 32), "return_loss": True}
elif name == "whisper":
    inputs = {"input_features": torch.randn(2, 16, 64), "labels": ids}
elif name == "wav2vec2":
    inputs = {"input_values": torch.randn(2, 800), "labels": ids[:, :5]}
elif name == "bert":
    inputs["labels"] = torch.tensor([0, 1])
    inputs["attention_mask"] = torch.ones_like(ids).index_fill(1, torch.tensor([10, 11]), 0)
else:
    inputs["labels"] = ids

with torch.no_grad():
    out = model(**inputs)
first = out.logits_per_image if name == "clip" else out.logits
show("logits", first)
if name != "detr":
    train(model, lambda: model(**inputs).loss)
else:
    train(model, lambda: model(**inputs).logits.square().mean())

model.eval()
with torch.no_grad():
    before = model(**inputs)[0]
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    again = Model.from_pretrained(folder).eval()
with torch.no_grad():
    show("same", torch.equal(before, again(**inputs)[0]))

if (
    causal
    and name != "clip"
    and Model.__name__.endswith(("LM", "LMHeadModel", "Generation"))
    and "Masked" not in Model.__name__
):
    key = "input_features" if name == "whisper" else "input_ids"
    prompt = inputs[key] if name == "whisper" else ids[:, :5]
    greedy = model.generate(prompt, max_new_tokens=6, do_sample=False)
    print("greedy", greedy.tolist())
    if name in ("gpt2", "llama", "t5"):
        torch.manual_seed(1)
        drawn = model.generate(prompt, max_new_tokens=6, do_sample=True, top_k=20, top_p=0.9)
        print("drawn", drawn.tolist())
        beams = model.generate(prompt, max_new_tokens=6, num_beams=3)
        print("beams", beams.tolist())
