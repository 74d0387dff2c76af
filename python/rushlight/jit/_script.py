"""The types of compiled code by the module that PyTorch has them in."""

from __future__ import annotations

from rushlight.jit import (
    Attribute,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    ScriptWarning,
    script,
    script_method,
)

__all__ = [
    "Attribute",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "ScriptWarning",
    "script",
    "script_method",
]
