"""What `compile` and `export` raise."""

from rushlight.compiler import InvalidBackend, TorchDynamoException, Unsupported

__all__ = [
    "InvalidBackend",
    "TorchDynamoException",
    "UncapturedHigherOrderOpError",
    "Unsupported",
    "UserError",
]


class UserError(TorchDynamoException):
    """A program that is not exported because of what its author wrote."""


class UncapturedHigherOrderOpError(TorchDynamoException):
    """A branch or a loop that does not fit into a graph."""
