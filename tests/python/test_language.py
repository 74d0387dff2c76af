"""Language models: networks of GGUF files beside the formula, caches, samplers, tokenizers."""

import copy

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.language import KVCache, Llama, LlamaSizes, Sampler, Tokenizer
from tests.python import choices
from tests.python.test_gguf import weight

WORDS, WIDTH, HIDDEN, HEADS, KEY_HEADS, LAYERS = 60, 256, 512, 8, 2, 3
METADATA = {
    "general.architecture": "llama",
    "llama.block_count": LAYERS,
    "llama.context_length": 64,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": HIDDEN,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KEY_HEADS,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 500.0,
}


def sizes_of_tensors():
    outer = WIDTH // HEADS * KEY_HEADS
    block = {
        "attn_q": (WIDTH, WIDTH),
        "attn_k": (outer, WIDTH),
        "attn_v": (outer, WIDTH),
        "attn_output": (WIDTH, WIDTH),
        "ffn_gate": (HIDDEN, WIDTH),
        "ffn_up": (HIDDEN, WIDTH),
        "ffn_down": (WIDTH, HIDDEN),
        "attn_norm": (WIDTH,),
        "ffn_norm": (WIDTH,),
    }
    made = {f"blk.{i}.{name}.weight": size for i in range(LAYERS) for name, size in block.items()}
    made["token_embd.weight"] = made["output.weight"] = (WORDS, WIDTH)
    return made | {"output_norm.weight": (WIDTH,)}


def tensors(kind=None):
    """Random weights, as numbers or in blocks."""
    torch.manual_seed(0)
    made = {}
    for name, size in sizes_of_tensors().items():
        if len(size) == 1:
            made[name] = torch.rand(size) + 0.5
        else:
            made[name] = torch.randn(size) * 0.06 if kind is None else weight(kind, *size)
    return made


def network(kind=None, **how):
    return Llama(METADATA, tensors(kind), **how)


