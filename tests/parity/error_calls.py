"""Bad calls of what raises in Python: layers, losses, optimizers, data, distributions, graphs, files.

`programs/good_calls.txt` lists calls that both packages take. `spoiled` replaces one argument of one of
their calls after the other, and gives parameters that a call leaves out values of the wrong kind.
`python -m tests.parity.error_calls` makes the calls of each line in a process of its own and prints a line
of JSON for each that both packages refuse: the function, the call and the two messages.
"""

import ast
import inspect
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

GOOD = Path(__file__).parent / "programs" / "good_calls.txt"
SECONDS = 5  # that a call may take
SECONDS_OF_LINE = 60
MAKERS = ("x", "i", "b", "p", "w")
IMPORTED = (  # what a package alone does not import
    "ao.quantization distributed.device_mesh export func hub masked nn.attention.flex_attention "
    "nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.stateless optim.swa_utils "
    "package quasirandom signal.windows testing utils.benchmark utils.checkpoint utils.dlpack"
)

TENSORS = (
    "({}).unsqueeze(-1)",
    "({}).flatten()",
    "({}).to(m.bool)",
    "({}).to(m.complex64)",
    "({}).to(m.int64)",
    "({})[..., :0]",
    "m.zeros(())",
    "m.zeros(3, 5, 7)",
    "'a'",
    "None",
)
NUMBERS = ("99", "-99", "0", "0.5", "'a'", "[1, 2]", "None", "x(2)")
STRINGS = ("'nonsense'", "3", "None")
LISTS = ("[]", "[99]", "[-99, 1]", "[1, 2, 3, 4, 5, 6, 7]", "'a'", "3", "[None]")
OBJECTS = ("3", "'a'", "None")
BY_DEFAULT = ((bool, ("'a'",)), ((int, float), NUMBERS[:6]), (str, STRINGS), ((list, tuple), LISTS))


def lines():
    """The good calls of the table."""
    texts = (line.strip() for line in GOOD.read_text().splitlines())
    return [text for text in texts if text and not text.startswith("#")]


def scope(module):
    """The names of the calls, for one of the packages."""
    import importlib
    import io
    from dataclasses import dataclass

    m = module
    for name in IMPORTED.split():
        importlib.import_module(f"{m.__name__}.{name}")

    def x(*sizes):
        count = max(1, *(size for size in sizes), 1)
        steps = m.arange(float(_product(sizes)))
        return ((steps * 7 + count) % 5 - 2).reshape(sizes)

    def p(*sizes):
        return m.nn.Parameter(x(*sizes))

    def optimizer():
        return m.optim.SGD([p(3)], lr=0.1, momentum=0.9)

    def archive():
        out = memory()
        m.jit.save(m.jit.script(m.nn.Linear(2, 3)), out)
        return io.BytesIO(out.getvalue())

    def checkpoint():
        out = memory()
        m.save({"a": x(3)}, out)
        return io.BytesIO(out.getvalue())

    memory = io.BytesIO
    return {
        "m": m,
        "x": x,
        "i": lambda *sizes: x(*sizes).abs().to(m.int64),
        "b": lambda *sizes: x(*sizes) > 5,
        "p": p,
        "w": lambda *sizes: x(*sizes).requires_grad_(),
        "s": optimizer,
        "o": optimizer(),
        "d": lambda count: m.utils.data.TensorDataset(x(count, 2)),
        "f": lambda *args: args[0] * 2 if args else m.tensor(1.0),
        "h": lambda *args: (args[0] * args[0]).sum(),
        "mask": lambda batch, head, query, key: query >= key,
        "scripted": scripted,
        "memory": memory,
        "archive": archive,
        "checkpoint": checkpoint,
        "Fields": dataclass(type("Fields", (), {"__annotations__": {"a": int}})),
    }


def _product(sizes):
    count = 1
    for size in sizes:
        count *= size
    return count


def scripted(x, n: int):
    return x * n


