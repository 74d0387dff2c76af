"""What requests may ask for, in the words of OpenAI's protocol, and what answers them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import rushlight
from rushlight.language import Sampler
from rushlight.serve.engine import Engine, Job
from rushlight.serve.prompts import prompt_of

__all__ = ["Refused", "Reply", "job_of"]

_ROLES = ("system", "developer", "user", "assistant")
_MESSAGES = 256


class Refused(ValueError):
    """A request that is not understood, with what is wrong about it.

    For an example see `serve.protocol.job_of`.
    """


def _one(body: Mapping[str, Any], name: str, otherwise: Any, good: Callable[[Any], bool]) -> Any:
    value = body.get(name)
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not good(value):
        raise Refused(f"{name} cannot be {value!r:.100}")
    return value


def _whole(body: Mapping[str, Any], name: str, otherwise: Any, low: int, high: int) -> Any:
    return _one(body, name, otherwise, lambda v: isinstance(v, int) and low <= v <= high)


def _sampler(body: Mapping[str, Any]) -> Sampler:
    seed = _whole(body, "seed", None, -(1 << 63), (1 << 63) - 1)
    generator = None if seed is None else rushlight.Generator().manual_seed(seed)
    return Sampler(
        temperature=_one(body, "temperature", 1.0, lambda v: 0 <= v <= 10),
        top_k=_whole(body, "top_k", 0, 0, 1 << 30),
        top_p=_one(body, "top_p", 1.0, lambda v: 0 <= v <= 1),
        repetition_penalty=_one(body, "repetition_penalty", 1.0, lambda v: 0.01 <= v <= 100),
        generator=generator,
    )


def _stops(body: Mapping[str, Any]) -> list[str]:
    stop = body.get("stop") or []
    stop = [stop] if isinstance(stop, str) else stop
    if not isinstance(stop, list) or len(stop) > 4 or not all(isinstance(s, str) for s in stop):
        raise Refused("stop must be a string or at most four of them")
    return stop


def _content(message: Any) -> dict[str, str]:
    """A message with its content as one text."""
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        raise Refused(f"a message has one of the roles {', '.join(_ROLES)}")
    content = message.get("content")
    if isinstance(content, list):
        texts = [p.get("text") if isinstance(p, dict) else None for p in content]
        words = [t for t in texts if isinstance(t, str)]
        content = "".join(words) if len(words) == len(texts) else None
    if not isinstance(content, str):
        raise Refused("the content of a message must be text")
    role = "system" if message["role"] == "developer" else message["role"]
    return {"role": role, "content": content}


def _prompt(engine: Engine, body: Mapping[str, Any], chat: bool) -> list[int]:
    tokenizer = engine.tokenizer
    if chat:
        messages = body.get("messages")
        if not isinstance(messages, list) or not 0 < len(messages) <= _MESSAGES:
            raise Refused(f"messages must be a list of 1 to {_MESSAGES} messages")
        words = {"bos": tokenizer.bos, "eos": tokenizer.eos}
        names = {k: "" if i is None else tokenizer.tokens[i] for k, i in words.items()}
        text = prompt_of(engine.metadata, [_content(m) for m in messages], names)
        # Templates write the first token themselves, or leave it to the vocabulary.
        writes_bos = bool(names["bos"]) and text.startswith(names["bos"])
        return tokenizer.encode(text, bos=not writes_bos, special=True)
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        prompt = prompt[0]
    if isinstance(prompt, list) and all(
        type(i) is int and 0 <= i < len(tokenizer.tokens) for i in prompt
    ):
        return prompt
    if not isinstance(prompt, str):
        raise Refused("prompt must be a string or a list of tokens")
    return tokenizer.encode(prompt, bos=True)


def job_of(engine: Engine, body: Any, chat: bool) -> Job:
    """What the engine is to do for a request.

    Args:
        engine: which is ready.
        body: the request.
        chat: whether it has messages.

    Raises:
        Refused: the request is not understood, or asks for what is not done.

    For an example see `serve.engine.Engine`.
    """
    if not isinstance(body, dict):
        raise Refused("the body must be an object")
    for name, usual in (
        ("n", 1),
        ("best_of", 1),
        ("logprobs", None),
        ("echo", None),
        ("tools", None),
    ):
        if body.get(name) not in (usual, None, False, 0, []):
            raise Refused(f"{name} is not supported")
    try:
        prompt = _prompt(engine, body, chat)
    except ValueError as error:
        raise Refused(str(error)) from error
    room = engine.net.max_len - len(prompt)
    if not prompt or room <= 0:
        raise Refused(
            f"the prompt has {len(prompt)} tokens; it may have 1 to {engine.net.max_len - 1}"
        )
    given = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
    most = _whole(body, given, 256 if not chat else room, 1, 1 << 30)
    return Job(prompt, _sampler(body), min(most, room + 1), _stops(body))


class Reply:
    """The objects that answer a request.

    Args:
        job: the request.
        model: the name of the model.
        chat: whether it has messages.

    For an example see `serve.protocol.job_of`.
    """

    def __init__(self, job: Job, model: str, chat: bool) -> None:
        self.job = job
        self.chat = chat
        self.common = {
            "id": ("chatcmpl-" if chat else "cmpl-") + uuid.uuid4().hex,
            "created": int(time.time()),
            "model": model,
        }

    def _object(self, kind: str, choice: dict[str, Any], ended: bool) -> dict[str, Any]:
        reason = self.job.reason if ended else None
        return {
            **self.common,
            "object": kind,
            "choices": [{"index": 0, **choice, "logprobs": None, "finish_reason": reason}],
        }

    def piece(self, text: str, first: bool = False, ended: bool = False) -> dict[str, Any]:
        """A piece of an answer that is streamed."""
        if not self.chat:
            return self._object("text_completion", {"text": text}, ended)
        delta: dict[str, str] = {"role": "assistant"} if first else {}
        if text or first:
            delta["content"] = text
        return self._object("chat.completion.chunk", {"delta": delta}, ended)

    def usage(self) -> dict[str, int]:
        """How many tokens there were."""
        given, made = len(self.job.prompt), self.job.made
        return {
            "prompt_tokens": given,
            "completion_tokens": made,
            "total_tokens": given + made,
        }

    def whole(self, text: str) -> dict[str, Any]:
        """A whole answer."""
        if self.chat:
            message = {"role": "assistant", "content": text}
            found = self._object("chat.completion", {"message": message}, True)
        else:
            found = self._object("text_completion", {"text": text}, True)
        return found | {"usage": self.usage()}
