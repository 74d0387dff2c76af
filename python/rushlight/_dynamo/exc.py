"""What `compile` raises."""

__all__ = ["InvalidBackend", "TorchDynamoException"]


class TorchDynamoException(RuntimeError):
    """The base of what compiling raises."""


class InvalidBackend(TorchDynamoException):
    """There is no compiler of this name."""
