"""Shows the contents of a pickle without running it: `python -m rushlight.utils.show_pickle
FILE`.
"""

from __future__ import annotations

import fnmatch
import pickle
import pprint
import sys
import zipfile
from typing import Any, ClassVar

__all__ = ["DumpUnpickler", "FakeClass", "FakeObject", "main"]


class FakeObject:
    """The result of a call in a pickle.

    Args:
        module: the module of what is called.
        name: the name within it.
        args: what it is called with.

    For an example see `utils.show_pickle.DumpUnpickler`.
    """

    def __init__(self, module: str, name: str, args: tuple[Any, ...]) -> None:
        self.module, self.name, self.args = module, name, args
        self.state: Any = None

    def __repr__(self) -> str:
        state = "" if self.state is None else f"(state={self.state!r})"
        return f"{self.module}.{self.name}{self.args!r}{state}"

    def __setstate__(self, state: Any) -> None:
        self.state = state


class FakeClass:
    """A function or class that a pickle names.

    Args:
        module: the module that the pickle names.
        name: the name within it.

    For an example see `utils.show_pickle.DumpUnpickler`.
    """

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name
        # What a pickle calls instead of a class.
        vars(self)["__new__"] = lambda _, *args: self(*args)

    def __repr__(self) -> str:
        return f"{self.module}.{self.name}"

    def __call__(self, *args: Any) -> FakeObject:
        return FakeObject(self.module, self.name, args)


# Python's own in Python: that in C makes objects of real classes alone.
_Unpickler: Any = vars(pickle)["_Unpickler"]


class DumpUnpickler(_Unpickler):
    """Unpickles into descriptions of objects.

    Args:
        file: one that is open for reading.
        catch_invalid_utf8: texts that are none become descriptions; otherwise UnicodeDecodeError.
        kwargs: for `pickle.Unpickler`.

    Example:
        >>> import io, pickle
        >>> from rushlight.utils.show_pickle import DumpUnpickler
        >>> DumpUnpickler(io.BytesIO(pickle.dumps({"a": 1}))).load()
        {'a': 1}
    """

    dispatch: ClassVar = dict(_Unpickler.dispatch)

    def __init__(self, file: Any, *, catch_invalid_utf8: bool = False, **kwargs: Any) -> None:
        super().__init__(file, **kwargs)
        self.catch_invalid_utf8 = catch_invalid_utf8

    def find_class(self, module: str, name: str) -> Any:
        """A description of a function or class."""
        return FakeClass(module, name)

    def persistent_load(self, pid: Any) -> FakeObject:
        """A description of a persistent id."""
        return FakeObject("pers", "obj", (pid,))

    def load_binunicode(self) -> None:
        """Load a string."""
        data = self.read(int.from_bytes(self.read(4), "little"))
        try:
            text: Any = data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            if not self.catch_invalid_utf8:
                raise
            text = FakeObject("builtin", "UnicodeDecodeError", (str(error),))
        self.append(text)

    dispatch[pickle.BINUNICODE[0]] = load_binunicode

    @classmethod
    def dump(cls, in_stream: Any, out_stream: Any = None) -> Any:
        """Print the contents of the pickle in an open file, and return them."""
        value = cls(in_stream).load()
        pprint.pprint(value, stream=out_stream)
        return value


def main(argv: list[str], output_stream: Any = None) -> int | None:
    """Show one pickle.

    Args:
        argv: the program and a file, `ARCHIVE@MEMBER` or `ARCHIVE@PATTERN`: the first that fits.
        output_stream: where it is printed; by default to standard output.

    Returns:
        2 where the arguments are no such thing.

    For an example see `utils.show_pickle.DumpUnpickler`.
    """
    if len(argv) != 2:
        sys.stderr.write("usage: show_pickle FILE | ARCHIVE@MEMBER | ARCHIVE@PATTERN\n")
        return 2
    path, at, member = argv[1].partition("@")
    if not at:
        with open(path, "rb") as stream:
            DumpUnpickler.dump(stream, output_stream)
        return None
    with zipfile.ZipFile(path) as archive:
        fitting = [n for n in archive.namelist() if n == member or fnmatch.fnmatch(n, member)]
        if not fitting:
            raise FileNotFoundError(f"show_pickle: {path} has no member {member}")
        with archive.open(fitting[0]) as stream:
            DumpUnpickler.dump(stream, output_stream)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv))
