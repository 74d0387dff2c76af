"""Paths of layers, optimisers, files and helpers."""

from rushlight.foreign.rows import EFFECT, FIXED, NO_EFFECT, PROTOCOL, SUBCLASSES, Accepted, Refused

MODULES = {
    "_VF": "foreign.table_of_ops",
    "_custom_op.impl": "foreign.custom_op",
    "_custom_ops": "foreign.custom_ops",
    "_guards": "foreign.guards",
    "_lobpcg": "sparse._lobpcg",
    "_logging": "foreign.logging",
    "_utils_internal": "foreign.paths",
    "_weights_only_unpickler": "_files.weights_only",
    # Earlier places, which pickles name.
    "_fake_quantize": "_quantized.fake",
    "_info": "_names.limits",
    "_tags": "_library.tags",
    "autograd.profiler_util": {
        "profiler._events": "EventList FunctionEvent FunctionEventAvg Interval",
        "profiler._table": "_format_memory=format_memory _format_time=format_time",
    },
    "utils.model_zoo": {
        "hub": "_get_torch_home load_state_dict_from_url load_url=load_state_dict_from_url "
        "_download_url_to_file=download_url_to_file",
    },
}

REFUSED = (
    Refused(
        "utils.mkldnn",
        "to_mkldnn",
        "",
        "modules call oneDNN by themselves where it is faster, on tensors as they are",
    ),
)

ACCEPTED = (
    Accepted("_lazy._ForeignFinder.find_spec", "path target", NO_EFFECT, PROTOCOL),
    # the rest
    Accepted(
        "distributions._multivariate._batch_lowrank_logdet",
        "W",
        NO_EFFECT,
        "the other two arguments say it",
    ),
    Accepted(
        "utils._pytree_nodes._register_pytree_node", "unused", NO_EFFECT, "older names of options"
    ),
    Accepted(
        "vision.disable_beta_transforms_warning",
        "",
        NO_EFFECT,
        "transforms.v2 warn of nothing that it could silence",
    ),
    Accepted(
        "vision.datasets.vision.VisionDataset.extra_repr "
        "vision.transforms.v2._transform.Transform.check_inputs "
        "vision.transforms.v2._transform.Transform.make_params",
        "",
        EFFECT,
        SUBCLASSES,
    ),
    Accepted(
        "distributions.*.*Transform.log_abs_det_jacobian",
        "x y",
        EFFECT,
        "each transform gets both values and uses the cheaper one",
    ),
    Accepted(
        "distributions.transforms.CorrCholeskyTransform.log_abs_det_jacobian",
        "intermediates",
        NO_EFFECT,
        "nothing is kept between calls",
    ),
    Accepted("hub.*", "skip_validation", NO_EFFECT, "no server is asked before the download"),
    Accepted("hub.load_state_dict_from_url", "weights_only", FIXED, "files are read as data"),
    Accepted("library.*", "alias_analysis _stacklevel", NO_EFFECT, "the values are not used"),
    Accepted(
        "nn.functional.softmax nn.functional.softmin nn.functional.log_softmax "
        "nn.functional._get_softmax_dim",
        "_stacklevel stacklevel",
        NO_EFFECT,
        "warnings find the program's line themselves",
    ),
    Accepted(
        "storage._warn_typed_storage_removal",
        "stacklevel",
        NO_EFFECT,
        "warnings find the program's line themselves",
    ),
    Accepted(
        "library.register_fake library.Library._register_fake",
        "allow_override",
        NO_EFFECT,
        "the latest registration is used",
    ),
    Accepted(
        "library._Kernel.call_boxed", "keyset", NO_EFFECT, "the function belongs to one device"
    ),
    Accepted("_library.opcheck.opcheck", "atol rtol", NO_EFFECT, "values are not compared"),
    Accepted(
        "_subclasses.fake_tensor.FakeTensorMode.*",
        "static_shapes source symbolic_context allow_fallback_kernels export",
        NO_EFFECT,
        "sizes are numbers, and ops without a rule for them are refused",
    ),
    Accepted("export._export.export", "strict", NO_EFFECT, "nothing analyses bytecode"),
    Accepted(
        "export._decompositions.*",
        "cudnn_enable cudnn_enabled _ __",
        NO_EFFECT,
        "arguments of ops for other devices, and copies that a graph makes anyway",
    ),
    Accepted(
        "export._decompose._Decomposer.output", "target kwargs", NO_EFFECT, "an output has neither"
    ),
    Accepted(
        "export.unflatten.FlatArgsAdapter.adapt",
        "target_spec input_spec input_args metadata obj",
        NO_EFFECT,
        "subclasses say what it does",
    ),
    Accepted("_prims_common.*", "allow_rhs_unbacked", NO_EFFECT, "sizes are numbers"),
    Accepted(
        "multiprocessing.spawn.start_processes",
        "numa_options",
        NO_EFFECT,
        "the operating system decides",
    ),
    Accepted(
        "utils.checkpoint.create_selective_checkpoint_contexts",
        "allow_cache_entry_mutation",
        NO_EFFECT,
        "cached values are not checked for changes",
    ),
)
