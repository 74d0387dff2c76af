"""What `compile` and `export` raise."""

from rushlight.compiler import InvalidBackend, TorchDynamoException

__all__ = ["InvalidBackend", "TorchDynamoException", "UserError"]


class UserError(TorchDynamoException):
    """A program that is not exported because of what its author wrote."""
