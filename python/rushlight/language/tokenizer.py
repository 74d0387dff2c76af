"""`Tokenizer`: text as tokens and back, by the vocabulary that a GGUF file has."""

from __future__ import annotations

import heapq
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import rushlight

__all__ = ["Tokenizer"]

_UNKNOWN, _CONTROL, _OWN, _BYTE = 2, 3, 4, 6  # types of tokens; 1 is any other
_SPACE = "▁"
_LONGEST = 1 << 20  # characters of a text

# How texts are cut into words, over the classes of characters (`_class_of`): letters L, numbers N,
# ends of lines R, the space _, other white space S, the apostrophe, and the rest O.
_CUTS = {
    "gpt-2": r"_?L+|_?N+|_?[O']+|[_SR]+(?![LNO'])|[_SR]+",
    "llama-bpe": r"[^RLN]?L+|N{1,3}|_?[O']+R*|[_SR]*R+|[_SR]+(?![LNO'])|[_SR]+",
    "qwen2": r"[^RLN]?L+|N|_?[O']+R*|[_SR]*R+|[_SR]+(?![LNO'])|[_SR]+",
}
_NAMES = {"default": "gpt-2", "llama3": "llama-bpe", "llama-v3": "llama-bpe"}
_ENDINGS = re.compile(r"'(?:s|t|re|ve|m|ll|d)")
_ENDINGS_OF_ANY_CASE = re.compile(_ENDINGS.pattern, re.IGNORECASE)


def _class_of(c: str) -> str:
    if c in "\r\n":
        return "R"
    if c in " '":
        return "_" if c == " " else c
    if c.isspace() and c not in "\x1c\x1d\x1e\x1f":
        return "S"
    kind = unicodedata.category(c)[0]
    return kind if kind in "LN" else "O"


