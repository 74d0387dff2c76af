"""Language models that make a token at a time: networks of files, caches, samplers, tokenizers."""

from rushlight._lazy import lazy

with lazy(__name__):
    from rushlight.language.cache import KVCache
    from rushlight.language.llama import Llama, LlamaSizes
    from rushlight.language.sampling import Sampler
    from rushlight.language.tokenizer import Tokenizer

__all__ = ["KVCache", "Llama", "LlamaSizes", "Sampler", "Tokenizer"]
