"""Bad calls of every op, made by both packages, and how much of a message stands in the other's.

`python -m tests.parity.error_texts FIRST` makes the calls of the ops from number FIRST on, and prints a line of JSON for
each op and for each call that both packages refuse. It runs in a process of its own, for PyTorch does not survive every
bad argument: `refusals` goes on behind the op where one ended.
"""

import ast
import json
import re
import subprocess
import sys
from difflib import SequenceMatcher

MOST = 7  # words in a row that a message may share: those by which programs know it

TENSORS = [
    "({}).unsqueeze(-1)",
    "({})[None, None]",
    "({}).flatten()",
    "({}).to(m.bool)",
    "({}).to(m.complex64)",
    "({}).to(m.int64)",
    "({})[..., :0]",
    "({}).double()",
    "m.zeros(3, 5, 7)",
    "m.zeros(())",
]
NUMBERS = ["99", "-99", "[1, 2]"]
LISTS = ["[]", "[99]", "[-99, 1]", "[0, 0]", "[1, 2, 3, 4, 5, 6, 7]"]
DTYPES = (
    "bool byte char short int long half bfloat float double complexhalf complexfloat complexdouble"
)


def _replacements(node):
    """What stands in the place of an argument, by its kind."""
    text = ast.unparse(node)
    if isinstance(node, ast.Call):
        return [tensor.format(text) for tensor in TENSORS]
    if isinstance(node, ast.List | ast.Tuple):
        if node.elts and isinstance(node.elts[0], ast.Call):
            first, *rest = map(ast.unparse, node.elts)
            return [
                "[]",
                *(f"[{', '.join([tensor.format(first), *rest])}]" for tensor in TENSORS),
            ]
        return LISTS
    if isinstance(node, ast.UnaryOp | ast.Constant):
        value = ast.literal_eval(node)
        if isinstance(value, str):
            return ["'nonsense'"]
        return [] if value is None or isinstance(value, bool) else NUMBERS
    return []


def bad_calls(case):
    """The first sample of an op with one argument replaced, and the calls that its tests know to be refused."""
    for text in case.samples[:1]:
        count = len(ast.parse(f"f({text})", mode="eval").body.args)
        for place in range(count):
            call = ast.parse(f"f({text})", mode="eval").body
            for new in _replacements(call.args[place]):
                call.args[place] = ast.parse(new, mode="eval").body
                yield ast.unparse(call)[2:-1]
    yield from (error[0] for error in case.errors)


def words(text, op):
    """The words of a message without facts: names of ops, arguments and dtypes, numbers, signatures."""
    text = text.partition("but expected one of")[0]
    text = re.sub(r"'\w+'|`[^`]*`|\S*[\d_=]\S*|\w+\.\w\S*|\w+\(\S*", " ", text)
    facts = {"torch", "rushlight", "linalg", *DTYPES.split(), *re.split(r"[._]", op)}
    return [word for word in re.findall(r"[a-z]+(?:'[a-z]+)?", text.lower()) if word not in facts]


def shared(ours, theirs):
    """The longest run of words that two lists have in common."""
    run = SequenceMatcher(None, ours, theirs, autojunk=False).find_longest_match()
    return ours[run.a : run.a + run.size]


def refusals():
    """(op, call, our message, PyTorch's) of every bad call that both packages refuse."""
    first = 0
    while True:
        command = [sys.executable, "-W", "ignore", "-m", __name__, str(first)]
        found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for line in found.stdout.splitlines():
            row = json.loads(line)
            if isinstance(row, int):
                first = row + 1
            else:
                yield row
        if found.returncode == 0:
            return
        if not found.stdout:
            raise RuntimeError(f"no op could be called from number {first} on")


def _message(function, makers, call):
    try:
        args, kwargs = makers.arguments(call)
    except Exception:
        return None  # the argument itself cannot be made: a scalar has no last dimension
    try:
        function(*args, **kwargs)
    except Exception as error:
        return str(error)
    return None


def main(first):
    """Prints the number of each op before its calls, so that it is known which one ended the process."""
    import resource

    import torch

    import rushlight
    from tests.ops.harness import Makers, cases, function_of

    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    torch.set_num_threads(1)
    for number, (key, case) in enumerate(cases().items()):
        theirs, ours = function_of(torch, case.op), function_of(rushlight, case.op)
        if number < first or theirs is None:
            continue
        print(number, flush=True)
        for call in bad_calls(case):
            texts = []
            for module, function in ((rushlight, ours), (torch, theirs)):
                makers = Makers(module, case.dtypes[0], key + call)
                texts.append(_message(function, makers, call))
                if texts[-1] is None:
                    break
            if texts[-1] is not None:
                print(json.dumps([key, call, *texts]), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
