"""`SummaryWriter`: writes files for TensorBoard. It needs no other package."""

from rushlight.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
