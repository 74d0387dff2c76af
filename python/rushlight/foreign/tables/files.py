"""What files, data, extensions and profilers accept."""

from rushlight.foreign.rows import (
    EFFECT,
    FIXED,
    KEPT,
    NO_EFFECT,
    PROTOCOL,
    RAISES,
    SUBCLASSES,
    Accepted,
    Flags,
)

ACCEPTED = (
    # extensions
    Accepted(
        "utils.cpp_extension.include_paths utils.cpp_extension.library_paths",
        "device_type",
        NO_EFFECT,
        "the headers and the library are the same for all devices",
    ),
    Accepted(
        "utils.cpp_extension.load*",
        "extra_cuda_cflags extra_sycl_cflags",
        NO_EFFECT,
        "sources for these devices are refused",
    ),
    Accepted(
        "utils.cpp_extension.load*",
        "keep_intermediates use_pch with_pytorch_error_handling",
        NO_EFFECT,
        "objects are kept, headers are light, exceptions always become Python's",
    ),
    # files
    Accepted(
        "utils.tensorboard._plugins.pr_curve_raw",
        "weights",
        NO_EFFECT,
        "the counts contain the weights already",
    ),
    Accepted(
        "utils.tensorboard.writer.SummaryWriter.add_graph",
        "use_strict_trace",
        NO_EFFECT,
        "the model is run, not traced",
    ),
    Accepted(
        "_files.archive.PyTorchFileWriter.__init__",
        "compute_crc32",
        NO_EFFECT,
        "checksums are always written",
    ),
    Flags(
        "utils.serialization.config.save",
        "compute_crc32 use_pinned_memory_for_d2h",
        "checksums are always written; tensors on a GPU are copied one after the other",
    ),
    Flags(
        "utils.serialization.config.load",
        "calculate_storage_offsets",
        "the places of storages are read from the file",
    ),
    Accepted(
        "serialization.set_crc32_options",
        "",
        NO_EFFECT,
        "checksums are always written; the setting can be read again",
    ),
    # data
    Accepted(
        "utils.data.dataloader.DataLoader.*",
        "worker_init_fn multiprocessing_context in_order",
        EFFECT,
        "its iterators read them",
    ),
    Accepted(
        "utils.data.datapipes._decorator.functional_datapipe.*",
        "enable_df_api_tracing",
        NO_EFFECT,
        "datapipes are not traced",
    ),
    Accepted("utils.data.datapipes.datapipe.IterDataPipe.reset", "", EFFECT, SUBCLASSES),
    Accepted(
        "utils.data.datapipes.iter.sharding.ShardingFilterIterDataPipe.is_shardable",
        "",
        FIXED,
        "that is what it says",
    ),
    Accepted(
        "utils.data.dataloader.DataLoader.*",
        "pin_memory_device",
        NO_EFFECT,
        "pinned memory suits any GPU",
    ),
    Accepted(
        "utils.data.graph.traverse",
        "only_datapipe",
        NO_EFFECT,
        "only datapipes are visited",
    ),
    Accepted("utils.data._utils.collate.collate_*_fn", "collate_fn_map", EFFECT, PROTOCOL),
    # profiling
    Accepted("profiler.profiler.kineto_available", "", FIXED, "the library is not used"),
    Accepted(
        "profiler._events.FunctionEvent.*",
        "use_device device_memory_usage",
        EFFECT,
        KEPT,
    ),
    Accepted(
        "utils.benchmark.utils.common.TaskSpec.*",
        "global_setup",
        NO_EFFECT,
        "it is of programs in C++, which are refused",
    ),
    Accepted(
        "autograd.profiler.profile.*",
        "use_cuda use_device use_kineto use_cpu experimental_config acc_events "
        "custom_trace_id_callback",
        NO_EFFECT,
        "ops on the CPU are recorded",
    ),
    Accepted(
        "profiler.profiler.profile.*",
        "experimental_config execution_trace_observer acc_events use_cuda "
        "custom_trace_id_callback post_processing_timeout_s",
        NO_EFFECT,
        "ops on the CPU are recorded",
    ),
    Accepted(
        "profiler.profiler.profile.toggle_collection_dynamic",
        "",
        NO_EFFECT,
        "what is recorded does not change during a run",
    ),
    Accepted(
        "autograd.profiler.emit_*",
        "enabled",
        RAISES,
        "profilers of NVIDIA and Intel are not called",
    ),
    Accepted(
        "autograd.profiler.emit_*",
        "record_shapes",
        NO_EFFECT,
        "profilers of NVIDIA and Intel are not called",
    ),
    Accepted(
        "profiler._events.EventList.*",
        "use_device",
        NO_EFFECT,
        "ops on the CPU are recorded",
    ),
    Accepted("utils._flops.*_flop", "", EFFECT, PROTOCOL),
    Accepted(
        "utils.flop_counter.FlopCounterMode.*",
        "mods",
        NO_EFFECT,
        "modules are found from their calls",
    ),
    Accepted(
        "utils.benchmark.utils.compare.Compare.colorize", "", NO_EFFECT, "tables have no colours"
    ),
    Accepted("utils.tensorboard.*", "max_bins", NO_EFFECT, "all bins are written"),
    Accepted(
        "utils.tensorboard.*",
        "hparam_domain_discrete",
        NO_EFFECT,
        "discrete domains are not written",
    ),
    Accepted("utils.tensorboard.*", "max_queue", NO_EFFECT, "events are written at once"),
    Accepted(
        "utils.tensorboard.*",
        "new_style double_precision",
        NO_EFFECT,
        "scalars are written in one format",
    ),
)
