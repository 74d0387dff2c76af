"""Runs examples and writes what they print.

`python docs/examples.py [FAMILY | FILE]...`: those of ops/examples, all or some families, or those
of the docstrings of a file of Python. One writes `>>> torch.add(torch.tensor([1]), 2)` alone; what
it prints is added, or replaced where it is wrong.
"""

import ast
import contextlib
import doctest
import io
import linecache
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINES = re.compile(r'^( *)>>> .*(?:\n\1(?!""")\S.*|\n\1 .*)*', re.MULTILINE)


def printed(code: str, names: dict) -> str:
    """What an interpreter prints after this input, as doctest wants it."""
    file = f"<example {len(linecache.cache)}>"  # where `inspect` finds the text of functions
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            exec(compile(ast.Interactive(ast.parse(code).body), file, "single"), names)
        except Exception as error:
            kind = type(error)
            place = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
            print(f"Traceback (most recent call last):\n    ...\n{place}{kind.__name__}: {error}")
    return re.sub(r"(?m)^$", "<BLANKLINE>", out.getvalue().rstrip("\n")) if out.getvalue() else ""


def run(text: str, names: dict | None = None) -> str:
    """The same input with what it prints now; what is right stays as it is written."""
    import rushlight

    names, lines = {"torch": rushlight} if names is None else names, []
    check = doctest.OutputChecker().check_output
    for example in doctest.DocTestParser().get_examples(text):
        first, *more = example.source.rstrip("\n").split("\n")
        lines += [f">>> {first}", *(f"... {line}".rstrip() for line in more)]
        said = printed(example.source, names)
        options = (
            doctest.NORMALIZE_WHITESPACE
            | doctest.ELLIPSIS
            | sum(k for k, on in example.options.items() if on)
        )
        stays = example.exc_msg is not None or check(example.want, f"{said}\n", options)
        lines += filter(None, [example.want.rstrip("\n") if stays else said])
    return "\n".join(lines)


def rewrite(path: Path) -> None:
    """A file of ops/examples."""
    head, *sections = path.read_text().split("# ")
    made = []
    for section in sections:
        name, _, text = section.partition("\n")
        made.append(f"# {name}\n{run(text)}\n\n")
    path.write_text(head + "".join(made).rstrip("\n") + "\n")


def rewrite_docstrings(path: Path) -> None:
    """A file of Python."""
    import rushlight

    lines = path.read_text().split("\n")
    kinds = (ast.ClassDef, ast.FunctionDef)
    owners = [n for n in ast.walk(ast.parse("\n".join(lines))) if isinstance(n, kinds)]
    texts = [n.body[0] for n in owners if ast.get_docstring(n, clean=False)]
    for text in sorted(texts, key=lambda n: n.lineno, reverse=True):
        names = {"torch": rushlight}

        def one(match: re.Match, names: dict = names) -> str:
            made = run(match[0], names)
            return "\n".join(match[1] + line for line in made.split("\n"))

        place = slice(text.lineno - 1, text.end_lineno)
        lines[place] = LINES.sub(one, "\n".join(lines[place])).split("\n")
    path.write_text("\n".join(lines))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "python"))
    chosen = sys.argv[1:]
    for name in [n for n in chosen if n.endswith(".py")]:
        rewrite_docstrings(Path(name))
    for path in sorted((ROOT / "ops" / "examples").glob("*.txt")):
        if not chosen or path.stem in chosen:
            rewrite(path)
