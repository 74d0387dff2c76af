"""Messages of bad calls are our own: they share with PyTorch's the phrase that programs match, not its sentence."""

import re
from types import SimpleNamespace

import pytest

from . import error_calls, error_texts

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
    "must be tuple of ints",
    "input and target should have the same size",
    "because the unspecified dimension size can be any value",
    "at least one input tensor to require gradient",
    "dtype can require gradients",
    "must be greater than or equal to zero",
    "requested buffer length bytes after offset bytes must not be greater than actual buffer",
    "both buffer length and count must not be",
    "offset bytes must be non negative and no greater than buffer length bytes",
    "only integer tensors of a single element",
    "tensor or list of tensors expected got",
    "a tensor with elements cannot be converted to scalar",
    "only one element tensors can be converted to python scalars",
    "one of default lite reduce overhead",
    "fan in and fan out can not be computed",
    "in loading for",
    "no comparison pair was able to handle inputs",
    "access accelerator device when none is available",
    "parameter group dampening",
    "jacobian mismatch for output with respect to input",
)
# What Python itself, its library and Pillow say.
PYTHONS = (
    "bits must be between or equal to and",
    "number of weights does not match the population",
    "image size pixels exceeds limit of pixels could be decompression bomb",
    "positional arguments but were given",
    "positional argument but were given",
    "positional arguments but positional arguments and keyword only",
    "positional argument but positional arguments and keyword only",
    "indices must be integers or",
    "can only concatenate",
    "argument must be a string",
    "argument after must be a mapping not",
    "dictionary update sequence element",
    "can't mix strings and bytes in path components",
    "argument must be str bytes or object not",
    "must be a type a tuple of types or a union",
    "incompatible function arguments the following argument types are supported",
)
# Calls that both refuse; fewer would mean that the calls are not bad.
FEWEST = 1000
FEWEST_IN_PYTHON = 3000


def sentences(rows):
    """The runs of words that messages share with PyTorch's, where they are longer than a phrase."""
    long = {}
    for op, call, ours, theirs in rows:
        run = error_texts.shared(error_texts.words(ours, op), error_texts.words(theirs, op))
        text = " ".join(run)
        if len(run) > error_texts.MOST and not any(known in text for known in ALLOWED + PYTHONS):
            long.setdefault(text, f"{op}: {call}: {ours[:160]}")
    lines = [f"{run}\n    {example}" for run, example in sorted(long.items())]
    return f"{len(lines)} to say in words of our own:\n" + "\n".join(lines) if lines else ""


@pytest.mark.timeout(900)
def test_messages_share_a_phrase_and_no_sentence():
    rows = list(error_texts.refusals())
    assert len(rows) >= FEWEST
    assert not sentences(rows)


@pytest.mark.timeout(1800)
def test_messages_of_layers_optimizers_data_and_graphs_share_no_sentence():
    rows = error_calls.refusals()
    assert len(rows) >= FEWEST_IN_PYTHON
    assert not sentences(rows)


def test_spoiled_calls_have_one_bad_argument():
    calls = [
        call for _, call in error_calls.spoiled("m.nn.Linear(2, bias=True)(x(4))", {"m": None})
    ]
    assert "m.nn.Linear(2, 3, 3, 3, 3, 3, 3, 3, 3, 3, bias=True)(x(4))" in calls
    assert "m.nn.Linear(-99, bias=True)(x(4))" in calls
    assert "m.nn.Linear(2, bias='a')(x(4))" in calls
    assert not any("x('a')" in call for call in calls)  # what makes arguments is no call to spoil


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
