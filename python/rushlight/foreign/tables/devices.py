"""What is accepted and does less: ops, libraries behind them, settings, devices."""

from rushlight.foreign.rows import EFFECT, FIXED, NO_EFFECT, ONE_KERNEL, Accepted, Flags

_NO_DEVICE = "there is no support for these devices"
_ONE_CPU = "there is one CPU, and what it is to do is done when a function returns"
_NO_CUDNN = "cuDNN is not used"

ACCEPTED = (
    # ops
    Accepted(
        "_convolution", "benchmark deterministic cudnn_enabled allow_tf32", NO_EFFECT, _NO_CUDNN
    ),
    Accepted(
        "batch_norm group_norm instance_norm layer_norm",
        "cudnn_enabled cudnn_enable",
        NO_EFFECT,
        _NO_CUDNN,
    ),
    Accepted("topk", "sorted", NO_EFFECT, "results are sorted, whether or not they have to be"),
    Accepted(
        "isin", "assume_unique", NO_EFFECT, "one way is the fastest with and without repetitions"
    ),
    Accepted(
        "histogramdd", "range", NO_EFFECT, "where edges are given; for numbers of bins it counts"
    ),
    Accepted("expand", "implicit", NO_EFFECT, "it says where the call comes from"),
    Accepted("_lu_with_info", "check_errors", NO_EFFECT, "`info` tells of them, as in PyTorch"),
    Accepted(
        "to_dense",
        "masked_grad",
        NO_EFFECT,
        "the gradient of a sparse tensor has the places that it has",
    ),
    Accepted(
        "_library.python_ops.is_pinned",
        "device",
        NO_EFFECT,
        "memory is pinned for the devices that there are",
    ),
    # products, stacks
    Accepted(
        "nn._products.scaled_mm nn._products._scaled_mm nn._products.scaled_grouped_mm",
        "use_fast_accum",
        NO_EFFECT,
        "products are summed in float32",
    ),
    Accepted(
        "utils._traceback.CapturedTraceback.extract",
        "script cpp",
        NO_EFFECT,
        "only Python frames are recorded",
    ),
    # libraries behind ops
    Flags(
        "backends.cudnn",
        "enabled benchmark benchmark_limit deterministic allow_tf32 fp32_precision",
        _NO_CUDNN,
    ),
    Accepted(
        "backends.cudnn.is_acceptable backends.cudnn.is_available backends.cudnn.version",
        "",
        FIXED,
        _NO_CUDNN,
    ),
    Accepted(
        "backends.mkl.is_available backends.mkldnn.is_acl_available backends.nnpack.is_available "
        "backends.opt_einsum.is_available backends.opt_einsum.get_opt_einsum",
        "",
        FIXED,
        "the library is not used",
    ),
    Accepted("backends.openmp.is_available", "", FIXED, "threads are the library's own"),
    Accepted("backends.cuda._PlanCache.*", "", NO_EFFECT, "plans of transforms are not kept"),
    Flags(
        "backends.mkldnn",
        "enabled deterministic allow_tf32 fp32_precision",
        "oneDNN is used where it is the fastest; results do not depend on the run",
    ),
    Flags("backends.opt_einsum", "enabled strategy", "operands are multiplied from left to right"),
    Flags("backends.nnpack", "enabled", "NNPACK is not used"),
    Accepted(
        "backends.mkl.verbose.* backends.mkldnn.verbose.*",
        "",
        NO_EFFECT,
        "RUSHLIGHT_VERBOSE=1 prints which kernels run",
    ),
    Flags(
        "backends.cuda.matmul",
        "allow_fp16_reduced_precision_reduction allow_bf16_reduced_precision_reduction "
        "allow_fp16_accumulation",
        "16-bit floats are summed in float32",
    ),
    Flags(
        "backends.cuda.matmul",
        "allow_tf32 fp32_precision",
        "float32 is multiplied in float32; it is `set_float32_matmul_precision` by other names",
    ),
    Accepted("backends.mha.set_fastpath_enabled", "", NO_EFFECT, ONE_KERNEL),
    Accepted(
        "backends.cuda.enable_* backends.cuda.sdp_kernel nn.attention.sdpa_kernel",
        "",
        NO_EFFECT,
        ONE_KERNEL,
    ),
    Accepted("backends.cuda.can_use_* backends.cuda.is_flash_*", "", FIXED, ONE_KERNEL),
    Accepted(
        "backends.cuda.preferred_*",
        "",
        NO_EFFECT,
        "each device has one library for a job",
    ),
    Accepted("backends.disable_global_flags", "", NO_EFFECT, "flags can always be set"),
    Accepted("backends.flags_frozen", "", FIXED, "flags can always be set"),
    Accepted("backends.mps.* backends.cusparselt.*", "", FIXED, "the library is not used"),
    # settings
    Accepted(
        "_settings.set_float32_matmul_precision",
        "",
        NO_EFFECT,
        "float32 is multiplied in float32; the setting can be read back",
    ),
    Accepted(
        "nn.parallel.comm.*",
        "buffer_size streams",
        NO_EFFECT,
        "tensors travel one by one, on the current streams",
    ),
    Accepted(
        "optim._functional.*",
        "has_complex",
        NO_EFFECT,
        "each tensor knows whether it is complex",
    ),
    Accepted(
        "foreign.extension._setting",
        "",
        NO_EFFECT,
        "`_C._jit_set_*` and `_C._jit_override_*` are made with it, and nothing is compiled",
    ),
    Accepted("foreign.extension._jit_can_fuse_on_cpu", "", FIXED, "nothing is compiled"),
    Accepted(
        "foreign.extension._log_api_usage_once", "event", NO_EFFECT, "API usage is not counted"
    ),
    Accepted(
        "_settings.set_num_interop_threads",
        "",
        NO_EFFECT,
        "ops run one after the other; the setting can be made once and read back",
    ),
    Accepted(
        "_settings.use_deterministic_algorithms _settings.set_deterministic_debug_mode",
        "",
        EFFECT,
        "new memory is filled; there is one algorithm for each op, on GPUs for some with atomic "
        "additions",
    ),
    # devices
    Accepted("foreign.absent.is_available foreign.absent.device_count", "", FIXED, _NO_DEVICE),
    Accepted("foreign.absent.manual_seed foreign.absent.empty_cache", "", NO_EFFECT, _NO_DEVICE),
    Accepted("cpu.*", "device", NO_EFFECT, "there is one CPU"),
    Accepted(
        "cpu.is_available cpu.device_count cpu.current_device cpu.is_initialized",
        "",
        FIXED,
        _ONE_CPU,
    ),
    Accepted("cpu.set_device cpu.synchronize cpu.StreamContext.*", "", NO_EFFECT, _ONE_CPU),
    Accepted("xpu.get_rng_state_all", "", FIXED, _NO_DEVICE),
    Accepted(
        "foreign.extension._get_accelerator", "check", NO_EFFECT, "a build is for one accelerator"
    ),
    Accepted("_tensor.Tensor.pin_memory", "device", NO_EFFECT, "there is one kind of accelerator"),
    Accepted(
        "cuda.devices.call_when_initialized",
        "kwargs",
        NO_EFFECT,
        "calls always run in the order in which they were made",
    ),
    Accepted("cuda.graphs.is_current_stream_capturing", "", FIXED, "there are no CUDA graphs"),
    Accepted("futures.Future.*", "devices", NO_EFFECT, "values are not moved between devices"),
    Accepted(
        "utils.checkpoint.set_device_states", "device_type", NO_EFFECT, "each device knows its type"
    ),
)
