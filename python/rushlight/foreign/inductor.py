"""Settings of PyTorch's compiler that programs set; any name can be set, none changes anything."""

import types

coordinate_descent_tuning = False
coordinate_descent_check_all_directions = False
epilogue_fusion = True
max_autotune = False
conv_1x1_as_mm = False
fx_graph_cache = True
force_fuse_int_mm_with_mul = False
use_mixed_mm = False
triton = types.SimpleNamespace(unique_kernel_names=False, cudagraphs=False)
