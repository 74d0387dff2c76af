"""Functions, messages and prose of ours stand nowhere in PyTorch's and torchvision's sources."""

import importlib.util
from collections import Counter
from pathlib import Path

import pytest

from . import own_words

HERE = Path(__file__)
ROOT = HERE.parents[2]
ALLOWED = HERE.with_name("own_words_allowed.txt")
# What ALLOWED may hold, of each kind. Take lines off it and lower these; never the other way.
MOST_ALLOWED = {"body": 24, "message": 20}

# What a build stages in the package's folder.
STAGED = {"__pycache__", "include", "lib", "licenses", "share"}
PACKAGE = ROOT / "python" / "rushlight"
PLACES = [
    *(
        place.relative_to(ROOT).as_posix()
        for place in sorted(PACKAGE.iterdir())
        if place.suffix == ".py" or (place.is_dir() and place.name not in STAGED)
    ),
    "src",
    "include",
    "ops",
]


def installed():
    """The folders of those of the other packages that are here."""
    specs = [importlib.util.find_spec(name) for name in ("torch", "torchvision", "functorch")]
    return [Path(spec.origin).parent for spec in specs if spec is not None]


def allowed():
    """The entries of the list: kind, path, name or text."""
    lines = [line.partition("  #") for line in ALLOWED.read_text().splitlines()]
    rows = [(entry.split(None, 2), reason) for entry, _, reason in lines if entry.strip()]
    assert all(reason.strip() for _, reason in rows), "an entry without a reason"
    return [(kind, path, name.strip()) for (kind, path, name), _ in rows]


def test_the_list_of_what_is_allowed_only_shrinks():
    entries = allowed()
    assert len(set(entries)) == len(entries)
    assert Counter(kind for kind, _, _ in entries) == MOST_ALLOWED


@pytest.mark.timeout(600)  # two minutes of a processor that is free
def test_nothing_follows_the_others():
    roots = installed()
    if not roots:
        pytest.skip("neither PyTorch nor torchvision is installed: nothing to compare with")
    ours = own_words.Ours(ROOT, PLACES)
    found = own_words.alike(ours, own_words.Theirs(roots, ours))
    entries = set(allowed())
    wrong = [str(one) for one in found if one.key not in entries]
    assert not wrong, "say these in words and shapes of your own:\n" + "\n".join(wrong)
    if any(root.name == "torchvision" for root in roots):
        unneeded = entries - {one.key for one in found}
        assert not unneeded, f"take these off {ALLOWED.name}: {sorted(unneeded)}"


# ---- the comparison ----

THEIRS = '''
class Box:
    """A box in which things may be kept until somebody comes."""

    def place(self, thing, where=None):
        spots = [spot for spot in self.spots if spot.free and spot.size >= thing.size]
        if not spots:
            raise ValueError("there is no room left in the box for a thing of such a size")
        chosen = min(spots, key=lambda spot: spot.size) if where is None else spots[where]
        chosen.free = False
        self.count += 1
        return chosen.number
'''


def compared(tmp_path, source, file="box.py"):
    for name, path, text in (("theirs", "box.py", THEIRS), ("ours", file, source)):
        (tmp_path / name).mkdir()
        (tmp_path / name / path).write_text(text)
    ours = own_words.Ours(tmp_path / "ours", ["."])
    theirs = own_words.Theirs([tmp_path / "theirs"], ours)
    return {(one.kind, one.name) for one in own_words.alike(ours, theirs)}


def test_renamed_locals_are_seen_through(tmp_path):
    source = THEIRS.replace("spots", "places").replace("chosen", "best").replace("thing", "item")
    source = source.replace("self.places", "self.spots")
    assert ("body", "Box.place") in compared(tmp_path, source)


def test_another_shape_is_no_copy(tmp_path):
    source = '''
class Box:
    """Keeps things."""

    def place(self, thing, where=None):
        fitting = sorted(self.fitting(thing), key=operator.attrgetter("size"))
        try:
            number = fitting[where or 0].take()
        except IndexError:
            raise ValueError(f"no room left: {thing.size} is more than {self.largest()}") from None
        self.count = sum(not spot.free for spot in self.spots)
        for listener in self.listeners:
            listener(self, number)
        return number
'''
    assert compared(tmp_path, source) == set()


def first_words(text, count):
    return " ".join(text.split()[:count])


@pytest.mark.parametrize("words, found", [(12, True), (11, False)])
def test_messages_of_twelve_words(tmp_path, words, found):
    text = first_words("there is no room left in the box for a thing of such", words)
    source = f'def other():\n    raise ValueError(f"oh: {text}")\n'
    assert bool(compared(tmp_path, source)) == found


@pytest.mark.parametrize("words, found", [(9, True), (8, False)])
def test_prose_of_nine_words(tmp_path, words, found):
    text = first_words("box in which things may be kept until somebody", words)
    assert bool(compared(tmp_path, f"# A {words} {text}\nx = 1\n")) == found


@pytest.mark.parametrize("words, found", [(12, True), (11, False)])
def test_messages_in_cpp(tmp_path, words, found):
    text = first_words("there is no room left in the box for a thing of such", words)
    joined = text.replace("room", 'room"\n    "')
    source = f'throw Error(str("{joined}", 3, " such a size"));\n'
    assert bool(compared(tmp_path, source, "box.cpp")) == found


@pytest.mark.parametrize("words, found", [(9, True), (8, False)])
def test_comments_in_cpp(tmp_path, words, found):
    text = first_words("box in which things may be kept until somebody", words)
    block = text.replace("things", "things\n//")
    source = f"// A {words} {block}\nclass Box;\n"
    assert bool(compared(tmp_path, source, "box.h")) == found