def expected_logits(numbers, tokens, base=500.0):
    """The whole sequence at once, in float64, with angles as complex numbers."""
    n = {name: t.double() for name, t in numbers.items()}
    width = WIDTH // HEADS

    def norm(x, w):
        return x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * w

    def heads(x, rotate=True):
        x = x.unflatten(-1, (-1, width)).transpose(0, 1)
        if not rotate:
            return x
        angles = base ** -(torch.arange(0, width, 2).double() / width)
        turns = torch.arange(x.shape[1]).double().unsqueeze(1) * angles
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
        turned = pairs * torch.polar(torch.ones_like(turns), turns)
        return torch.view_as_real(turned).flatten(-2)

    x = n["token_embd.weight"][tokens]
    for i in range(LAYERS):
        w = {k.split(".")[2]: t for k, t in n.items() if k.startswith(f"blk.{i}.")}
        y = norm(x, w["attn_norm"])
        q, k = heads(y @ w["attn_q"].t()), heads(y @ w["attn_k"].t())
        v = heads(y @ w["attn_v"].t(), rotate=False)
        k, v = (t.repeat_interleave(HEADS // KEY_HEADS, 0) for t in (k, v))
        scores = q @ k.transpose(1, 2) / width**0.5
        hidden = torch.ones(len(tokens), len(tokens), dtype=torch.bool).triu(1)
        y = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
        x = x + y.transpose(0, 1).flatten(1) @ w["attn_output"].t()
        y = norm(x, w["ffn_norm"])
        y = nn.functional.silu(y @ w["ffn_gate"].t()) * (y @ w["ffn_up"].t())
        x = x + y @ w["ffn_down"].t()
    return norm(x, n["output_norm.weight"]) @ n["output.weight"].t()


TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4]


@pytest.mark.parametrize("parts", [[20], [1] * 20, [8, 7, 5], [12, 1, 1, 6]])
def test_logits_are_those_of_the_formula_however_tokens_come(parts):
    net = network()
    expected = expected_logits(tensors(), torch.tensor(TOKENS))
    found = [net(part.unsqueeze(0)) for part in torch.tensor(TOKENS).split(parts)]
    found = torch.cat(found, 1)[0].double()
    assert (found - expected).abs().max() < 1e-4 * expected.abs().max()
    assert net.seen == 20


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q4_K", "Q6_K"])
def test_weights_in_blocks_are_near_their_numbers(kind):
    held = tensors(kind)
    net = Llama(METADATA, held)
    numbers = {k: t.dequantize() if t.dim() == 2 else t for k, t in held.items()}
    expected = expected_logits(numbers, torch.tensor(TOKENS))
    found = net(torch.tensor([TOKENS]))[0].double()
    assert (found - expected).abs().max() < 0.08 * expected.abs().max()


def test_files_are_networks(tmp_path):
    path, steps = tmp_path / "net.gguf", []
    held = tensors("Q4_K")
    torch.gguf.save(path, METADATA, held)
    net = Llama.load(path, progress=lambda *step: steps.append(step))
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert torch.equal(net(torch.tensor([TOKENS])), Llama(METADATA, held)(torch.tensor([TOKENS])))
    assert "cache" not in "".join(net.state_dict())
    del held["output.weight"]  # then it is the embedding
    tied = Llama(METADATA, held)
    held["output.weight"] = held["token_embd.weight"]
    assert torch.equal(tied(torch.tensor([[1]])), Llama(METADATA, held)(torch.tensor([[1]])))


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_K"])
def test_texts_side_by_side_are_as_if_alone(kind):
    held = tensors(kind)
    net = Llama(METADATA, held, sequences=3)
    alone = [Llama(METADATA, held) for _ in range(3)]
    texts_of = {0: [3, 1, 4], 1: [1, 5, 9, 2, 6, 5, 3, 5, 8, 9], 2: [7]}
    for i, tokens in texts_of.items():
        assert torch.equal(net.read(tokens, i), alone[i].read(tokens))
    for which in ([0, 1, 2], [2, 0], [1], [1, 2, 0]):
        found = net.step([i + 10 for i in which], which)
        for row, i in zip(found, which, strict=True):
            assert torch.equal(row, alone[i].read([i + 10]))
    net.truncate(2, 1)
    alone[1].truncate(2)
    assert torch.equal(net.step([4], [1])[0], alone[1].read([4]))
    assert list(net.generate(TOKENS, 5)) == list(Llama(METADATA, held).generate(TOKENS, 5))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int8])
def test_caches_may_have_few_bits(dtype):
    net, half = network(), network(cache_dtype=dtype)
    for part in ([TOKENS], [[7]]):
        a, b = net(torch.tensor(part)), half(torch.tensor(part))
        assert 0 < (a - b).abs().max() < 0.05 * a.abs().max()


@pytest.mark.parametrize(
    ("said", "angles"),
    [
        ({}, [1.0, 0.1, 0.01, 0.001]),
        ({"scale_linear": 4.0}, [0.25, 0.025, 0.0025, 0.00025]),
        ({"scaling.type": "linear", "scaling.factor": 2}, [0.5, 0.05, 0.005, 0.0005]),
        # In 1024 positions the pairs turn 163, 16.3, 1.6 and 0.16 times; pairs 0.7 and 2.2 turn 32
        # times and once, and from the whole numbers about them on angles stay or are scaled.
        (
            {
                "scaling.type": "yarn",
                "scaling.factor": 4.0,
                "scaling.original_context_length": 1024,
            },
            [1.0, 0.1 * (2 / 3 + 1 / 3 / 4), 0.01 * (1 / 3 + 2 / 3 / 4), 0.00025],
        ),
    ],
)
def test_positions_are_scaled_as_the_metadata_say(said, angles):
    metadata = METADATA | {f"llama.rope.{k}": v for k, v in said.items()}
    scaling = LlamaSizes.of(metadata).scaling
    assert scaling.angles(8, 10000.0).tolist() == pytest.approx(angles)
    is_yarn = said.get("scaling.type") == "yarn"
    assert scaling.size == pytest.approx(1.138629 if is_yarn else 1)
    held = tensors()
    assert torch.isfinite(Llama(metadata, held)(torch.tensor([TOKENS]))).all()


