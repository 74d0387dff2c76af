"""The finders of what is taken and never read (`tests/unread.py`), on a small program."""

import ast

import pytest

from tests import unread

PROGRAM = '''
import argparse
from dataclasses import dataclass

_mode = None
_depth = 0

def public(read, ignored, *rest, **options):
    return read, options

def refuses(ignored):
    raise NotImplementedError

def nothing(value):
    """Accepted."""

def constant():
    return False

def set_mode(mode):
    global _mode
    _mode = mode

def get_mode():
    return _mode

def set_depth(depth):
    global _depth
    _depth = depth

def get_depth():
    return _depth

def _private(read, ignored):
    return read

def _callback(read, event):
    return read

def work():
    return _private(1, 2), map(_callback, []), get_depth()

class Kept:
    def __init__(self, shown, stored, used):
        self.shown, self.stored = shown, stored
        self.length = len(used)

    def __len__(self):
        return self.length + self.shown

class quiet:
    def __init__(self, mode):
        self.mode = mode

    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass

@dataclass
class CopyOptions:
    asked: int
    unasked: int

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--known")
    parser.add_argument("--un-known", "-u")
    return parser.parse_args().known, CopyOptions(1, 2).asked
'''
CACHES = [
    f for f in vars(unread).values() if hasattr(f, "cache_clear") and f is not unread._definitions
]


@pytest.fixture
def program(monkeypatch):
    tree = ast.parse(PROGRAM)
    for cached in CACHES:
        cached.cache_clear()
    monkeypatch.setattr(unread, "trees", lambda: {"m": tree})
    yield
    for cached in CACHES:
        cached.cache_clear()


def test_what_is_found(program):
    assert set(unread.unread_parameters()) == {
        ("m.public", "ignored"),
        ("m.public", "rest"),
        ("m.nothing", "value"),
    }
    assert list(unread.unread_private_parameters()) == [("m._private", "ignored")]
    assert set(unread.idle_functions()) == {"m.nothing", "m.constant", "m.quiet.__init__"}
    assert list(unread.stored_and_unread()) == [
        ("m.Kept.__init__", "stored"),
        ("m.quiet.__init__", "mode"),
    ]
    assert list(unread.unread_settings()) == ["m.set_mode"]
    assert list(unread.unread_fields()) == [("m.CopyOptions.__init__", "unasked")]
    assert list(unread.unread_options()) == [("m", "un-known")]


@pytest.mark.parametrize(
    ("parameter", "nameless"),
    [
        ("bool", True),
        ("bool&", True),
        ("const Tensor&", True),
        ("std::optional<std::vector<int64_t>>", True),
        ("std::string_view", True),
        ("int64_t /*dim*/", True),
        ("bool sorted", False),
        ("const Tensor& self", False),
        ("std::optional<bool> masked", False),
        ("std::array<bool, 2> mask", False),
    ],
)
def test_parameters_without_a_name(parameter, nameless):
    assert unread._is_nameless(parameter) == nameless


def test_arguments_that_no_implementation_uses():
    found = set(unread.unread_op_parameters())
    assert ("topk", "sorted") in found and ("isin", "assume_unique") in found
    assert not {("topk", "largest"), ("isin", "invert"), ("embedding", "padding_idx")} & found
