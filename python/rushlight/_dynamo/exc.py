"""What `compile` raises."""

from rushlight.compiler import InvalidBackend, TorchDynamoException

__all__ = ["InvalidBackend", "TorchDynamoException"]