def test_files_that_are_no_such_network_are_refused():
    held = tensors()
    for change, message in (
        ({"general.architecture": "bert"}, "must be 'llama', not 'bert'"),
        ({"llama.block_count": "3"}, "llama.block_count must be a number"),
        ({"llama.attention.head_count": 0}, "head_count must be"),
        ({"llama.attention.head_count_kv": 3}, "do not go together"),
        ({"llama.rope.scaling.type": "longrope"}, "in the way 'longrope'"),
        ({"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": -1}, "scaling.factor"),
        ({"llama.block_count": 4}, r"no tensor blk.3.attn_norm.weight"),
        ({"llama.feed_forward_length": 511}, r"ffn_gate.weight must be of size \(511, 256\)"),
    ):
        with pytest.raises(ValueError, match=message):
            Llama(METADATA | change, held)
    with pytest.raises(ValueError, match="must be of floats"):
        Llama(METADATA, held | {"output.weight": torch.ones(WORDS, WIDTH).int()})
    with pytest.raises(ValueError, match="has no tensor output_norm.weight"):
        Llama(METADATA, {k: t for k, t in held.items() if k != "output_norm.weight"})
    assert LlamaSizes.of(METADATA).head_width == 32


# ---- making tokens ----


def likeliest(net, prompt, n):
    tokens = list(prompt)
    for _ in range(n):
        net.truncate()
        tokens.append(int(net(torch.tensor([tokens]))[0, -1].argmax()))
    return tokens[len(prompt) :]


def test_tokens_come_one_by_one():
    net = network()
    expected = likeliest(net, TOKENS, 6)
    assert list(net.generate(TOKENS, 6)) == expected
    stream = net.generate(TOKENS, 6)
    assert [next(stream), next(stream)] == expected[:2]
    assert net.seen == len(TOKENS) + 1
    # What is in the caches is not computed again, and later tokens are forgotten.
    assert list(net.generate(TOKENS, 6, seen=len(TOKENS) - 3)) == expected
    assert (
        list(net.generate(TOKENS, 6, stop=[expected[3]])) == expected[: expected.index(expected[3])]
    )
    assert len(list(net.generate(TOKENS, 1000))) == 64 - len(TOKENS) + 1
    for bad in ([], [0] * 65):
        with pytest.raises(ValueError, match="generate: the prompt"):
            list(net.generate(bad))


def test_draws_follow_from_the_generator():
    net = network()
    draws = [
        list(net.generate([1, 2], 20, Sampler(generator=torch.Generator().manual_seed(seed))))
        for seed in (1, 1, 2)
    ]
    assert draws[0] == draws[1] != draws[2]


def frequencies(sampler, logits, n=3000):
    counts = torch.bincount(
        torch.tensor([sampler(logits) for _ in range(n)]), minlength=len(logits)
    )
    return counts / n


def test_samplers_keep_what_the_limits_say():
    logits = torch.tensor([0.0, 1.0, 2.0, 3.0])
    generator = torch.Generator().manual_seed(0)
    for how, likely in (
        ({"temperature": 1.0, "top_k": 0, "top_p": 1.0}, logits.softmax(0)),
        ({"temperature": 2.0, "top_k": 0, "top_p": 1.0}, (logits / 2).softmax(0)),
        ({"temperature": 1.0, "top_k": 2, "top_p": 1.0}, torch.tensor([0, 0, 0.2689, 0.7311])),
        ({"temperature": 1.0, "top_k": 0, "top_p": 0.7}, torch.tensor([0, 0, 0.2689, 0.7311])),
        ({"temperature": 1.0, "top_k": 0, "top_p": 0.6}, torch.tensor([0, 0, 0, 1.0])),
        ({"temperature": 1.0, "top_k": 3, "top_p": 0.0}, torch.tensor([0, 0, 0, 1.0])),
    ):
        found = frequencies(Sampler(**how, generator=generator), logits)
        assert (found - likely).abs().max() < 0.04
        assert (found[likely == 0] == 0).all()
    less = Sampler(temperature=0, repetition_penalty=4)
    assert less(logits, [3, 3]) == 2 and less(-logits - 1, [0]) == 1
    for bad in ({"temperature": -1}, {"top_k": -1}, {"top_p": 2}, {"repetition_penalty": 0}):
        with pytest.raises(ValueError, match="Sampler"):
            Sampler(**bad)


