"""Sentence embeddings: a model from parts, similarities, losses, training."""
# packages: sentence_transformers transformers tokenizers

import tempfile

import torch
from sentence_transformers import SentenceTransformer, losses, models, util
from shown import show
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

torch.manual_seed(0)
words = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *["a", "cat", "dog", "sat", "ran", "on", "the", "mat", "in", "park"],
]
with tempfile.TemporaryDirectory() as folder:
    tokens = Tokenizer(WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    tokens.pre_tokenizer = Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokens,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    ).save_pretrained(folder)
    BertModel(
        BertConfig(
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
            vocab_size=len(words),
        )
    ).save_pretrained(folder)
    model = SentenceTransformer(
        modules=[models.Transformer(folder), models.Pooling(32), models.Normalize()], device="cpu"
    )
    said = ["a cat sat on the mat", "the dog ran in the park", "a cat ran"]
    show("embeddings", model.encode(said, convert_to_tensor=True))
    show("similarity", model.similarity(model.encode(said), model.encode(said)))
    show(
        "search",
        float(
            util.semantic_search(
                model.encode(said[:1], convert_to_tensor=True),
                model.encode(said, convert_to_tensor=True),
                top_k=2,
            )[0][0]["score"]
        ),
    )
    loss = losses.MultipleNegativesRankingLoss(model)
    features = [model.tokenize(said), model.tokenize([s + " park" for s in said])]
    model.eval()
    value = loss(features, None)
    value.backward()
    show("loss", value)
    model.save(folder + "/saved")
    again = SentenceTransformer(folder + "/saved", device="cpu")
    show(
        "again",
        torch.allclose(
            again.encode(said, convert_to_tensor=True), model.encode(said, convert_to_tensor=True)
        ),
    )
    model.encode(said, precision="float32", batch_size=2)
