"""The tokenizer of a file: its vocabulary, or the package `tokenizers` with a tokenizer.json."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from rushlight.language import Tokenizer

__all__ = ["PackageTokenizer", "tokenizer_of"]


class PackageTokenizer(Tokenizer):
    """Cuts texts as a tokenizer.json says; what tokens stand for is in the metadata all the same.

    Args:
        metadata: as `gguf.load` gives it.
        path: of the tokenizer.json.

    Raises:
        ValueError: the file is no tokenizer, or one of another vocabulary than the metadata have.

    Example:
        >>> from rushlight.serve.tokens import PackageTokenizer
        >>> PackageTokenizer({}, "tokenizer.json")  # doctest: +SKIP
    """

    def __init__(self, metadata: Mapping[str, Any], path: str) -> None:
        from tokenizers import Tokenizer as Package

        super().__init__(metadata)
        try:
            self.package = Package.from_file(path)
        except Exception as error:  # the package raises no other kind
            raise ValueError(f"{path} is no tokenizer: {error}") from error
        strange = [t for t, i in self.package.get_vocab().items() if self.ids.get(t, i) != i]
        if strange or self.package.get_vocab_size() > len(self.tokens):
            raise ValueError(
                f"{path} has another vocabulary than the file: {strange[:3]}, "
                f"{self.package.get_vocab_size()} tokens and {len(self.tokens)}"
            )

    def encode(self, text: str, *, bos: bool = False, special: bool = False) -> list[int]:
        """The tokens of a text.

        Args:
            text: any.
            bos: put the token in front that begins texts, if the vocabulary asks for one.
            special: find the names of tokens that control the network, such as "</s>".
        """
        self.package.encode_special_tokens = not special
        found = list(self.package.encode(text, add_special_tokens=False).ids)
        return [self.bos, *found] if bos and self.adds_bos and self.bos is not None else found

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens.

        Args:
            tokens: integers below the size of the vocabulary.
        """
        return self.package.decode(list(tokens))


def tokenizer_of(path: str, metadata: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of a file.

    Args:
        path: of the file; a tokenizer.json in its folder is read by the package `tokenizers`, where
            that is installed.
        metadata: of the file.

    Example:
        >>> from rushlight.serve.tokens import tokenizer_of
        >>> tokenizer_of("model.gguf", {})  # doctest: +SKIP
    """
    beside = os.path.join(os.path.dirname(path), "tokenizer.json")
    if os.path.isfile(beside):
        try:
            import tokenizers as _  # noqa: F401
        except ImportError:
            pass
        else:
            return PackageTokenizer(metadata, beside)
    return Tokenizer(metadata)
