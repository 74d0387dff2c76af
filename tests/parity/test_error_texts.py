"""Messages of bad calls are our own: they share with PyTorch's the phrase that programs match, not its sentence."""

import re
from types import SimpleNamespace

import pytest

from . import error_texts

pytest.importorskip("torch")

# Longer runs that stay, by words in them: the conformance suite matches these, or facts follow one another.
ALLOWED = (
    "expected to be in range of but got",
    "all elements of input should be between",
    "expected target dtype to be or",
    "kernel size can't be greater than actual input size",
    "more than one element of the written to tensor",
    "must have the same dtype",
    "to have the same dtype but got",
    "expected both vectors to have same dtype but found",
    "a must match the size of",
    "expanded size of the tensor must match the existing size at non singleton dimension",
    "input type and bias type should be the same",
    "expects tensor with dimensions but self is",
    "expects a tensor with dimensions but self is",
    "expects each tensor to be equal size but got at entry and at entry",
    "unbatched or batched input to",
    "sizes of tensors must match except in dimension",
    "expected to have channels but got channels instead",
    "is out of bounds for dimension with size",
    "dtype must be either floating point or complex dtype got",
    "must be either a floating point or complex dtype got",
    "received an invalid combination of arguments got",
    "ipu xpu mkldnn",
)
FEWEST = 1000  # calls that both refuse; fewer would mean that the calls are not bad


@pytest.mark.timeout(900)
def test_messages_share_a_phrase_and_no_sentence():
    rows = list(error_texts.refusals())
    assert len(rows) >= FEWEST
    long = {}
    for op, call, ours, theirs in rows:
        run = error_texts.shared(error_texts.words(ours, op), error_texts.words(theirs, op))
        if len(run) > error_texts.MOST and not any(a in " ".join(run) for a in ALLOWED):
            long.setdefault(" ".join(run), f"{op}({call}): {ours[:160]}")
    lines = [f"{run}\n    {example}" for run, example in sorted(long.items())]
    assert not lines, f"{len(lines)} to say in words of our own:\n" + "\n".join(lines)


def test_words_leave_facts_out():
    ours = "index_select(): dim 3 of 'index' must be an int64 tensor, not Float"
    assert error_texts.words(ours, "index_select") == [
        "dim",
        "of",
        "must",
        "be",
        "an",
        "tensor",
        "not",
    ]
    assert error_texts.shared(*map(str.split, ("a b c d", "x b c y"))) == ["b", "c"]


def test_bad_calls_replace_one_argument():
    errors = [("x(2), 5", IndexError, "")]
    case = SimpleNamespace(samples=["x(2, 3), 1, 'mean', True"], errors=errors)
    calls = list(error_texts.bad_calls(case))
    assert calls[0] == "x(2, 3).unsqueeze(-1), 1, 'mean', True"
    assert calls[-1] == "x(2), 5"
    assert "x(2, 3), 99, 'mean', True" in calls and "x(2, 3), 1, 'nonsense', True" in calls
    assert all(re.search(r"True$|5$", call) for call in calls)
