"""Names that are accepted for PyTorch's programs: one list, with the effect of each name here.

A parameter, flag or function of PyTorch's that is taken but does not do what it does there has a
row in `ROWS`; a test finds those without one. From the list come the values of flags
(`backends/cudnn.py`), the page docs/accepted.md (`python -m rushlight._accepted`), and, with
RUSHLIGHT_VERBOSE=1, a line on stderr where a program uses what has no effect.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import importlib.abc
import importlib.machinery
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

NO_EFFECT = "no effect"  # taken; everything stays as it is
FIXED = "fixed value"  # gives the same whatever happens
REFUSED = "refused"  # any value but the default raises
EFFECT = "takes effect"  # listed because its neighbours do not


class Row(NamedTuple):
    """One thing or several that are accepted alike.

    Args:
        where: functions, classes or modules by where they are defined, below `rushlight`, or ops by
            their names; patterns with `*`, separated by spaces.
        names: their parameters, or the options of a command, separated by spaces; "" for the
            functions themselves; the values of a module's flags as a dict.
        effect: one of the four above.
        reason: why, or what counts instead.
    """

    where: str
    names: str | dict[str, Any]
    effect: str
    reason: str


_AS_WRITTEN = "programs run as they are written"
_ONE_KERNEL = "attention has one kernel"
_NO_DEVICE = "there is no support for these devices"
_PROTOCOL = "all functions of the kind are called with the same arguments"
_SUBCLASSES = "subclasses use them"
_KEPT = "kept for programs to read"
_ONE_CPU = "there is one CPU, and what it is to do is done when a function returns"
_NO_CUDNN = "cuDNN is not used"

ROWS = (
    # ops
    Row("_convolution", "benchmark deterministic cudnn_enabled allow_tf32", NO_EFFECT, _NO_CUDNN),
    Row(
        "batch_norm group_norm instance_norm layer_norm",
        "cudnn_enabled cudnn_enable",
        NO_EFFECT,
        _NO_CUDNN,
    ),
    Row("topk", "sorted", NO_EFFECT, "results are sorted, whether or not they have to be"),
    Row("isin", "assume_unique", NO_EFFECT, "one way is the fastest with and without repetitions"),
    Row("histogramdd", "range", NO_EFFECT, "where edges are given; for numbers of bins it counts"),
    Row("expand", "implicit", NO_EFFECT, "it says where the call comes from"),
    Row("_lu_with_info", "check_errors", NO_EFFECT, "`info` tells of them, as in PyTorch"),
    Row(
        "to_dense",
        "masked_grad",
        NO_EFFECT,
        "the gradient of a sparse tensor has the places that it has",
    ),
    # products, stacks
    Row(
        "nn._products.scaled_mm nn._products._scaled_mm",
        "use_fast_accum",
        NO_EFFECT,
        "products are summed in float32",
    ),
    Row(
        "utils._traceback.CapturedTraceback.extract",
        "script cpp",
        NO_EFFECT,
        "only Python frames are recorded",
    ),
    # quantisation
    Row(
        "ao.quantization.observer.PlaceholderObserver.* ao.quantization.observer.NoopObserver.*",
        "custom_op_name",
        NO_EFFECT,
        "there are no graphs that a custom op would be looked for in",
    ),
    Row(
        "ao.nn.quantized.modules.*.from_float ao.nn.quantized.dynamic.modules.*.from_float",
        "use_precomputed_fake_quant",
        NO_EFFECT,
        "layers without a weight ignore it; linear layers and convolutions read it",
    ),
    Row("ao.nn.quantized.modules.DeQuantize.from_float", "mod", NO_EFFECT, _PROTOCOL),
    Row("_fake_quantize._FakeQuantize.*", "inputs _", NO_EFFECT, _PROTOCOL),
    # extensions
    Row(
        "utils.cpp_extension.include_paths utils.cpp_extension.library_paths",
        "device_type",
        NO_EFFECT,
        "the headers and the library are the same for all devices",
    ),
    Row(
        "utils.cpp_extension.load*",
        "extra_cuda_cflags extra_sycl_cflags",
        NO_EFFECT,
        "sources for these devices are refused",
    ),
    Row(
        "utils.cpp_extension.load*",
        "keep_intermediates use_pch with_pytorch_error_handling",
        NO_EFFECT,
        "objects are kept, headers are light, exceptions always become Python's",
    ),
    # files
    Row(
        "utils.tensorboard._plugins.pr_curve_raw",
        "weights",
        NO_EFFECT,
        "the counts contain the weights already",
    ),
    Row(
        "utils.tensorboard.writer.SummaryWriter.add_graph",
        "use_strict_trace",
        NO_EFFECT,
        "the model is run, not traced",
    ),
    Row(
        "_archive.PyTorchFileWriter.__init__",
        "compute_crc32",
        NO_EFFECT,
        "checksums are always written",
    ),
    Row(
        "utils.serialization.config.save",
        {"compute_crc32": True, "use_pinned_memory_for_d2h": False},
        NO_EFFECT,
        "checksums are always written; tensors on a GPU are copied one after the other",
    ),
    Row(
        "utils.serialization.config.load",
        {"calculate_storage_offsets": False},
        NO_EFFECT,
        "the places of storages are read from the file",
    ),
    Row(
        "serialization.set_crc32_options",
        "",
        NO_EFFECT,
        "checksums are always written; the setting can be read again",
    ),
    # compiling
    Row(
        "compiler.compile",
        "fullgraph dynamic backend mode options name",
        NO_EFFECT,
        "programs run as they are written; modes and backends that PyTorch does not have are "
        "refused",
    ),
    Row("compiler.disable", "recursive reason", NO_EFFECT, _AS_WRITTEN),
    Row(
        "compiler.allow_in_graph compiler.assume_constant_result compiler.substitute_in_graph "
        "compiler.set_stance.* compiler.reset compiler.cudagraph_mark_step_begin "
        "_dynamo.run _dynamo.forbid_in_graph _dynamo.graph_break",
        "",
        NO_EFFECT,
        _AS_WRITTEN,
    ),
    Row("_dynamo.optimize", "backend nopython options", NO_EFFECT, _AS_WRITTEN),
    Row(
        "backends.__allow_nonbracketed_mutation",
        "",
        NO_EFFECT,
        "flags can always be set",
    ),
    Row("_dynamo.mark_* _dynamo.maybe_mark_*", "", NO_EFFECT, "no code depends on assumed sizes"),
    Row(
        "compiler.is_dynamo_compiling compiler.list_backends "
        "_dynamo.eval_frame.is_dynamo_supported _dynamo.eval_frame.is_inductor_supported "
        "_guards.TracingContext.try_get utils._triton.has_triton",
        "",
        FIXED,
        "nothing is compiled",
    ),
    Row(
        "_dynamo.config",
        {
            "cache_size_limit": 8,
            "recompile_limit": 8,
            "accumulated_cache_size_limit": 256,
            "suppress_errors": False,
            "verbose": False,
            "disable": False,
            "dynamic_shapes": True,
            "automatic_dynamic_shapes": True,
            "assume_static_by_default": True,
            "capture_scalar_outputs": False,
            "capture_dynamic_output_shape_ops": False,
            "optimize_ddp": True,
            "inline_inbuilt_nn_modules": True,
            "skip_fwd_side_effects_in_bwd_under_checkpoint": False,
            "_experimental_support_context_fn_in_torch_utils_checkpoint": False,
        },
        NO_EFFECT,
        "nothing is compiled; other names can be set, too",
    ),
    Row(
        "_inductor.config",
        {
            "coordinate_descent_tuning": False,
            "coordinate_descent_check_all_directions": False,
            "epilogue_fusion": True,
            "max_autotune": False,
            "conv_1x1_as_mm": False,
            "fx_graph_cache": True,
            "force_fuse_int_mm_with_mul": False,
            "use_mixed_mm": False,
        },
        NO_EFFECT,
        "nothing is compiled; other names can be set, too",
    ),
    Row(
        "jit._library.*",
        "_stacklevel eps return_indices",
        NO_EFFECT,
        "warnings are not those of a place; what NAME_with_indices is asked for it gives anyway",
    ),
    Row(
        "jit._program.UnitFunction.graph_for",
        "args kwargs",
        NO_EFFECT,
        "programs are the same for all arguments",
    ),
    Row("jit.script", "optimize _rcb", NO_EFFECT, "programs are always optimised"),
    Row(
        "jit._trace.trace jit._trace.trace_module",
        "optimize _store_inputs",
        NO_EFFECT,
        "programs are always optimised, and saved without examples",
    ),
    Row("jit._marks.ignore", "kwargs", NO_EFFECT, "profilers of NVIDIA and Intel are not called"),
    Row(
        "jit.optimized_execution jit.set_fusion_strategy jit.enable_onednn_fusion",
        "",
        NO_EFFECT,
        "programs are always optimised, and nothing is fused",
    ),
    Row("jit._get_trace_graph", "strict", NO_EFFECT, "containers are always flattened"),
    Row("jit._marks.annotate", "the_type", NO_EFFECT, "the type is for the compiler"),
    Row("onnx.ops.aten_decompositions", "", FIXED, "graphs hold no op to replace"),
    Row(
        "jit._marks.is_scripting jit.onednn_fusion_enabled jit.strict_fusion.*",
        "",
        FIXED,
        "Python code is not compiled, and nothing is fused",
    ),
    # graphs
    Row(
        "fx._symbolic_trace.PHWithMeta.* fx.graph.Graph.* fx.passes.infra.partitioner.Partition.* "
        "fx.experimental.graph_gradual_typechecker.GraphTypeChecker.*",
        "ph_key tracer_extras id env",
        EFFECT,
        _KEPT,
    ),
    Row(
        "fx._codegen.CodeGen.additional_globals fx.interpreter._Retracer.is_leaf_module "
        "fx.passes.infra.pass_base.PassBase.* fx.passes.infra.pass_manager.PassManager.check",
        "",
        EFFECT,
        _SUBCLASSES,
    ),
    Row("fx.graph.Graph.find_nodes", "sort", NO_EFFECT, "the result is always sorted"),
    Row("fx.graph.Graph.python_code", "options", NO_EFFECT, "code is printed in one way"),
    Row(
        "fx.graph_module.GraphModule.print_readable",
        "include_stride include_device colored options",
        NO_EFFECT,
        "code is printed in one way",
    ),
    Row(
        "fx.node.Node.is_impure",
        "impure_random",
        NO_EFFECT,
        "random numbers that nobody uses are not drawn",
    ),
    Row(
        "fx.operator_schemas.normalize_function",
        "arg_types kwarg_types",
        NO_EFFECT,
        "the number and names of arguments choose the overload",
    ),
    Row(
        "fx.graph_module.GraphModule.__new__",
        "args kwargs",
        EFFECT,
        "`__init__` takes the arguments",
    ),
    Row("fx.interpreter._Retracer.is_leaf_module", "m module_qualified_name", EFFECT, _PROTOCOL),
    Row(
        "fx._symbolic_trace.Tracer.is_leaf_module fx._symbolic_trace.Tracer.getattr "
        "fx.interpreter.Interpreter.output fx.interpreter.Transformer.placeholder "
        "fx.passes.infra.pass_base.PassBase.* fx.passes.infra.pass_manager.PassManager.check "
        "fx.passes.operator_support.OperatorSupportBase.is_node_supported",
        "module_qualified_name attr target kwargs graph_module module submodules node",
        EFFECT,
        _SUBCLASSES,
    ),
    # processes
    Row(
        "distributed.run",
        "local-addr start-method event-log-handler logs-specs",
        NO_EFFECT,
        "machines find each other by `--rdzv-endpoint`, programs are processes of their own, no "
        "log of events is kept, and `--redirects` and `--tee` say where output goes",
    ),
    Row("distributed.launch", "use-env", NO_EFFECT, "ranks are always in the environment"),
    Row(
        "distributed.elastic.multiprocessing.api.DefaultLogsSpecs.*",
        "local_ranks_filter",
        EFFECT,
        "the launcher reads it",
    ),
    Row(
        "distributed.autograd.is_available distributed.rpc.is_available",
        "",
        FIXED,
        "other processes cannot be called",
    ),
    Row(
        "distributed._process_group.ProcessGroup._set_default_backend",
        "backend",
        NO_EFFECT,
        "the first engine is that of a group",
    ),
    Row(
        "distributed._process_group.Work.* distributed._process_group.ProcessGroup.Options.*",
        "keep backend",
        EFFECT,
        "kept, alive or for programs to read",
    ),
    Row(
        "distributed._objects._tensor_to_object",
        "group",
        NO_EFFECT,
        "bytes are read on the CPU",
    ),
    Row(
        "distributed._world._store_based_barrier",
        "logging_interval",
        NO_EFFECT,
        "nothing is written while it waits",
    ),
    Row(
        "distributed.checkpoint.default_planner._validate_global_plan",
        "global_plan",
        NO_EFFECT,
        "the metadata holds all that is checked",
    ),
    Row(
        "distributed.algorithms.join.JoinHook.* "
        "distributed.checkpoint.staging.AsyncStager.* "
        "distributed.elastic.multiprocessing.errors.ErrorHandler.initialize",
        "",
        EFFECT,
        _SUBCLASSES,
    ),
    Row(
        "distributed.checkpoint.staging.*Stager.synchronize_staging "
        "distributed.checkpoint.staging.*Stager.close "
        "distributed.checkpoint.default_planner.DefaultLoadPlanner.commit_tensor "
        "distributed.checkpoint.filesystem._FileSystemWriter.set_up_storage_writer",
        "",
        NO_EFFECT,
        "copies are made at once, numbers are read in place, and files need no preparation",
    ),
    Row(
        "distributed.checkpoint.staging.DefaultStager.__init__ "
        "distributed.checkpoint.staging.StagingOptions.__init__",
        "config use_pinned_memory use_shared_memory use_async_staging use_non_blocking_copy",
        NO_EFFECT,
        "copies are made at once",
    ),
    Row("distributed.fsdp.wrap.always_wrap_policy", "", FIXED, "that is what it says"),
    Row(
        "distributed.fsdp._fully_shard.FSDPModule.set_is_last_backward "
        "distributed.fsdp._fully_shard.FSDPModule.set_post_optim_event",
        "",
        NO_EFFECT,
        "every backward ends with all gradients there, and there are no streams",
    ),
    Row(
        "distributed.fsdp.api.CPUOffload.__init__",
        "offload_params",
        NO_EFFECT,
        "parameters stay on the device where they are",
    ),
    Row(
        "distributed.fsdp.api.Sharded*Config.__init__",
        "_use_dtensor",
        NO_EFFECT,
        "the kind of a state follows from how its module is sharded",
    ),
    Row(
        "multiprocessing.set_sharing_strategy",
        "",
        NO_EFFECT,
        "memory is always shared by file descriptors; the setting can be read again",
    ),
    Row(
        "distributed.is_available",
        "",
        FIXED,
        "the module is always available; `is_gloo_available` may be False",
    ),
    Row(
        "distributed._world.is_ucc_available distributed._world.is_xccl_available",
        "",
        FIXED,
        "the backends are Gloo, MPI and NCCL",
    ),
    Row(
        "distributed._engines.ProcessGroupGloo.create_device distributed._world.split_group",
        "_",
        NO_EFFECT,
        "the backends do not use these settings",
    ),
    Row(
        "distributed.algorithms.ddp_comm_hooks.debugging_hooks.noop_hook "
        "distributed.algorithms.model_averaging.averagers.ModelAverager.* "
        "distributed.algorithms.join.JoinHook.post_hook "
        "distributed.algorithms.join.Joinable.join_hook "
        "distributed.optim.zero_redundancy_optimizer.ZeroRedundancyOptimizer.join_hook",
        "is_last_joiner kwargs params _state",
        EFFECT,
        "subclasses use the arguments, and hooks are called with them",
    ),
    Row(
        "distributed._functional_collectives.*",
        "tag",
        NO_EFFECT,
        "groups are passed as objects",
    ),
    Row(
        "nn.parallel.distributed.DistributedDataParallel.*",
        "dim output_device check_reduction skip_all_reduce_unused_params batched_grad_copy",
        NO_EFFECT,
        "a process computes on one device, where results stay; what is reduced is always checked; "
        "unused parameters travel with their bucket, and gradients are copied into it one by one",
    ),
    Row(
        "distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel.__init__",
        "cpu_offload limit_all_gathers",
        NO_EFFECT,
        "parameters stay on their device; at most one unit is gathered in advance",
    ),
    Row(
        "distributed.fsdp._fully_shard.fully_shard",
        "offload_policy",
        NO_EFFECT,
        "parameters stay on their device",
    ),
    Row(
        "distributed.fsdp._fully_shard.FSDPModule.*",
        "is_last_backward event enable",
        NO_EFFECT,
        "every backward ends with all gradients; there are no streams, and groups allocate nothing",
    ),
    Row(
        "distributed.tensor._dtensor.DTensor.__init__",
        "args kwargs",
        EFFECT,
        "`__new__` takes the arguments",
    ),
    Row(
        "distributed.fsdp._optim_states.full_optim_state_dict "
        "distributed.fsdp._optim_states.sharded_optim_state_dict",
        "optim_input group",
        NO_EFFECT,
        "an optimiser knows its parameters, and a unit knows its group",
    ),
    Row(
        "distributed.fsdp._unit._Unshard.forward distributed.fsdp._unit._Collect.*",
        "token leaves _grads",
        EFFECT,
        "autograd needs the arguments to record the graph",
    ),
    Row(
        "distributed.checkpoint.planner.*Planner.* distributed.checkpoint.storage.Storage*.* "
        "distributed.checkpoint.filesystem.FileSystemBase.* "
        "distributed.checkpoint.stateful.Stateful.*",
        "",
        EFFECT,
        _SUBCLASSES,
    ),
    Row(
        "distributed.checkpoint.default_planner.DefaultLoadPlanner.commit_tensor "
        "distributed.checkpoint.filesystem.* distributed.checkpoint.format_utils.* "
        "distributed.checkpoint.staging.DefaultStager.stage",
        "args kwargs is_coordinator metadata read_item tensor",
        EFFECT,
        _PROTOCOL,
    ),
    Row(
        "distributed.checkpoint.filesystem.*FileSystemWriter.__init__ "
        "distributed.checkpoint.hf_storage.*",
        "thread_count per_thread_copy_ahead cache_staged_state_dict thread_count_consolidation "
        "num_threads args kwargs",
        NO_EFFECT,
        "a process writes one file after the other, from new copies",
    ),
    Row(
        "distributed.checkpoint.default_planner.Default*Planner.__init__",
        "flatten_sharded_tensors dedup_replicated_tensors enable_plan_caching",
        NO_EFFECT,
        "data that several processes have is written once; each save makes its plans",
    ),
    Row(
        "distributed.checkpoint.staging.BlockingAsyncStager.__init__",
        "cache_staged_state_dict type_check",
        NO_EFFECT,
        "each save makes new copies",
    ),
    Row(
        "distributed.checkpoint.state_dict_saver.async_save",
        "async_checkpointer_type",
        NO_EFFECT,
        "saving always runs in a thread",
    ),
    Row(
        "distributed.fsdp.wrap.always_wrap_policy distributed.fsdp.wrap.lambda_auto_wrap_policy "
        "distributed.fsdp.wrap.transformer_auto_wrap_policy "
        "distributed.fsdp.wrap.ModuleWrapPolicy.* distributed.fsdp.wrap.CustomPolicy.*",
        "args kwargs nonwrapped_numel",
        EFFECT,
        _PROTOCOL,
    ),
    # libraries behind ops
    Row(
        "backends.cudnn",
        {
            "enabled": True,
            "benchmark": False,
            "benchmark_limit": 10,
            "deterministic": False,
            "allow_tf32": True,
            "fp32_precision": "none",
        },
        NO_EFFECT,
        _NO_CUDNN,
    ),
    Row(
        "backends.cudnn.is_acceptable backends.cudnn.is_available backends.cudnn.version",
        "",
        FIXED,
        _NO_CUDNN,
    ),
    Row(
        "backends.mkl.is_available backends.mkldnn.is_acl_available backends.nnpack.is_available "
        "backends.opt_einsum.is_available backends.opt_einsum.get_opt_einsum",
        "",
        FIXED,
        "the library is not used",
    ),
    Row("backends.openmp.is_available", "", FIXED, "threads are the library's own"),
    Row("backends.cuda._PlanCache.*", "", NO_EFFECT, "plans of transforms are not kept"),
    Row(
        "backends.mkldnn",
        {"enabled": True, "deterministic": False, "allow_tf32": True, "fp32_precision": "none"},
        NO_EFFECT,
        "oneDNN is used where it is the fastest; results do not depend on the run",
    ),
    Row(
        "backends.opt_einsum",
        {"enabled": False, "strategy": None},
        NO_EFFECT,
        "operands are multiplied from left to right",
    ),
    Row("backends.nnpack", {"enabled": False}, NO_EFFECT, "NNPACK is not used"),
    Row(
        "backends.mkl.verbose.* backends.mkldnn.verbose.*",
        "",
        NO_EFFECT,
        "RUSHLIGHT_VERBOSE=1 prints which kernels run",
    ),
    Row(
        "backends.cuda.matmul",
        {
            "allow_fp16_reduced_precision_reduction": True,
            "allow_bf16_reduced_precision_reduction": True,
            "allow_fp16_accumulation": False,
        },
        NO_EFFECT,
        "16-bit floats are summed in float32",
    ),
    Row(
        "backends.cuda.matmul",
        {"allow_tf32": False, "fp32_precision": "ieee"},
        NO_EFFECT,
        "float32 is multiplied in float32; it is `set_float32_matmul_precision` by other names",
    ),
    Row("backends.mha.set_fastpath_enabled", "", NO_EFFECT, _ONE_KERNEL),
    Row(
        "backends.cuda.enable_* backends.cuda.sdp_kernel nn.attention.sdpa_kernel",
        "",
        NO_EFFECT,
        _ONE_KERNEL,
    ),
    Row("backends.cuda.can_use_* backends.cuda.is_flash_*", "", FIXED, _ONE_KERNEL),
    Row(
        "backends.cuda.preferred_*",
        "",
        NO_EFFECT,
        "each device has one library for a job",
    ),
    Row("backends.disable_global_flags", "", NO_EFFECT, "flags can always be set"),
    Row("backends.flags_frozen", "", FIXED, "flags can always be set"),
    Row("backends.mps.* backends.cusparselt.*", "", FIXED, "the library is not used"),
    # settings
    Row(
        "_settings.set_float32_matmul_precision",
        "",
        NO_EFFECT,
        "float32 is multiplied in float32; the setting can be read back",
    ),
    Row(
        "nn.parallel.comm.*",
        "buffer_size streams",
        NO_EFFECT,
        "tensors travel one by one, on the current streams",
    ),
    Row(
        "optim._functional.*",
        "has_complex",
        NO_EFFECT,
        "each tensor knows whether it is complex",
    ),
    Row(
        "_extension._setting",
        "",
        NO_EFFECT,
        "`_C._jit_set_*` and `_C._jit_override_*` are made with it, and nothing is compiled",
    ),
    Row("_extension._jit_can_fuse_on_cpu", "", FIXED, "nothing is compiled"),
    Row("_extension._log_api_usage_once", "event", NO_EFFECT, "API usage is not counted"),
    Row(
        "_settings.set_num_interop_threads",
        "",
        NO_EFFECT,
        "ops run one after the other; the setting can be made once and read back",
    ),
    Row(
        "_settings.use_deterministic_algorithms _settings.set_deterministic_debug_mode",
        "",
        EFFECT,
        "new memory is filled; there is one algorithm for each op, on GPUs for some with atomic "
        "additions",
    ),
    # devices
    Row("_absent.is_available _absent.device_count", "", FIXED, _NO_DEVICE),
    Row("_absent.manual_seed _absent.empty_cache", "", NO_EFFECT, _NO_DEVICE),
    Row("cpu.*", "device", NO_EFFECT, "there is one CPU"),
    Row(
        "cpu.is_available cpu.device_count cpu.current_device cpu.is_initialized",
        "",
        FIXED,
        _ONE_CPU,
    ),
    Row("cpu.set_device cpu.synchronize cpu.StreamContext.*", "", NO_EFFECT, _ONE_CPU),
    Row("xpu.get_rng_state_all", "", FIXED, _NO_DEVICE),
    Row("_extension._get_accelerator", "check", NO_EFFECT, "a build is for one accelerator"),
    Row("_tensor.Tensor.pin_memory", "device", NO_EFFECT, "there is one kind of accelerator"),
    Row(
        "cuda.devices.call_when_initialized",
        "kwargs",
        NO_EFFECT,
        "calls always run in the order in which they were made",
    ),
    Row("cuda.graphs.is_current_stream_capturing", "", FIXED, "there are no CUDA graphs"),
    Row("futures.Future.*", "devices", NO_EFFECT, "values are not moved between devices"),
    Row(
        "utils.checkpoint.set_device_states", "device_type", NO_EFFECT, "each device knows its type"
    ),
    # gradients
    Row(
        "autograd.grad_mode.set_multithreading_enabled.*",
        "",
        NO_EFFECT,
        "backward runs on the thread that calls it",
    ),
    Row(
        "autograd.is_multithreading_enabled",
        "",
        FIXED,
        "backward runs on the thread that calls it",
    ),
    Row(
        "overrides.enable_reentrant_dispatch _subclasses.functional_tensor.disable_functional_mode "
        "_functorch.utils.enable_single_level_autograd_function",
        "",
        NO_EFFECT,
        "modes and levels nest without being told",
    ),
    Row("autograd.function.InplaceFunction.*", "inplace", EFFECT, _SUBCLASSES),
    Row("utils.checkpoint.SelectiveCheckpointContext.*", "is_recompute", EFFECT, "policies ask it"),
    Row("autograd.gradcheck._StopGradient.*", "", EFFECT, "it tries gradients that are not there"),
    Row(
        "autograd.gradcheck.*",
        "masked",
        NO_EFFECT,
        "use sparse.as_sparse_gradcheck for sparse inputs",
    ),
    Row("autograd.graph.save_on_cpu.*", "device_type", NO_EFFECT, "a tensor knows its device"),
    Row(
        "autograd.graph.set_warn_on_accumulate_grad_stream_mismatch",
        "",
        NO_EFFECT,
        "there is no such warning",
    ),
    Row("autograd.variable.Variable.*", "volatile", NO_EFFECT, "use `no_grad`"),
    Row(
        "autograd.function.Function.__init__",
        "args kwargs",
        NO_EFFECT,
        "Function classes are not instantiated",
    ),
    Row("autograd.function.FunctionCtx.mark_shared_storage", "", NO_EFFECT, "views are detected"),
    Row("autograd.functional.jacobian", "vectorize", NO_EFFECT, "rows are computed one by one"),
    Row(
        "_transforms.jacrev",
        "_preallocate_and_copy",
        NO_EFFECT,
        "chunks of rows are concatenated once",
    ),
    # nn
    Row("nn.modules.module.Module.extra_repr", "", EFFECT, _SUBCLASSES),
    Row("nn.modules.rnn.RNNBase.flatten_parameters", "", NO_EFFECT, "weights lie where they lie"),
    Row(
        "nn.attention.SDPAParams.*",
        "query key value attn_mask dropout is_causal enable_gqa",
        EFFECT,
        _KEPT,
    ),
    Row("nn.attention._cur_sdpa_kernel_backends", "with_priority", NO_EFFECT, _ONE_KERNEL),
    Row(
        "nested._functions._nested_tensor_from_mask_left_aligned",
        "t",
        NO_EFFECT,
        "the mask alone says it",
    ),
    Row("masked._ops._input_mask", "args", NO_EFFECT, _PROTOCOL),
    Row(
        "nn.modules.transformer.TransformerEncoder.*",
        "enable_nested_tensor mask_check",
        NO_EFFECT,
        "padded positions are computed like all others",
    ),
    Row(
        "nn.parallel.data_parallel.DataParallel.*",
        "output_device dim",
        NO_EFFECT,
        "the module runs on one device",
    ),
    Row("nn.utils.clip_grad.*", "foreach", NO_EFFECT, "there is one implementation"),
    Row("nn.attention.flex_attention.flex_attention", "kernel_options", NO_EFFECT, _ONE_KERNEL),
    Row(
        "nn.attention.flex_attention.create_block_mask "
        "nn.attention.flex_attention.BlockMask.from_kv_blocks",
        "_compile compute_dq_write_order dq_kv_order _",
        NO_EFFECT,
        "the mask is made whole, block after block",
    ),
    Row(
        "nn.attention.flex_attention.noop_mask nn.utils.prune.*.compute_mask", "", EFFECT, _PROTOCOL
    ),
    Row("nn.modules.linear.Identity.*", "args kwargs", NO_EFFECT, "all arguments are ignored"),
    Row("nn.modules.lazy.*.initialize_parameters", "", EFFECT, _SUBCLASSES),
    # optim
    Row("optim.*", "foreach fused", NO_EFFECT, "one pass steps all parameters"),
    Row("optim.*", "capturable", NO_EFFECT, "there are no graphs that a step could be part of"),
    Row(
        "optim._imported._disable_dynamo_if_unsupported", "single_tensor_fn", NO_EFFECT, _AS_WRITTEN
    ),
    Row("optim.lr_scheduler.ReduceLROnPlateau._reduce_lr", "epoch", EFFECT, _SUBCLASSES),
    # data
    Row(
        "utils.data.dataloader.DataLoader.*",
        "worker_init_fn multiprocessing_context in_order",
        EFFECT,
        "its iterators read them",
    ),
    Row(
        "utils.data.datapipes._decorator.functional_datapipe.*",
        "enable_df_api_tracing",
        NO_EFFECT,
        "datapipes are not traced",
    ),
    Row("utils.data.datapipes.datapipe.IterDataPipe.reset", "", EFFECT, _SUBCLASSES),
    Row(
        "utils.data.datapipes.iter.sharding.ShardingFilterIterDataPipe.is_shardable",
        "",
        FIXED,
        "that is what it says",
    ),
    Row(
        "utils.data.dataloader.DataLoader.*",
        "pin_memory_device",
        NO_EFFECT,
        "pinned memory suits any GPU",
    ),
    Row(
        "utils.data.graph.traverse",
        "only_datapipe",
        NO_EFFECT,
        "only datapipes are visited",
    ),
    Row("utils.data._utils.collate.collate_*_fn", "collate_fn_map", EFFECT, _PROTOCOL),
    # profiling
    Row("profiler.profiler.kineto_available", "", FIXED, "the library is not used"),
    Row(
        "profiler._events.FunctionEvent.*",
        "use_device device_memory_usage",
        EFFECT,
        _KEPT,
    ),
    Row(
        "utils.benchmark.utils.common.TaskSpec.*",
        "global_setup",
        NO_EFFECT,
        "it is of programs in C++, which are refused",
    ),
    Row(
        "autograd.profiler.profile.*",
        "use_cuda use_device use_kineto use_cpu experimental_config acc_events "
        "custom_trace_id_callback",
        NO_EFFECT,
        "ops on the CPU are recorded",
    ),
    Row(
        "profiler.profiler.profile.*",
        "experimental_config execution_trace_observer acc_events use_cuda "
        "custom_trace_id_callback post_processing_timeout_s",
        NO_EFFECT,
        "ops on the CPU are recorded",
    ),
    Row(
        "profiler.profiler.profile.toggle_collection_dynamic",
        "",
        NO_EFFECT,
        "what is recorded does not change during a run",
    ),
    Row(
        "autograd.profiler.emit_*",
        "enabled",
        REFUSED,
        "profilers of NVIDIA and Intel are not called",
    ),
    Row(
        "autograd.profiler.emit_*",
        "record_shapes",
        NO_EFFECT,
        "profilers of NVIDIA and Intel are not called",
    ),
    Row(
        "profiler._events.EventList.*",
        "use_device",
        NO_EFFECT,
        "ops on the CPU are recorded",
    ),
    Row("utils._flops.*_flop", "", EFFECT, _PROTOCOL),
    Row(
        "utils.flop_counter.FlopCounterMode.*",
        "mods",
        NO_EFFECT,
        "modules are found from their calls",
    ),
    Row("utils.benchmark.utils.compare.Compare.colorize", "", NO_EFFECT, "tables have no colours"),
    Row("utils.tensorboard.*", "max_bins", NO_EFFECT, "all bins are written"),
    Row(
        "utils.tensorboard.*",
        "hparam_domain_discrete",
        NO_EFFECT,
        "discrete domains are not written",
    ),
    Row("utils.tensorboard.*", "max_queue", NO_EFFECT, "events are written at once"),
    Row(
        "utils.tensorboard.*",
        "new_style double_precision",
        NO_EFFECT,
        "scalars are written in one format",
    ),
    # the rest
    Row(
        "distributions._multivariate._batch_lowrank_logdet",
        "W",
        NO_EFFECT,
        "the other two arguments say it",
    ),
    Row("utils._pytree_nodes._register_pytree_node", "unused", NO_EFFECT, "older names of options"),
    Row(
        "vision.disable_beta_transforms_warning",
        "",
        NO_EFFECT,
        "transforms.v2 warn of nothing that it could silence",
    ),
    Row(
        "vision.datasets.vision.VisionDataset.extra_repr "
        "vision.transforms.v2._transform.Transform.check_inputs "
        "vision.transforms.v2._transform.Transform.make_params",
        "",
        EFFECT,
        _SUBCLASSES,
    ),
    Row(
        "distributions.*.*Transform.log_abs_det_jacobian",
        "x y",
        EFFECT,
        "each transform gets both values and uses the cheaper one",
    ),
    Row(
        "distributions.transforms.CorrCholeskyTransform.log_abs_det_jacobian",
        "intermediates",
        NO_EFFECT,
        "nothing is kept between calls",
    ),
    Row("hub.*", "skip_validation", NO_EFFECT, "no server is asked before the download"),
    Row("hub.load_state_dict_from_url", "weights_only", FIXED, "files are read as data"),
    Row("library.*", "alias_analysis _stacklevel", NO_EFFECT, "the values are not used"),
    Row(
        "nn.functional.softmax nn.functional.softmin nn.functional.log_softmax "
        "nn.functional._get_softmax_dim",
        "_stacklevel stacklevel",
        NO_EFFECT,
        "warnings find the program's line themselves",
    ),
    Row(
        "storage._warn_typed_storage_removal",
        "stacklevel",
        NO_EFFECT,
        "warnings find the program's line themselves",
    ),
    Row(
        "library.register_fake library.Library._register_fake",
        "allow_override",
        NO_EFFECT,
        "the latest registration is used",
    ),
    Row("library._Kernel.call_boxed", "keyset", NO_EFFECT, "the function belongs to one device"),
    Row("_library.opcheck.opcheck", "atol rtol", NO_EFFECT, "values are not compared"),
    Row(
        "_subclasses.fake_tensor.FakeTensorMode.*",
        "static_shapes source symbolic_context allow_fallback_kernels export",
        NO_EFFECT,
        "sizes are numbers, and ops without a rule for them are refused",
    ),
    Row("export._export.export", "strict", NO_EFFECT, "nothing analyses bytecode"),
    Row(
        "export._decompositions.*",
        "cudnn_enable cudnn_enabled _ __",
        NO_EFFECT,
        "arguments of ops for other devices, and copies that a graph makes anyway",
    ),
    Row(
        "export._decompose._Decomposer.output", "target kwargs", NO_EFFECT, "an output has neither"
    ),
    Row(
        "export.unflatten.FlatArgsAdapter.adapt",
        "target_spec input_spec input_args metadata obj",
        NO_EFFECT,
        "subclasses say what it does",
    ),
    Row("_prims_common.*", "allow_rhs_unbacked", NO_EFFECT, "sizes are numbers"),
    Row(
        "multiprocessing.spawn.start_processes",
        "numa_options",
        NO_EFFECT,
        "the operating system decides",
    ),
    Row(
        "utils.checkpoint.create_selective_checkpoint_contexts",
        "allow_cache_entry_mutation",
        NO_EFFECT,
        "cached values are not checked for changes",
    ),
    # sparse tensors and images
    Row("sparse._make.*", "check_invariants", NO_EFFECT, "indices are always checked"),
    Row("sparse._make.*", "pin_memory check_pinning", NO_EFFECT, "memory is not pinned"),
    Row("sparse._make.*", "layout", NO_EFFECT, "the function's name gives the layout"),
    Row(
        "vision.datasets.utils.download_url",
        "max_redirect_hops",
        NO_EFFECT,
        "urllib limits redirects",
    ),
    Row(
        "vision.datasets.video_utils.VideoClips.* vision.datasets.videos.*",
        "_video_width _video_height _video_min_dimension _video_max_dimension _audio_samples "
        "_audio_channels",
        NO_EFFECT,
        "PyAV decodes at the size of the video, as in torchvision",
    ),
    Row(
        "vision.datasets.videos.Kinetics.*",
        "num_download_workers",
        NO_EFFECT,
        "parts are downloaded one after the other",
    ),
    Row(
        "vision.models.*", "kwargs", NO_EFFECT, "torchvision's functions accept any arguments, too"
    ),
    Row("vision.models.video.resnet.*", "midplanes", NO_EFFECT, _PROTOCOL),
    Row("vision.ops.feature_pyramid_network.LastLevelMaxPool.forward", "y", NO_EFFECT, _PROTOCOL),
    Row("vision.transforms.v2.*.transform", "params", NO_EFFECT, _PROTOCOL),
    Row("vision.transforms.v2.*.make_params", "flat_inputs", NO_EFFECT, _PROTOCOL),
    Row("vision.transforms.v2.*.check_inputs", "flat_inputs", NO_EFFECT, _PROTOCOL),
)


def rows_of(path: str) -> Iterator[Row]:
    """The rows of a function, class or module, by its path below `rushlight`."""
    for row in ROWS:
        if any(fnmatch.fnmatchcase(path, pattern) for pattern in row.where.split()):
            yield row


def flags_of(path: str) -> dict[str, Any]:
    """The flags of a module, with the values that they have at first."""
    return next(dict(row.names) for row in rows_of(path) if isinstance(row.names, dict))


# ---- the page ----


_HEAD = """\
# What is accepted