# ---- caches ----


@pytest.mark.parametrize("rows", [1, 3, 8, 9, 20])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_caches_attend_as_attention_over_the_whole_does(rows, dtype):
    cache = KVCache(2, 3, 60, 16, dtype)
    query, key, value = (torch.randn(2, heads, 40, 16).to(dtype).float() for heads in (6, 3, 3))
    found = torch.cat(
        [
            cache(*parts)
            for parts in zip(*(t.split(rows, 2) for t in (query, key, value)), strict=True)
        ],
        2,
    )
    expected = nn.functional.scaled_dot_product_attention(
        query, key, value, is_causal=True, enable_gqa=True
    )
    assert torch.allclose(found, expected, atol=1e-5)
    assert len(cache) == 40 and cache.room == 20
    assert torch.equal(cache.keys[:, :, :40].float(), key)
    assert cache.keys[:, :, 40:].abs().max() == 0
    with pytest.raises(IndexError, match="no room for 21"):
        cache(*(torch.zeros(2, heads, 21, 16) for heads in (6, 3, 3)))
    assert len(cache) == 40
    cache.truncate(7)
    assert len(copy.deepcopy(cache)) == 7 and not cache.state_dict()
    with pytest.raises(ValueError, match=r"\[7, 7\] positions cannot be cut to 8"):
        cache.truncate(8)
    with pytest.raises(ValueError, match="dtype must be"):
        KVCache(1, 1, 1, 1, torch.float64)


@pytest.mark.parametrize("rows", [1, 8, 9, 30])
@pytest.mark.parametrize("width", [7, 64])
def test_codes_of_a_cache_are_near_its_numbers(rows, width):
    torch.manual_seed(0)
    cache = KVCache(2, 3, 60, width, torch.int8)
    query, key, value = (torch.randn(2, heads, rows, width) for heads in (6, 3, 3))
    key[0, 0, 0], value[1, 1, -1] = 0, 0  # rows without a largest number
    found = cache(query, key, value)
    expected = nn.functional.scaled_dot_product_attention(
        query, key, value, is_causal=True, enable_gqa=True
    )
    # A number is at most half a step from its code, and a step is a 127th of the largest one.
    held_keys, held_values = (
        cache._numbers(t[:, :, :rows].contiguous()) for t in (cache.keys, cache.values)
    )
    for held, given in ((held_keys, key), (held_values, value)):
        step = given.abs().amax(-1, keepdim=True) / 127
        assert ((held - given).abs() <= 0.501 * step).all()
    exact = nn.functional.scaled_dot_product_attention(
        query, held_keys, held_values, is_causal=True, enable_gqa=True
    )
    assert torch.allclose(found, exact, atol=1e-5)
    assert (found - expected).abs().max() < 0.03 * expected.abs().max()


def test_few_and_many_rows_have_the_same_codes():
    key = torch.randn(1, 2, 24, 33) * 10 ** torch.linspace(-30, 30, 24).unsqueeze(1)
    key[0, 0, 3], key[0, 1, 4] = 0, torch.nan
    few, many = (KVCache(1, 2, 24, 33, torch.int8) for _ in range(2))
    many(key, key, key)
    for part in key.split(8, 2):
        few(part, part, part)
    assert torch.equal(few.keys, many.keys) and torch.equal(few.values, many.values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8])
