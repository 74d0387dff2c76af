"""Runs the examples of ops/examples and writes what they print.

`python docs/examples.py [FAMILY...]`. A section is a name and the lines that one types,
`>>> torch.add(torch.tensor([1]), 2)`; what stands between them is written anew, so a new example is
a name and its input.
"""

import ast
import contextlib
import doctest
import io
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def printed(code: str, names: dict) -> str:
    """What an interpreter prints after this input."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(ast.Interactive(ast.parse(code).body), "example", "single"), names)
    return out.getvalue().rstrip("\n")


def run(text: str) -> str:
    """The same input with what it prints now."""
    import rushlight

    names, lines = {"torch": rushlight}, []
    for example in doctest.DocTestParser().get_examples(text):
        first, *more = example.source.rstrip("\n").split("\n")
        lines += [f">>> {first}", *(f"... {line}" for line in more)]
        lines += filter(None, [printed(example.source, names)])
    return "\n".join(lines)


def rewrite(path: Path) -> None:
    head, *sections = path.read_text().split("# ")
    made = []
    for section in sections:
        name, _, text = section.partition("\n")
        made.append(f"# {name}\n{run(text)}\n\n")
    path.write_text(head + "".join(made).rstrip("\n") + "\n")


if __name__ == "__main__":
    chosen = sys.argv[1:]
    for path in sorted((ROOT / "ops" / "examples").glob("*.txt")):
        if not chosen or path.stem in chosen:
            rewrite(path)