This page lists names of PyTorch that rushlight accepts but that do less here, or nothing.

`python -m rushlight._accepted` writes it from the list in `python/rushlight/_accepted.py`. With
`RUSHLIGHT_VERBOSE=1` a program prints on stderr which of the names without effect it uses.

| effect | meaning |
|---|---|
| no effect | the name is accepted and ignored |
| fixed value | the result is always the same |
| refused | any value but the default raises |
| takes effect | the name works; it is listed because similar names do not |

| function or class | names | effect | reason |
|---|---|---|---|"""


def page() -> str:
    """The list as Markdown."""
    lines = [_HEAD]
    for row in ROWS:
        # Where things are public: modules that begin with _ are not, but for two of PyTorch's.
        places = row.where.replace("_absent", "{mps,mtia,xpu}")
        places = re.sub(r"(?<![\w.])_(?!dynamo|inductor)\w+\.|\._\w+(?=\.)", "", places)
        where = ", ".join(f"`{place.removesuffix('.*')}`" for place in places.split())
        names = row.names if isinstance(row.names, dict) else row.names.split()
        what = ", ".join(f"`{name}`" for name in names)
        lines.append(f"| {where} | {what} | {row.effect} | {row.reason} |")
    return "\n".join([*lines, ""])


# ---- notes of RUSHLIGHT_VERBOSE ----

_noted: set[tuple[str, str]] = set()


def _note(row: Row, name: str, what: str) -> None:
    """Says once for a name of a row that it has no effect."""
    if (row.where, name) not in _noted:
        _noted.add((row.where, name))
        print(f"rushlight: {what} has no effect: {row.reason}", file=sys.stderr)


def _with_notes(path: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that says so when it is given what has no effect."""
    rows = [r for r in rows_of(path) if r.effect == NO_EFFECT and isinstance(r.names, str)]
    if not rows:
        return function
    signature = inspect.signature(function)
    path = path.removesuffix(".__init__")

    @functools.wraps(function)
    def noting(*args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(TypeError):  # of arguments that do not fit: the function raises it
            given = signature.bind(*args, **kwargs).arguments
            for row in rows:
                if not row.names:
                    _note(row, path, f"{path}()")
                for name in given.keys() & str(row.names).split():
                    if given[name] is not signature.parameters[name].default:
                        _note(row, name, f"{path}({name}=...)")
        return function(*args, **kwargs)

    return noting


class _Flags(types.ModuleType):
    """A module whose flags say so when they are set."""

    def __setattr__(self, name: str, value: Any) -> None:
        path = self.__name__.removeprefix("rushlight.")
        for row in rows_of(path):
            if isinstance(row.names, dict) and name in row.names:
                _note(row, name, f"{path}.{name}")
        super().__setattr__(name, value)


def _put_notes(module: types.ModuleType) -> None:
    path = module.__name__.removeprefix("rushlight.")
    if any(isinstance(row.names, dict) for row in rows_of(path)):
        module.__class__ = _Flags
    spaces: list[tuple[str, Any]] = [(path, module)]
    for name, value in vars(module).items():
        if inspect.isclass(value) and value.__module__ == module.__name__:
            spaces.append((f"{path}.{name}", value))
    for prefix, space in spaces:
        for name, value in list(vars(space).items()):
            own = inspect.isfunction(value) and value.__module__ == module.__name__
            if own and (name[0] != "_" or name in ("__init__", "__new__")):
                noting = _with_notes(f"{prefix}.{name}", value)
                if noting is not value:
                    setattr(space, name, noting)


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs a module, then puts notes into it."""

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        _put_notes(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of this package as Python does."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if not fullname.startswith("rushlight."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def watch() -> None:
    """Puts notes into all modules of the package, those that are loaded later, too."""
    for name, module in list(sys.modules.items()):
        if name.startswith("rushlight."):
            _put_notes(module)
    sys.meta_path.insert(0, _Finder())


if __name__ == "__main__":
    print(page(), end="")
