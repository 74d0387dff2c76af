"""Settings of PyTorch's compiler that programs set; any name can be set, none changes anything."""

import types

from rushlight._accepted import flags_of

globals().update(flags_of("_inductor.config"))
triton = types.SimpleNamespace(unique_kernel_names=False, cudagraphs=False)