def test_sequences_side_by_side_are_as_if_alone(dtype):
    torch.manual_seed(0)
    whole = KVCache(4, 2, 40, 16, dtype)
    alone = [KVCache(1, 2, 40, 16, dtype) for _ in range(4)]
    for which, rows in (([2], 12), ([0, 3], 5), ([2, 0], 1), ([1, 3, 2], 9), ([3, 2, 1, 0], 2)):
        parts = [torch.randn(len(which), heads, rows, 16) for heads in (6, 2, 2)]
        found = whole(*parts, sequences=torch.tensor(which))
        for i, one in enumerate(which):
            assert torch.equal(found[i : i + 1], alone[one](*(t[i : i + 1] for t in parts)))
    assert whole.length.tolist() == [len(cache) for cache in alone] == [8, 11, 24, 16]
    whole.truncate(3, 2)
    assert whole.length.tolist() == [8, 11, 3, 16]
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        whole(*(torch.zeros(1, 2, 1, 16) for _ in range(3)), sequences=torch.tensor([4]))


def test_bits_need_not_depend_on_how_a_prompt_is_cut():
    held = tensors()
    whole = Llama(METADATA, held)(torch.tensor([TOKENS]))[:, -1]
    try:
        torch.use_batch_invariant(True)
        cuts = [[20], [8, 12], [1] * 20, [9, 1, 10]]
        found = []
        for parts in cuts:
            net = Llama(METADATA, held, sequences=2)
            net.read([5] * 7, 1)
            begin = 0
            for n in parts:
                logits = net.read(TOKENS[begin : begin + n], 0)
                begin += n
            found.append(logits)
    finally:
        torch.use_batch_invariant(False)
    assert all(torch.equal(found[0], other) for other in found)
    assert torch.allclose(found[0], whole[0], atol=1e-4)


_CACHED = """
import hashlib
from rushlight.language import KVCache
torch.set_num_threads({threads})
torch.manual_seed(0)
found = b""
for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int8):
    cache = KVCache(3, 2, 100, 24, dtype)
    for which, rows in (([1], 70), ([0, 1, 2], 8), ([2, 0], 1)):
        parts = [torch.randn(len(which), heads, rows, 24) for heads in (8, 2, 2)]
        found += cache(*parts, sequences=torch.tensor(which)).numpy().tobytes()
print(hashlib.sha256(found).hexdigest())
"""


def test_bits_of_caches_do_not_depend_on_threads():
    assert len({choices.run(_CACHED.format(threads=n))[0] for n in (1, 2, 3, 5)}) == 1


_BITS = """
import hashlib
from tests.python.test_language import TOKENS, network
torch.set_num_threads({threads})
net = network("Q4_K")
outs = [net(torch.tensor([part])) for part in (TOKENS, [1], [2, 3])]
print(hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in outs)).hexdigest())
"""


def test_bits_do_not_depend_on_threads():
    assert len({choices.run(_BITS.format(threads=n))[0] for n in (1, 2, 3, 5)}) == 1


# ---- tokens ----


def pieces(*words, **more):
    """A vocabulary of SentencePiece: longer words are likelier; bytes and tokens of control beside."""
    fixed = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    types = [2, 3, 3, *[6] * 256, *[1] * len(words)]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [*fixed, *words],
        "tokenizer.ggml.scores": torch.tensor([0.0] * len(fixed) + [float(len(w)) for w in words]),
        "tokenizer.ggml.token_type": torch.tensor(types, dtype=torch.int32),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    } | {f"tokenizer.ggml.{k}": v for k, v in more.items()}


def texts(tokenizer, tokens):
    return [tokenizer.tokens[i] for i in tokens]


