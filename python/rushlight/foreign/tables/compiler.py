"""Paths of PyTorch's compiler, of transforms of functions and of traces."""

from rushlight.foreign.rows import (
    AS_WRITTEN,
    EFFECT,
    FIXED,
    KEPT,
    NO_EFFECT,
    PROTOCOL,
    SUBCLASSES,
    Accepted,
    Flags,
    Refused,
)

MODULES = {
    "_functorch.aot_autograd": {
        "_dynamo._aot": "aot_function aot_module make_boxed_compiler make_boxed_func",
    },
    "_functorch.apis": "foreign.functorch",
    "_functorch.compilers": {"_dynamo._aot": "nop"},
    "_functorch.config": "_subclasses.settings",
    "_functorch.deprecated": {
        "foreign.make_functional": "combine_state_for_ensemble make_functional "
        "make_functional_with_buffers",
    },
    "_functorch.eager_transforms": {
        "_transforms.reverse": "_slice_argnums=slice_argnums",
        "func": "debug_unwrap functionalize grad grad_and_value hessian jacfwd jacrev jvp vjp",
    },
    # The package `functorch`.
    "_functorch.package": {
        "foreign.make_functional": "FunctionalModule FunctionalModuleWithBuffers "
        "combine_state_for_ensemble make_functional make_functional_with_buffers",
        "func": "functionalize grad grad_and_value hessian jacfwd jacrev jvp vjp vmap",
        "fx.experimental.proxy_tensor": "make_fx",
    },
    "_functorch.package.compile": {
        "_dynamo._aot": "aot_function aot_module default_partition make_boxed_compiler "
        "make_boxed_func nop",
    },
    "_functorch.partitioners": {"_dynamo._aot": "default_partition"},
    "_functorch.make_functional": "foreign.make_functional",
    "_functorch.utils": {"foreign.idle": "enable_single_level_autograd_function"},
    "_functorch.vmap": "_transforms.vmap",
    "_inductor": {"compiler": "cudagraph_mark_step_begin"},
    "_inductor.config": "foreign.inductor",
    "_inductor.decomposition": {"foreign.idle": "register_decomposition"},
    "_jit_internal": {
        "jit": "Final Future export ignore is_scripting unused",
        "foreign.idle": "_copy_to_script_wrapper",
    },
    "_prims.utils": "_prims_common",
    "_subclasses.functional_tensor": {
        "foreign.idle": "disable_functional_mode mb_unwrap_functional_tensor",
    },
    "_vmap_internals": "foreign.old_vmap",
    "fx.passes.dialect.common.cse_pass": "fx.passes.cse_pass",
}

_SIZES = "sizes are plain numbers"

REFUSED = (
    Refused(
        "_subclasses.functional_tensor",
        "",
        "FunctionalTensor FunctionalTensorMode",
        "programs are not traced for a compiler",
    ),
    Refused(
        "export",
        "draft_export",
        "",
        "what depends on values has no form in a graph, and is named by export's own error",
    ),
    Refused("onnx", "", "ExportOptions", "export() takes keyword arguments"),
    Refused("onnx", "", "ExportableModule", "export() takes modules"),
    Refused("onnx", "", "InputObserver", "shapes are given by dynamic_shapes"),
    Refused("onnx", "dynamo_export", "", "it is export(dynamo=True)"),
    Refused(
        "onnx",
        "register_custom_op_symbolic unregister_custom_op_symbolic select_model_mode_for_export",
        "",
        "functions of the exporter that PyTorch had before have no counterpart; see docs/onnx.md",
    ),
    Refused("utils._sympy.numbers", "", "IntInfinity NegativeIntInfinity", _SIZES),
    Refused("utils._sympy.value_ranges", "", "ValueRanges", _SIZES),
)

