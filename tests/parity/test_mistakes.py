"""The messages of docs/errors.md beside PyTorch's: most are clearer by a rubric, none is less clear.

A message has a point if it names an operand (a shape, a dtype, a name or a number), one if it names the place (the layer's
path, the sample, or a function or class that the program calls), and one if it says what to do or what would be right.
"""

import json
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from docs import mistakes  # noqa: E402

OPERAND = re.compile(
    r"""\d|\b(float|double|long|int|half|byte|\w+Tensor|GLOBAL [\w.]+)\b|['"`][\w.]+['"`]""",
    re.IGNORECASE,
)
PLACE = re.compile(r"in the forward pass of|at sample|while samples")
REMEDY = re.compile(
    r"(?i)\b(use|give|gives|call|convert|converts|move|makes?|takes?|write|set|leave|remove|specify|please|clone|copy|"
    r"define|hint|begin|allow|detach|reshape|tolist|any|sorts|reads|loop|did you mean|labels are|labels of|goes with|"
    r"one of|one for each|only lengths|unless|where lr|knows|rows 0|from 0|gives the order|has 'min'|are p=|"
    r"the layer takes|at most|should be the same|must be the same)\b"
)
CLEARER = 120


def score(message: str, program: str) -> int:
    said = message.partition(": ")[2] or message
    called = set(re.findall(r"\b(\w+)\(", program)) - {
        "tensor",
        "zeros",
        "ones",
        "range",
        "iter",
        "next",
    }
    place = PLACE.search(message) or any(re.search(rf"\b{name}\b", said) for name in called)
    return sum(map(bool, (OPERAND.search(said), place, REMEDY.search(said))))


def messages_of_pytorch(programs):
    """In a process of its own, for the programs name modules of `rushlight`."""
    code = (
        "import json, sys, torch\n"
        "sys.modules['rushlight'] = torch\n"
        "from docs import mistakes\n"
        "said = [mistakes.message_of(p.replace('rushlight', 'torch')) for p in json.load(sys.stdin)]\n"
        "print(json.dumps(said))"
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.timeout(300)
def test_most_messages_are_clearer_and_none_is_less_clear():
    titles, programs, _ = zip(*mistakes.mistakes(), strict=True)
    theirs = messages_of_pytorch(programs)
    found = {"clearer": [], "alike": [], "less clear": []}
    for title, program, other in zip(titles, programs, theirs, strict=True):
        assert other != "no error\n", title
        ours, its = score(mistakes.message_of(program), program), score(other, program)
        found["clearer" if ours > its else "alike" if ours == its else "less clear"].append(title)
    assert not found["less clear"]
    assert len(found["clearer"]) >= CLEARER, found["alike"]
