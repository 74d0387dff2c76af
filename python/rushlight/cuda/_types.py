"""Old names of types: `cuda.FloatTensor`."""

from rushlight._legacy import CUDA_TYPES

globals().update(CUDA_TYPES)