ACCEPTED = (
    # compiling
    Accepted(
        "compiler.compile",
        "dynamic mode options name",
        NO_EFFECT,
        "nothing is assumed of sizes, and there is one way to compute a chain (docs/compile.md); "
        "modes and backends that PyTorch does not have are refused",
    ),
    Accepted("compiler.disable", "reason", NO_EFFECT, "it would be shown where a graph breaks"),
    Accepted(
        "compiler.set_stance.__init__",
        "skip_guard_eval_unsafe force_backend",
        NO_EFFECT,
        "there are no guards, and one way to compute a chain",
    ),
    Accepted(
        "compiler.allow_in_graph compiler.assume_constant_result compiler.substitute_in_graph "
        "compiler.cudagraph_mark_step_begin "
        "_dynamo.run _dynamo.forbid_in_graph _dynamo.graph_break",
        "",
        NO_EFFECT,
        AS_WRITTEN,
    ),
    Accepted("foreign.idle.register_decomposition", "ops", NO_EFFECT, "nothing is compiled"),
    Accepted("_dynamo._aot.nop", "_", NO_EFFECT, PROTOCOL),
    Accepted("_dynamo._aot.default_partition", "_joint_inputs", NO_EFFECT, PROTOCOL),
    Accepted(
        "_dynamo.utils.warn_once", "stacklevel", NO_EFFECT, "a warning names the program's line"
    ),
    Accepted("_dynamo.optimize", "options", NO_EFFECT, "as for compile"),
    Accepted(
        "backends.__allow_nonbracketed_mutation",
        "",
        NO_EFFECT,
        "flags can always be set",
    ),
    Accepted(
        "_dynamo.mark_* _dynamo.maybe_mark_*", "", NO_EFFECT, "no code depends on assumed sizes"
    ),
    Accepted(
        "compiler.is_dynamo_compiling compiler.list_backends "
        "_dynamo.eval_frame.is_dynamo_supported _dynamo.eval_frame.is_inductor_supported "
        "foreign.guards.TracingContext.try_get utils._triton.has_triton",
        "",
        FIXED,
        "nothing is compiled",
    ),
    Flags(
        "_dynamo.config",
        "cache_size_limit recompile_limit accumulated_cache_size_limit suppress_errors verbose "
        "disable dynamic_shapes automatic_dynamic_shapes assume_static_by_default "
        "capture_scalar_outputs capture_dynamic_output_shape_ops optimize_ddp "
        "inline_inbuilt_nn_modules skip_fwd_side_effects_in_bwd_under_checkpoint "
        "_experimental_support_context_fn_in_torch_utils_checkpoint",
        "nothing is compiled; other names can be set, too",
    ),
    Flags(
        "_inductor.config",
        "coordinate_descent_tuning coordinate_descent_check_all_directions epilogue_fusion "
        "max_autotune conv_1x1_as_mm fx_graph_cache force_fuse_int_mm_with_mul use_mixed_mm",
        "nothing is compiled; other names can be set, too",
    ),
    Accepted(
        "jit._library.*",
        "_stacklevel eps return_indices",
        NO_EFFECT,
        "warnings are not those of a place; what NAME_with_indices is asked for it gives anyway",
    ),
    Accepted(
        "jit._program.UnitFunction.graph_for",
        "args kwargs",
        NO_EFFECT,
        "programs are the same for all arguments",
    ),
    Accepted("jit.script", "optimize _rcb", NO_EFFECT, "programs are always optimised"),
    Accepted(
        "jit._trace.trace jit._trace.trace_module",
        "optimize _store_inputs",
        NO_EFFECT,
        "programs are always optimised, and saved without examples",
    ),
    Accepted(
        "jit._marks.ignore", "kwargs", NO_EFFECT, "profilers of NVIDIA and Intel are not called"
    ),
    Accepted(
        "jit.optimized_execution jit.set_fusion_strategy jit.enable_onednn_fusion",
        "",
        NO_EFFECT,
        "programs are always optimised, and nothing is fused",
    ),
    Accepted("jit._get_trace_graph", "strict", NO_EFFECT, "containers are always flattened"),
    Accepted("jit._marks.annotate", "the_type", NO_EFFECT, "the type is for the compiler"),
    Accepted("onnx.ops.aten_decompositions", "", FIXED, "graphs hold no op to replace"),
    Accepted(
        "jit._marks.is_scripting jit.onednn_fusion_enabled jit.strict_fusion.*",
        "",
        FIXED,
        "Python code is not compiled, and nothing is fused",
    ),
    # graphs
    Accepted(
        "fx._symbolic_trace.PHWithMeta.* fx.graph.Graph.* fx.passes.infra.partitioner.Partition.* "
        "fx.experimental.graph_gradual_typechecker.GraphTypeChecker.*",
        "ph_key tracer_extras id env",
        EFFECT,
        KEPT,
    ),
    Accepted(
        "fx._codegen.CodeGen.additional_globals fx.interpreter._Retracer.is_leaf_module "
        "fx.passes.infra.pass_base.PassBase.* fx.passes.infra.pass_manager.PassManager.check",
        "",
        EFFECT,
        SUBCLASSES,
    ),
    Accepted("fx.graph.Graph.find_nodes", "sort", NO_EFFECT, "the result is always sorted"),
    Accepted("fx.graph.Graph.python_code", "options", NO_EFFECT, "code is printed in one way"),
    Accepted(
        "fx.graph_module.GraphModule.print_readable",
        "include_stride include_device colored options",
        NO_EFFECT,
        "code is printed in one way",
    ),
    Accepted(
        "fx.node.Node.is_impure",
        "impure_random",
        NO_EFFECT,
        "random numbers that nobody uses are not drawn",
    ),
    Accepted(
        "fx.operator_schemas.normalize_function",
        "arg_types kwarg_types",
        NO_EFFECT,
        "the number and names of arguments choose the overload",
    ),
    Accepted(
        "fx.graph_module.GraphModule.__new__",
        "args kwargs",
        EFFECT,
        "`__init__` takes the arguments",
    ),
    Accepted(
        "fx.interpreter._Retracer.is_leaf_module", "m module_qualified_name", EFFECT, PROTOCOL
    ),
    Accepted(
        "fx._symbolic_trace.Tracer.is_leaf_module fx._symbolic_trace.Tracer.getattr "
        "fx.interpreter.Interpreter.output fx.interpreter.Transformer.placeholder "
        "fx.passes.infra.pass_base.PassBase.* fx.passes.infra.pass_manager.PassManager.check "
        "fx.passes.operator_support.OperatorSupportBase.is_node_supported",
        "module_qualified_name attr target kwargs graph_module module submodules node",
        EFFECT,
        SUBCLASSES,
    ),
    # gradients
    Accepted(
        "autograd.grad_mode.set_multithreading_enabled.*",
        "",
        NO_EFFECT,
        "backward runs on the thread that calls it",
    ),
    Accepted(
        "autograd.is_multithreading_enabled",
        "",
        FIXED,
        "backward runs on the thread that calls it",
    ),
    Accepted(
        "overrides.enable_reentrant_dispatch foreign.idle.disable_functional_mode "
        "foreign.idle.enable_single_level_autograd_function",
        "",
        NO_EFFECT,
        "modes and levels nest without being told",
    ),
    Accepted("autograd.function.InplaceFunction.*", "inplace", EFFECT, SUBCLASSES),
    Accepted(
        "utils.checkpoint.SelectiveCheckpointContext.*", "is_recompute", EFFECT, "policies ask it"
    ),
    Accepted(
        "autograd.gradcheck._StopGradient.*", "", EFFECT, "it tries gradients that are not there"
    ),
    Accepted(
        "autograd.gradcheck.*",
        "masked",
        NO_EFFECT,
        "use sparse.as_sparse_gradcheck for sparse inputs",
    ),
    Accepted("autograd.graph.save_on_cpu.*", "device_type", NO_EFFECT, "a tensor knows its device"),
    Accepted(
        "autograd.graph.set_warn_on_accumulate_grad_stream_mismatch",
        "",
        NO_EFFECT,
        "there is no such warning",
    ),
    Accepted("autograd.variable.Variable.*", "volatile", NO_EFFECT, "use `no_grad`"),
    Accepted(
        "autograd.function.Function.__init__",
        "args kwargs",
        NO_EFFECT,
        "Function classes are not instantiated",
    ),
    Accepted(
        "autograd.function.FunctionCtx.mark_shared_storage", "", NO_EFFECT, "views are detected"
    ),
    Accepted(
        "autograd.functional.jacobian", "vectorize", NO_EFFECT, "rows are computed one by one"
    ),
    Accepted(
        "_transforms.reverse.jacrev",
        "_preallocate_and_copy",
        NO_EFFECT,
        "chunks of rows are concatenated once",
    ),
)
