"""Networks of the architecture "llama" from files of GGUF, under llama.cpp's names of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import rushlight
from rushlight import _C, Tensor, gguf, nn
from rushlight.ao._integer_weights import IntegerWeight
from rushlight.language.cache import KVCache
from rushlight.language.positions import Scaling
from rushlight.language.sampling import Sampler

__all__ = ["Llama", "LlamaSizes"]

_AT_ONCE = 512  # tokens of a prompt
_AS_THEY_ARE = Scaling()  # positions


@dataclass(frozen=True)
class LlamaSizes:
    """What the metadata of a file says of a network.

    Args:
        layers: how many blocks there are.
        width: numbers of a token between blocks.
        hidden: numbers within a feed-forward layer.
        heads: heads of queries.
        key_heads: heads of keys and values.
        head_width: numbers of a head.
        turned: numbers of a head that are turned by the position.
        context: positions that the network was made for.
        eps: of the norms.
        base: of the frequencies of positions.
        scaling: of positions, for longer texts.

    For an example see `language.Llama`.
    """

    layers: int
    width: int
    hidden: int
    heads: int
    key_heads: int
    head_width: int
    turned: int
    context: int
    eps: float = 1e-5
    base: float = 10000.0
    scaling: Scaling = _AS_THEY_ARE

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> LlamaSizes:
        """The sizes that metadata tell of; ValueError where there is no such network."""
        architecture = metadata.get("general.architecture")
        if architecture != "llama":
            raise ValueError(f"the architecture must be 'llama', not {architecture!r}")

        def number(name: str, otherwise: Any = None, kind: Any = int) -> Any:
            value = metadata.get(f"llama.{name}", otherwise)
            if type(value) not in (int, kind) or not 0 < value < 1 << 31:
                raise ValueError(f"the metadata's llama.{name} must be a number, not {value!r}")
            return value

        heads, width = number("attention.head_count"), number("embedding_length")
        head_width = number("attention.key_length", max(1, width // heads))
        sizes = cls(
            layers=number("block_count"),
            width=width,
            hidden=number("feed_forward_length"),
            heads=heads,
            key_heads=number("attention.head_count_kv", heads),
            head_width=head_width,
            turned=number("rope.dimension_count", head_width),
            context=number("context_length"),
            eps=number("attention.layer_norm_rms_epsilon", 1e-5, float),
            base=number("rope.freq_base", 10000.0, float),
            scaling=Scaling.of(metadata, number("context_length")),
        )
        if heads % sizes.key_heads or sizes.turned > head_width or sizes.turned % 2:
            raise ValueError(f"these sizes do not go together: {sizes}")
        return sizes


class _Linear(nn.Module):
    """A linear layer of a file: a weight in blocks, or numbers."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        if isinstance(weight, IntegerWeight):
            weight.pack()
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight, self.bias)