def test_pieces_are_joined_by_their_scores():
    tokenizer = Tokenizer(
        pieces("▁", "h", "e", "l", "o", "he", "ll", "llo", "hello", "▁hello", "▁he")
    )
    assert texts(tokenizer, tokenizer.encode("hello")) == ["▁hello"]
    found = texts(tokenizer, tokenizer.encode("hellh loll", bos=True))
    assert found == ["<s>", "▁he", "ll", "h", "▁", "l", "o", "ll"]
    assert texts(tokenizer, tokenizer.encode("é")) == ["▁", "<0xC3>", "<0xA9>"]
    assert texts(tokenizer, tokenizer.encode("</s>he", special=True)) == ["</s>", "▁he"]
    assert "</s>" not in texts(tokenizer, tokenizer.encode("</s>"))
    assert tokenizer.encode("") == [] and tokenizer.ends == {2}
    for text in ("hello", "naïve  hello\n", "日本語 🙂", " x"):
        assert tokenizer.decode(tokenizer.encode(text, bos=True)) == text
    plain = Tokenizer(pieces("▁", "h", "e", "he", add_space_prefix=False))
    assert texts(plain, plain.encode("he")) == ["he"]


def bytes_vocabulary(pre="gpt-2", merges=()):
    from rushlight.language.tokenizer import _letters_of_bytes

    tokens = [*_letters_of_bytes().values(), *(m.replace(" ", "") for m in merges), "<|end|>"]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": list(merges),
        "tokenizer.ggml.token_type": torch.tensor([1] * (len(tokens) - 1) + [3], dtype=torch.int32),
        "tokenizer.ggml.eos_token_id": len(tokens) - 1,
    }


def test_bytes_are_merged_in_their_order():
    tokenizer = Tokenizer(bytes_vocabulary(merges=["l l", "h e", "ll o", "he llo", "Ġ hello"]))
    assert texts(tokenizer, tokenizer.encode("hello hello he")) == ["hello", "Ġhello", "Ġ", "he"]
    assert texts(tokenizer, tokenizer.encode("he<|end|>", special=True)) == ["he", "<|end|>"]
    for text in ("hello", "naïve  hello\n", "日本語 🙂", "\x00 \x1f"):
        assert tokenizer.decode(tokenizer.encode(text)) == text


CUTS = "I'll say: naïve 12345 日本語!!\n\n  two\tthree   \r\n x² 'S don't½ _a_ end  "


@pytest.mark.parametrize("pre", ["gpt-2", "llama-bpe", "qwen2"])
def test_words_are_cut_as_the_package_tokenizers_cuts_them(pre):
    tokenizers = pytest.importorskip("tokenizers")
    endings = r"'s|'t|'re|'ve|'m|'ll|'d"
    more = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    pattern = {
        "gpt-2": rf"{endings}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+",
        "llama-bpe": f"(?i:{endings})|" + more % "{1,3}",
        "qwen2": f"(?i:{endings})|" + more % "",
    }[pre]
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
    tokenizer = Tokenizer(bytes_vocabulary(pre))
    rng = np.random.default_rng(0)
    drawn = ["".join(rng.choice(list(CUTS + "\u00a0\u2028\x85ǅª"), 30)) for _ in range(300)]
    for text in (CUTS, *drawn):
        assert list(tokenizer._words(text)) == [word for word, _ in split.pre_tokenize_str(text)]


def test_vocabularies_that_do_not_hold_together_are_refused():
    good = pieces("a")
    for change, message in (
        ({"model": "bert"}, "must have a vocabulary"),
        ({"tokens": []}, "must have a vocabulary"),
        ({"scores": torch.zeros(3)}, "scores must be 260 numbers"),
        ({"eos_token_id": 260}, "eos_token_id must be one of 260"),
        ({"model": "gpt2"}, "needs merges"),
        ({"model": "gpt2", "merges": [], "pre": "other"}, "not as 'other'"),
    ):
        with pytest.raises(ValueError, match=message):
            Tokenizer(good | {f"tokenizer.ggml.{k}": v for k, v in change.items()})
    with pytest.raises(ValueError, match="may have 1048576 characters"):
        Tokenizer(good).encode("a" * ((1 << 20) + 1))
