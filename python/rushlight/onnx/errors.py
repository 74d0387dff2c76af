"""Errors of the export to ONNX."""

from __future__ import annotations

from typing import Any

__all__ = [
    "OnnxExporterError",
    "OnnxExporterWarning",
    "SymbolicValueError",
    "UnsupportedOperatorError",
]


class OnnxExporterWarning(UserWarning):
    """A warning of the export.

    Example:
        >>> issubclass(torch.onnx.errors.OnnxExporterWarning, UserWarning)
        True
    """


class OnnxExporterError(RuntimeError):
    """A program that could not be exported.

    Example:
        >>> issubclass(torch.onnx.OnnxExporterError, RuntimeError)
        True
    """


class UnsupportedOperatorError(OnnxExporterError):
    """An op without a form in ONNX.

    Args:
        name: the op.
        version: the version of ONNX's ops.
        supported_version: the first version in which it has a form, or None.

    Example:
        >>> raise torch.onnx.errors.UnsupportedOperatorError("aten::fancy", 18, None)
        Traceback (most recent call last):
            ...
        rushlight.onnx.errors.UnsupportedOperatorError: ...
    """

    def __init__(self, name: str, version: int, supported_version: int | None) -> None:
        since = "" if supported_version is None else f"; it has one from {supported_version} on"
        super().__init__(f"{name} has no form in version {version} of ONNX's ops{since}")


class UnsupportedOps(UnsupportedOperatorError):
    """All that keeps a program from being exported, with the lines of the program.

    Args:
        problems: by what cannot go, the lines where it is.
    """

    def __init__(self, problems: dict[str, list[str]]) -> None:
        said = [f"{len(problems)} of the program's ops cannot be exported to ONNX:"]
        for what, lines in problems.items():
            said += [f"  {what}", *(f"    {line}" for line in lines if line)]
        said.append("A lowering of your own can be given by custom_translation_table.")
        RuntimeError.__init__(self, "\n".join(said))
        self.problems = problems


class SymbolicValueError(OnnxExporterError):
    """A value of a program for which a lowering has no form.

    Args:
        msg: what is wrong.
        value: the value.

    For an example see `onnx.errors.UnsupportedOperatorError`.
    """

    def __init__(self, msg: str, value: Any) -> None:
        super().__init__(f"{msg} (value: {value})")