class _Norm(nn.Module):
    def __init__(self, weight: Tensor, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.eps = eps
        self.size = tuple(weight.shape)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.rms_norm(x, self.size, self.weight, self.eps)


class _Positions(nn.Module):
    """Cosines and sines of all positions."""

    cos: Tensor
    sin: Tensor

    def __init__(self, sizes: LlamaSizes, most: int, factors: Tensor | None) -> None:
        super().__init__()
        angles = sizes.scaling.angles(sizes.turned, sizes.base)
        if factors is not None:
            angles = angles / factors.double()
        turns = rushlight.arange(most, dtype=rushlight.float64).unsqueeze(1) * angles
        size = sizes.scaling.size
        self.register_buffer("cos", (turns.cos() * size).float(), persistent=False)
        self.register_buffer("sin", (turns.sin() * size).float(), persistent=False)

    def forward(self, x: Tensor, position: Tensor) -> Tensor:
        return _C.ops._rotary(x, self.cos, self.sin, position, True)


class _Attention(nn.Module):
    def __init__(self, of: _Parts, sizes: LlamaSizes, cache: KVCache) -> None:
        super().__init__()
        inner, outer = sizes.heads * sizes.head_width, sizes.key_heads * sizes.head_width
        self.q = of.linear("attn_q", inner, sizes.width)
        self.k = of.linear("attn_k", outer, sizes.width)
        self.v = of.linear("attn_v", outer, sizes.width)
        self.output = of.linear("attn_output", sizes.width, inner)
        self.cache = cache
        self.head_width = sizes.head_width

    def forward(self, x: Tensor, positions: _Positions, sequences: Tensor | None) -> Tensor:
        def heads(y: Tensor) -> Tensor:
            return y.unflatten(-1, (-1, self.head_width)).transpose(1, 2)

        place = self.cache.length if sequences is None else self.cache.length[sequences]
        query, key = positions(heads(self.q(x)), place), positions(heads(self.k(x)), place)
        found = self.cache(query, key, heads(self.v(x)), sequences=sequences)
        return self.output(found.transpose(1, 2).flatten(2))


class _Block(nn.Module):
    def __init__(self, of: _Parts, sizes: LlamaSizes, cache: KVCache) -> None:
        super().__init__()
        self.attn_norm = of.norm("attn_norm", sizes)
        self.attention = _Attention(of, sizes, cache)
        self.ffn_norm = of.norm("ffn_norm", sizes)
        self.gate = of.linear("ffn_gate", sizes.hidden, sizes.width)
        self.up = of.linear("ffn_up", sizes.hidden, sizes.width)
        self.down = of.linear("ffn_down", sizes.width, sizes.hidden)

    def forward(self, x: Tensor, positions: _Positions, sequences: Tensor | None) -> Tensor:
        x = x + self.attention(self.attn_norm(x), positions, sequences)
        y = self.ffn_norm(x)
        return x + self.down(_C.ops._swiglu(self.gate(y), self.up(y)))


class _Parts:
    """The tensors of a file, whose sizes are checked as they are taken."""

    def __init__(self, tensors: Mapping[str, Tensor], prefix: str = "") -> None:
        self.tensors = tensors
        self.prefix = prefix

    def find(self, name: str, *size: int) -> Tensor | None:
        """A tensor of this size (-1: any), or None where there is none."""
        name = f"{self.prefix}{name}"
        found = self.tensors.get(name)
        if found is None:
            return None
        if len(found.shape) != len(size) or any(
            n not in (-1, m) for n, m in zip(size, found.shape, strict=True)
        ):
            raise ValueError(f"{name} must be of size {size}, not {tuple(found.shape)}")
        if not isinstance(found, IntegerWeight):
            if not found.dtype.is_floating_point:
                raise ValueError(f"{name} must be of floats, not of {found.dtype}")
            # A copy, so that no part of the file stays mapped for it.
            found = found.to(rushlight.float32, copy=True)
        return found

    def take(self, name: str, *size: int) -> Tensor:
        """The same, where it must be."""
        found = self.find(name, *size)
        if found is None:
            raise ValueError(f"the file has no tensor {self.prefix}{name}")
        return found

    def numbers(self, name: str, *size: int) -> Tensor:
        """The same as plain numbers."""
        found = self.take(name, *size)
        return found.dequantize() if isinstance(found, IntegerWeight) else found

    def linear(self, name: str, outputs: int, inputs: int) -> _Linear:
        """A linear layer, perhaps with a bias."""
        return _Linear(
            self.take(f"{name}.weight", outputs, inputs), self.find(f"{name}.bias", outputs)
        )

    def norm(self, name: str, sizes: LlamaSizes) -> _Norm:
        """A norm over the width."""
        return _Norm(self.numbers(f"{name}.weight", sizes.width), sizes.eps)


class Llama(nn.Module):
    """A network of the architecture "llama", with room for what it has seen.

    Texts side by side share the weights: each is as long as it is, and rows of several are
    multiplied at once. Weights in blocks are used as they are; float16 and bfloat16 become float32.

    Args:
        metadata: as `gguf.load` gives it.
        tensors: the same.
        max_len: positions that there is room for; None: those that the network was made for, at
            most 4096.
        cache_dtype: of keys and values: float32, float16, bfloat16 or int8.
        sequences: texts side by side that there is room for.
        progress: called with the number of blocks that are ready, and how many there are.

    Raises:
        ValueError: metadata and tensors are not those of such a network.

    Example:
        >>> from rushlight import gguf
        >>> from rushlight.language import Llama
        >>> network = Llama(*gguf.load("model.gguf"))  # doctest: +SKIP
    """

    def __init__(
        self,
        metadata: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        max_len: int | None = None,
        cache_dtype: Any = rushlight.float32,
        sequences: int = 1,
        progress: Callable[[int, int], Any] | None = None,
    ) -> None:
        super().__init__()
        sizes = LlamaSizes.of(metadata)
        self.sizes = sizes
        self.max_len = min(sizes.context, 4096) if max_len is None else max_len
        self.sequences = sequences
        whole = _Parts(tensors)
        embedded = whole.take("token_embd.weight", -1, sizes.width)
        self.words = embedded.shape[0]
        self.embedding = nn.Parameter(embedded, requires_grad=False)
        factors = whole.find("rope_freqs.weight", sizes.turned // 2)
        self.positions = _Positions(sizes, self.max_len, factors)
        self.blocks = nn.ModuleList()
        for i in range(sizes.layers):
            cache = KVCache(sequences, sizes.key_heads, self.max_len, sizes.head_width, cache_dtype)
            self.blocks.append(_Block(_Parts(tensors, f"blk.{i}."), sizes, cache))
            if progress is not None:
                progress(i + 1, sizes.layers)
        self.output_norm = whole.norm("output_norm", sizes)
        is_tied = "output.weight" not in tensors
        self.output = (
            _Linear(embedded, None) if is_tied else whole.linear("output", self.words, sizes.width)
        )
        self.eval()

    @classmethod
    def load(cls, path: Any, **how: Any) -> Llama:
        """The network of a file.

        Args:
            path: a file of GGUF.
            how: what the class is told beside the file.
        """
        metadata, tensors = gguf.load(path)
        # Rows of the embedding are read from the file when they are wanted, by a mapping of their
        # own: that of the other weights is let go when they are packed.
        embedding = gguf.load(path)[1].get("token_embd.weight")
        if embedding is not None:
            tensors["token_embd.weight"] = embedding
        return cls(metadata, tensors, **how)

    @property
    def seen(self) -> int:
        """How many tokens the caches hold, of the longest text."""
        return len(self.blocks[0].attention.cache)

    def truncate(self, length: int = 0, sequence: int | None = None) -> None:
        """Forget all tokens from `length` on.

        Args:
            length: of what stays.
            sequence: of which text; None: of all.
        """
        for block in self.blocks:
            block.attention.cache.truncate(length, sequence)

    def forward(
        self, tokens: Tensor, last: bool = False, sequences: Tensor | None = None
    ) -> Tensor:
        """What is said of the token after each, behind all that were given before.

        Args:
            tokens: (batch, rows) of integers.
            last: only of the last one.
            sequences: which of the texts side by side these are, integers of int64; None: all.

        Returns:
            Logits (batch, rows, words), or (batch, 1, words).
        """
        x = nn.functional.embedding(tokens, self.embedding)
        for block in self.blocks:
            x = block(x, self.positions, sequences)
        return self.output(self.output_norm(x[:, -1:] if last else x))

    def generate(
        self,
        prompt: Sequence[int],
        max_tokens: int = 256,
        sampler: Sampler | None = None,
        stop: Sequence[int] = (),
        seen: int = 0,
    ) -> Iterator[int]:
        """Tokens that go on from a prompt, one by one as they are made.

        Args:
            prompt: tokens.
            max_tokens: how many are made at most; fewer where the caches are full.
            sampler: what draws them; None: the most likely ones.
            stop: tokens that end it, and are not given.
            seen: how many tokens of the prompt the caches hold already; later ones are forgotten.

        Of texts side by side this is the first one.
        """
        if not prompt or not 0 <= seen < len(prompt):
            raise ValueError("generate: the prompt must have a token that was not seen")
        if len(prompt) > self.max_len:
            raise ValueError(
                f"generate: the prompt has {len(prompt)} tokens, and there is room for "
                f"{self.max_len}"
            )
        sampler = sampler or Sampler(temperature=0)
        self.truncate(seen, 0)
        history = list(prompt)
        logits = self.read(history[seen:])
        for i in range(max_tokens):
            token = sampler(logits, history)
            if token in stop:
                return
            history.append(token)
            yield token
            if i + 1 == max_tokens or len(history) > self.max_len:
                return
            logits = self.read([token])

    def read(self, tokens: Sequence[int], sequence: int = 0) -> Tensor:
        """The logits behind some more tokens of one text.

        Args:
            tokens: one or more.
            sequence: which of the texts side by side.
        """
        which = None if self.sequences == 1 else rushlight.tensor([sequence])
        with rushlight.inference_mode():
            for i in range(0, len(tokens), _AT_ONCE):
                part = rushlight.tensor([list(tokens[i : i + _AT_ONCE])])
                logits = self(part, last=True, sequences=which)
        return logits[0, 0]

    def step(self, tokens: Sequence[int], sequences: Sequence[int]) -> Tensor:
        """The logits behind one more token of each of several texts: (texts, words).

        Args:
            tokens: one for each text.
            sequences: which of the texts side by side.
        """
        with rushlight.inference_mode():
            column = rushlight.tensor(list(tokens)).unsqueeze(1)
            return self(column, sequences=rushlight.tensor(list(sequences)))[:, 0]
