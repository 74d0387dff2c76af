"""Datapipes over samples with indices."""

from ..datapipe import MapDataPipe
from .steps import BatcherMapDataPipe as Batcher
from .steps import ConcaterMapDataPipe as Concater
from .steps import MapperMapDataPipe as Mapper
from .steps import SequenceWrapperMapDataPipe as SequenceWrapper
from .steps import ShufflerIterDataPipe as Shuffler
from .steps import ZipperMapDataPipe as Zipper

__all__ = [
    "Batcher",
    "Concater",
    "MapDataPipe",
    "Mapper",
    "SequenceWrapper",
    "Shuffler",
    "Zipper",
]
