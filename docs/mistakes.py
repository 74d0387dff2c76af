"""The page of mistakes, docs/errors.md: a heading, a program, and the message that it ends with.

`python docs/mistakes.py` runs the programs and writes the messages anew.
"""

import re
import sys
import warnings
from pathlib import Path

PAGE = Path(__file__).resolve().parent / "errors.md"
MISTAKE = re.compile(r"^### ([^\n]*)\n\n```python\n(.*?)```\n\n```text\n(.*?)```\n", re.M | re.S)


def message_of(program: str) -> str:
    """How a program ends: the exception with its notes, as a traceback shows them at its end."""
    import rushlight

    names = {"torch": rushlight, "nn": rushlight.nn, "__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(program, "mistake", "exec"), names)
        except Exception as error:
            said = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])]
            lines = [line.rstrip() for line in "\n".join(said).split("\n")]
            return "\n".join(lines).rstrip("\n") + "\n"
    return "no error\n"


def shows(shown: str, message: str) -> bool:
    """Whether a page shows a message; `...` stands there for any words."""
    return re.fullmatch(".*".join(map(re.escape, shown.split("..."))), message, re.S) is not None


def mistakes() -> list[tuple[str, str, str]]:
    """Heading, program and message of each."""
    return MISTAKE.findall(PAGE.read_text())


def rewrite() -> None:
    def one(match: re.Match) -> str:
        title, program, shown = match.groups()
        message = message_of(program)
        message = shown if shows(shown, message) else message
        return f"### {title}\n\n```python\n{program}```\n\n```text\n{message}```\n"

    PAGE.write_text(MISTAKE.sub(one, PAGE.read_text()))


if __name__ == "__main__":
    sys.path.insert(0, str(PAGE.parent.parent))
    rewrite()
