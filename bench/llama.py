"""`python -m bench.llama`: a language model of 110 million weights beside llama.cpp.

Its weights are random, rounded by the package gguf and written once for both. Prompts of 128 tokens
are taken in, then 64 tokens are made one by one, on one thread; both run in turns, and the least
processor times count. The package llama-cpp-python is measured where it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import rushlight
from rushlight.language import Llama

WORDS, WIDTH, HIDDEN, HEADS, LAYERS = 32000, 768, 2048, 12, 12
METADATA = {
    "general.architecture": "llama",
    "llama.block_count": LAYERS,
    "llama.context_length": 1024,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": HIDDEN,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": HEADS,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.dimension_count": WIDTH // HEADS,
    "llama.vocab_size": WORDS,
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.ggml.unknown_token_id": 0,
}
# By name within a block: results, inputs.
MATRICES = {
    **dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), (WIDTH, WIDTH)),
    **dict.fromkeys(("ffn_gate", "ffn_up"), (HIDDEN, WIDTH)),
    "ffn_down": (WIDTH, HIDDEN),
}


def write(path: str, kind: str) -> None:
    """A file with random weights."""
    import gguf

    from rushlight.ao._gguf_weights import Stored
    from rushlight.ao._integer_weights import wrap

    rng = np.random.default_rng(0)

    def matrix(results: int, inputs: int) -> Any:
        numbers = rng.standard_normal((results, inputs), np.float32) / inputs**0.5
        made = gguf.quants.quantize(numbers, gguf.GGMLQuantizationType[kind])
        return wrap(Stored(rushlight.from_numpy(made), kind), rushlight.float32)

    bytes_of = [f"<0x{i:02X}>" for i in range(256)]
    words = ["<unk>", "<s>", "</s>", *bytes_of]
    words += [f"▁w{i}" for i in range(WORDS - len(words))]
    vocabulary = {
        "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.scores": rushlight.zeros(WORDS),
        "tokenizer.ggml.token_type": rushlight.tensor(
            [2, 3, 3, *[6] * 256, *[1] * (WORDS - 259)], dtype=rushlight.int32
        ),
    }
    tensors = {
        "token_embd.weight": matrix(WORDS, WIDTH),
        "output_norm.weight": rushlight.ones(WIDTH),
    }
    for i in range(LAYERS):
        for name, size in MATRICES.items():
            tensors[f"blk.{i}.{name}.weight"] = matrix(*size)
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{i}.{name}.weight"] = rushlight.ones(WIDTH)
    rushlight.gguf.save(path, METADATA | vocabulary, tensors)


Step = Callable[[list[int]], int]  # takes tokens in and gives the likeliest one behind them


def of_rushlight(path: str) -> tuple[Step, Callable[[], None]]:
    """A step, and what forgets all tokens."""
    rushlight.set_num_threads(1)
    net = Llama.load(path, max_len=256, cache_dtype=rushlight.float16)
    return lambda tokens: int(net.read(tokens).argmax()), net.truncate


def of_llama_cpp(path: str) -> tuple[Step, Callable[[], None]]:
    """The same of llama.cpp."""
    import llama_cpp

    how = {"n_ctx": 256, "n_threads": 1, "n_threads_batch": 1, "n_batch": 512}
    net = llama_cpp.Llama(path, verbose=False, **how)

    def step(tokens: list[int]) -> int:
        net.eval(tokens)
        logits = llama_cpp.llama_get_logits_ith(net.ctx, -1)
        return int(np.ctypeslib.as_array(logits, (WORDS,)).argmax())

    return step, net.reset


def measured(step: Step, reset: Callable[[], None], prompt: int, n: int) -> tuple[float, float]:
    """Seconds of the processor for a token of a prompt, and for one that is made."""
    reset()
    tokens = [int(i) for i in np.random.default_rng(1).integers(300, WORDS, prompt)]
    start = time.process_time()
    token = step(tokens)
    middle = time.process_time()
    for _ in range(n):
        token = step([token])
    return (middle - start) / prompt, (time.process_time() - middle) / n


def side_by_side(path: str, texts: int, prompt: int, n: int, rounds: int, dtype: str) -> float:
    """Seconds of the processor for a token of each of several texts, over their number."""
    net = Llama.load(path, max_len=256, cache_dtype=getattr(rushlight, dtype), sequences=texts)
    which = list(range(texts))
    tokens = np.random.default_rng(1).integers(300, WORDS, (texts, prompt)).tolist()
    least = float("inf")
    for _ in range(rounds):
        net.truncate()
        for i in which:
            net.read(tokens[i], i)
        last = [1] * texts
        start = time.process_time()
        for _ in range(n):
            last = [int(i) for i in net.step(last, which).argmax(-1)]
        least = min(least, (time.process_time() - start) / n / texts)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=["Q4_0", "Q8_0"])
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where files stay; by default they go")
    parser.add_argument("--texts", type=int, nargs="*", default=[], help="that are made together")
    parser.add_argument("--caches", nargs="+", default=["float16"], help="types of keys and values")
    args = parser.parse_args()
    others = [of_llama_cpp] if importlib.util.find_spec("llama_cpp") else []
    with tempfile.TemporaryDirectory() as passing:
        for kind in args.kinds:
            path = os.path.join(args.folder or passing, f"llama-110m-{kind}.gguf")
            if not os.path.exists(path):
                write(path, kind)
            for dtype in args.caches if args.texts else ():
                for texts in args.texts:
                    took = side_by_side(path, texts, args.prompt, args.tokens, args.rounds, dtype)
                    print(f"{kind} {dtype}, {texts} texts: {1 / took:.0f} made", flush=True)
            if args.texts:
                continue
            runs = {make.__name__[3:]: make(path) for make in (of_rushlight, *others)}
            found = {name: [measured(*run, args.prompt, args.tokens)] for name, run in runs.items()}
            for _ in range(args.rounds - 1):
                for name, run in runs.items():
                    found[name].append(measured(*run, args.prompt, args.tokens))
            for name, times in found.items():
                taken, made = (min(column) for column in zip(*times, strict=True))
                print(
                    f"{kind} {name}: {1 / taken:.0f} tokens/s of a prompt, {1 / made:.0f} made",
                    flush=True,
                )


if __name__ == "__main__":
    main()
