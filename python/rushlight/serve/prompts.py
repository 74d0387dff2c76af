"""Prompts of conversations, as the network of a file was trained on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["prompt_of"]

Messages = Sequence[Mapping[str, str]]


def prompt_of(metadata: Mapping[str, Any], messages: Messages, names: Mapping[str, str]) -> str:
    r"""The text of a conversation, up to where the answer begins.

    The template of a file is run by the package jinja2, in its sandbox; without it, or where a file
    has none, the best known ways to write a conversation are told by their marks.

    Args:
        metadata: of the file.
        messages: each with a role and a content.
        names: of the tokens that begin and end texts: "bos" and "eos".

    Raises:
        ValueError: the template does not take this conversation.

    Example:
        >>> from rushlight.serve.prompts import prompt_of
        >>> prompt_of({}, [{"role": "user", "content": "Hi"}], {"bos": "", "eos": ""})
        'user: Hi\nassistant:'
    """
    template = metadata.get("tokenizer.chat_template")
    template = template if isinstance(template, str) else ""
    if template:
        try:
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError:
            pass
        else:
            return _rendered(ImmutableSandboxedEnvironment, template, messages, names)
    for mark, write in (
        ("<|im_start|>", _with_marks),
        ("<|start_header_id|>", _with_headers),
        ("[INST]", _with_instructions),
    ):
        if mark in template:
            return write(messages)
    return "".join(f"{m['role']}: {m['content']}\n" for m in messages) + "assistant:"


def _rendered(kind: Any, template: str, messages: Messages, names: Mapping[str, str]) -> str:
    def refuse(text: str) -> None:
        raise ValueError(f"the template of the file refuses the conversation: {text}")

    made = kind(trim_blocks=True, lstrip_blocks=True)
    made.globals["raise_exception"] = refuse
    words = {f"{name}_token": text for name, text in names.items()}
    try:
        return made.from_string(template).render(
            messages=[dict(m) for m in messages], add_generation_prompt=True, **words
        )
    except Exception as error:  # whatever the text of a file does
        raise ValueError(f"the template of the file: {error}") from error


def _with_marks(messages: Messages) -> str:
    written = (f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
    return "".join(written) + "<|im_start|>assistant\n"


def _with_headers(messages: Messages) -> str:
    def head(role: str) -> str:
        return f"<|start_header_id|>{role}<|end_header_id|>\n\n"

    written = (f"{head(m['role'])}{m['content'].strip()}<|eot_id|>" for m in messages)
    return "".join(written) + head("assistant")


def _with_instructions(messages: Messages) -> str:
    text, system = "", ""
    for m in messages:
        if m["role"] == "system":
            system = f"<<SYS>>\n{m['content']}\n<</SYS>>\n\n"
        elif m["role"] == "user":
            text += f"[INST] {system}{m['content']} [/INST]"
            system = ""
        else:
            text += f" {m['content']} </s>"
    return text