@lru_cache(None)
def _letters_of_bytes() -> dict[int, str]:
    """The letter that stands for each byte where vocabularies are of bytes."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in shown]
    letters = {b: chr(b) for b in shown}
    return letters | {b: chr(256 + i) for i, b in enumerate(others)}


def _merged(parts: list[str], rank: Callable[[str, str], float | None]) -> list[str]:
    """Neighbours joined as long as they have a rank, the lowest first, then the leftmost."""
    following = [*range(1, len(parts)), -1]
    preceding = [*range(-1, len(parts) - 1)]
    alive = [True] * len(parts)
    heap: list[tuple[float, int, int, str]] = []

    def offer(left: int) -> None:
        right = following[left] if left >= 0 else -1
        if right >= 0:
            found = rank(parts[left], parts[right])
            if found is not None:
                heapq.heappush(heap, (found, left, right, parts[left] + parts[right]))

    for i in range(len(parts)):
        offer(i)
    while heap:
        _, left, right, both = heapq.heappop(heap)
        stands = alive[left] and alive[right] and following[left] == right
        if not stands or parts[left] + parts[right] != both:
            continue
        parts[left], alive[right] = both, False
        following[left] = following[right]
        if following[left] >= 0:
            preceding[following[left]] = left
        offer(preceding[left])
        offer(left)
    return [part for part, is_alive in zip(parts, alive, strict=True) if is_alive]


class Tokenizer:
    """Text as tokens and back.

    Vocabularies are those of SentencePiece ("llama"), whose pieces have scores, and of bytes
    ("gpt2"), whose pieces are merged in an order.

    Args:
        metadata: as `gguf.load` gives it.

    Raises:
        ValueError: the metadata have no vocabulary, or one of a kind that is not known.

    Example:
        >>> words = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["▁", "a", "▁a"]}
        >>> words["tokenizer.ggml.scores"] = torch.tensor([-2.0, -2.0, -1.0])
        >>> tokenizer = torch.language.Tokenizer(words)
        >>> tokenizer.encode("a a")
        [2, 2]
        >>> tokenizer.decode([2, 2])
        'a a'
    """

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        said = {
            key.removeprefix("tokenizer.ggml."): value
            for key, value in metadata.items()
            if key.startswith("tokenizer.ggml.")
        }
        self.model = said.get("model")
        tokens = said.get("tokens")
        if self.model not in ("llama", "gpt2") or not isinstance(tokens, list) or not tokens:
            raise ValueError(
                "the metadata must have a vocabulary (tokenizer.ggml.tokens) of the model 'llama' "
                f"or 'gpt2', not {self.model!r}"
            )
        self.tokens: list[str] = tokens
        self.ids = {token: i for i, token in reversed(list(enumerate(tokens)))}
        self.types = _list_of(said, "token_type", len(tokens), 1)
        self.scores = _list_of(said, "scores", len(tokens), 0.0)
        self.bos, self.eos, self.unknown = (
            _one_of(said, f"{name}_token_id", len(tokens)) for name in ("bos", "eos", "unknown")
        )
        self.ends = frozenset(
            i
            for i in (self.eos, *(_one_of(said, f"{n}_token_id", len(tokens)) for n in ("eot",)))
            if i is not None
        )
        self.adds_bos = bool(said.get("add_bos_token", self.model == "llama"))
        self.adds_space = bool(said.get("add_space_prefix", True))
        whole = [t for t, kind in zip(tokens, self.types, strict=True) if kind in (_CONTROL, _OWN)]
        found = "|".join(map(re.escape, sorted(filter(None, whole), key=len, reverse=True)))
        self._whole = re.compile(f"({found})") if found else None
        if self.model == "gpt2":
            self._set_merges(said)

    def _set_merges(self, said: Mapping[str, Any]) -> None:
        merges, name = said.get("merges"), said.get("pre", "default")
        name = _NAMES.get(name, name) if isinstance(name, str) else name
        if not isinstance(merges, list) or name not in _CUTS:
            raise ValueError(
                f"a vocabulary of bytes needs merges, and words cut as {', '.join(_CUTS)} are, not "
                f"as {name!r}"
            )
        pairs = (tuple(merge.split(" ", 1)) for merge in merges)
        self._ranks = {pair: i for i, pair in reversed(list(enumerate(pairs)))}
        self._cut = re.compile(_CUTS[name])
        self._endings = _ENDINGS if name == "gpt-2" else _ENDINGS_OF_ANY_CASE

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str, *, bos: bool = False, special: bool = False) -> list[int]:
        """The tokens of a text.

        Args:
            text: of at most 2**20 characters.
            bos: put the token in front that begins texts, if the vocabulary asks for one.
            special: find the names of tokens that control the network, such as "</s>".
        """
        if len(text) > _LONGEST:
            raise ValueError(f"encode: a text may have {_LONGEST} characters, not {len(text)}")
        found = [self.bos] if bos and self.adds_bos and self.bos is not None else []
        parts = self._whole.split(text) if special and self._whole else [text]
        for i, part in enumerate(parts):
            if i % 2:
                found.append(self.ids[part])
            elif part and self.model == "llama":
                # A space goes in front of a text, and of what follows a token of control.
                found += self._pieces(" " + part if self.adds_space else part)
            elif part:
                found += self._bytes(part)
        return found

    def _pieces(self, text: str) -> Iterator[int]:
        def rank(left: str, right: str) -> float | None:
            i = self.ids.get(left + right)
            return None if i is None else -self.scores[i]

        for piece in _merged(list(text.replace(" ", _SPACE)), rank):
            if piece in self.ids:
                yield self.ids[piece]
                continue
            for byte in piece.encode("utf-8", "replace"):
                i = self.ids.get(f"<0x{byte:02X}>", self.unknown)
                if i is not None:
                    yield i

    def _bytes(self, text: str) -> Iterator[int]:
        letters = _letters_of_bytes()
        for word in self._words(text):
            parts = [letters[b] for b in word.encode("utf-8", "replace")]
            for piece in _merged(parts, lambda left, right: self._ranks.get((left, right))):
                i = self.ids.get(piece, self.unknown)
                if i is not None:
                    yield i

    def _words(self, text: str) -> Iterator[str]:
        classes = "".join(map(_class_of, text))
        at = 0
        while at < len(text):
            # Every class is in a cut: there is always one.
            found = self._endings.match(text, at) or self._cut.match(classes, at)
            end = found.end() if found else len(text)
            yield text[at:end]
            at = end

    def piece(self, token: int) -> bytes:
        """The bytes that a token stands for: none for those of control."""
        text, kind = self.tokens[token], self.types[token]
        if kind in (_CONTROL, _UNKNOWN):
            return b""
        if kind == _BYTE and re.fullmatch("<0x[0-9A-F]{2}>", text):
            return bytes([int(text[3:5], 16)])
        if self.model == "llama" or kind == _OWN:
            return text.replace(_SPACE, " ").encode("utf-8", "surrogateescape")
        bytes_of = _bytes_of_letters()
        if all(c in bytes_of for c in text):
            return bytes(bytes_of[c] for c in text)
        return text.encode("utf-8", "surrogateescape")

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens; what is no text becomes a sign of replacement.

        Args:
            tokens: integers below the size of the vocabulary.
        """
        text = b"".join(map(self.piece, tokens)).decode("utf-8", "replace")
        spaced = self.model == "llama" and self.adds_space
        return text[1:] if spaced and text.startswith(" ") else text


@lru_cache(None)
def _bytes_of_letters() -> dict[str, int]:
    return {letter: byte for byte, letter in _letters_of_bytes().items()}


def _list_of(said: Mapping[str, Any], name: str, size: int, otherwise: Any) -> list[Any]:
    """Numbers of tokens, which are as many as those."""
    found = said.get(name)
    if found is None:
        return [otherwise] * size
    if not isinstance(found, rushlight.Tensor) or found.shape != (size,):
        raise ValueError(f"tokenizer.ggml.{name} must be {size} numbers, one for each token")
    return found.tolist()


def _one_of(said: Mapping[str, Any], name: str, size: int) -> int | None:
    found = said.get(name)
    if found is not None and (type(found) is not int or not 0 <= found < size):
        raise ValueError(f"tokenizer.ggml.{name} must be one of {size} tokens, not {found!r}")
    return found
