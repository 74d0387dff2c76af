"""Old names of types: `cuda.FloatTensor`."""

from rushlight._names.legacy import CUDA_TYPES

globals().update(CUDA_TYPES)