def _replacements(node):
    """What stands in the place of an argument, by its kind."""
    text = ast.unparse(node)
    if isinstance(node, ast.Call):
        made = isinstance(node.func, ast.Name) and node.func.id in MAKERS
        return [new.format(text) for new in TENSORS] if made else OBJECTS
    if isinstance(node, ast.List | ast.Tuple | ast.Dict):
        return LISTS
    if isinstance(node, ast.UnaryOp | ast.Constant):
        return _of_value(ast.literal_eval(node))
    return OBJECTS


def _of_value(value):
    for kinds, new in BY_DEFAULT:
        if isinstance(value, kinds):
            return new
    return ("'nonsense'", "3") if value is None else ()


def _left_out(call, function):
    """The parameters that a call leaves out, with their defaults."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return
    given = {keyword.arg for keyword in call.keywords}
    for number, parameter in enumerate(parameters):
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            late = number >= len(call.args) or parameter.kind == parameter.KEYWORD_ONLY
            if late and parameter.name not in given and parameter.default is not parameter.empty:
                yield parameter.name, parameter.default


def spoiled(text, names):
    """(function, call) for each call of a line with one argument that is not what it should be."""
    tree = ast.parse(text, mode="eval")
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        label = ast.unparse(call.func)
        if not label.startswith("m."):
            continue
        yield label, ast.unparse(_with(tree, call, call.args + [ast.Constant(3)] * 9))
        for place, node in enumerate(call.args):
            for new in _replacements(node):
                args = [*call.args]
                args[place] = ast.parse(new, mode="eval").body
                yield label, ast.unparse(_with(tree, call, args))
        for place, keyword in enumerate(call.keywords):
            for new in _replacements(keyword.value):
                keywords = [*call.keywords]
                keywords[place] = ast.keyword(keyword.arg, ast.parse(new, mode="eval").body)
                yield label, ast.unparse(_with(tree, call, call.args, keywords))
        for name, default in _left_out(call, _function(label, names)):
            for new in _of_value(default):
                more = ast.keyword(name, ast.parse(new, mode="eval").body)
                yield label, ast.unparse(_with(tree, call, call.args, [*call.keywords, more]))


def _function(label, names):
    try:
        return eval(label, dict(names))
    except Exception:
        return None  # what a line calls there is raised by its own call, too


def _with(tree, call, args, keywords=None):
    """A copy of the tree in which a call has other arguments."""
    before = call.args, call.keywords
    call.args, call.keywords = args, call.keywords if keywords is None else keywords
    try:
        return ast.parse(ast.unparse(tree), mode="eval")
    finally:
        call.args, call.keywords = before


def _message(call, names):
    """What a package says to a call; None where it takes it or needs long."""
    signal.alarm(SECONDS)
    try:
        eval(call, names)
    except TimeoutError:
        return None
    except Exception as error:
        return str(error)
    finally:
        signal.alarm(0)
    return None


def _late(number, frame):
    raise TimeoutError


def _make(line, packages, out):
    """Makes the bad calls of a line and writes those that both packages refuse."""
    signal.signal(signal.SIGALRM, _late)
    ours, theirs = (scope(package) for package in packages)
    for label, call in spoiled(line, ours):
        texts = [_message(call, dict(names)) for names in (ours, theirs)]
        if None not in texts:
            out.write(json.dumps([label.removeprefix("m."), call, *texts]) + "\n")
            out.flush()


def main():
    import resource
    import tempfile
    import time

    import torch

    import rushlight

    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    torch.set_num_threads(1)
    for package in (rushlight, torch):
        scope(package)  # imports what every child needs
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a call prints is no row
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # for the files that calls write
        for line in lines():
            child = os.fork()
            if child == 0:
                try:
                    _make(line, (rushlight, torch), out)
                finally:
                    os._exit(0)
            end = time.monotonic() + SECONDS_OF_LINE
            while os.waitpid(child, os.WNOHANG) == (0, 0):
                if time.monotonic() > end:
                    os.kill(child, signal.SIGKILL)
                time.sleep(0.005)


def refusals():
    """(function, call, our message, PyTorch's) of every bad call that both packages refuse."""
    command = [sys.executable, "-W", "ignore", "-m", __name__]
    found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return [json.loads(line) for line in found.stdout.splitlines()]


if __name__ == "__main__":
    main()
