"""Old paths of training in several processes, and what of it is refused."""

from rushlight.foreign.rows import EFFECT, FIXED, NO_EFFECT, PROTOCOL, SUBCLASSES, Accepted, Refused

MODULES = {
    "distributed._composable": {
        "distributed._contract": "contract",
        "distributed._replicate": "replicate",
        "distributed.fsdp": "fully_shard",
    },
    "distributed._composable.contract": "distributed._contract",
    "distributed._composable.fsdp": {
        "distributed.fsdp": "CPUOffloadPolicy FSDPModule MixedPrecisionPolicy OffloadPolicy "
        "fully_shard register_fsdp_forward_method",
    },
    "distributed._composable.replicate": "distributed._replicate",
    "distributed._tensor": "distributed.tensor",
    "distributed._tensor.device_mesh": "distributed.device_mesh",
    "distributed._tensor.experimental": "distributed.tensor.experimental",
    "distributed._tensor.placement_types": {
        "distributed.tensor._spec": "DTensorSpec TensorMeta",
        "distributed.tensor.placement_types": "Partial Placement Replicate Shard",
    },
    "distributed.autograd": {"foreign.absent": "is_available"},
    "distributed.constants": {"distributed.distributed_c10d": "default_pg_timeout"},
    "distributed.rpc": {"foreign.absent": "is_available"},
    "distributed.tensor._dtensor_spec": {"distributed.tensor._spec": "DTensorSpec TensorMeta"},
    "distributed.tensor.device_mesh": "distributed.device_mesh",
}

_WHY = "docs/distributed.md says which parts of distributed training are there"

REFUSED = (
    Refused("distributed._functional_collectives", "", "AsyncCollectiveTensor", _WHY),
    Refused("distributed.autograd", "backward get_gradients", "context", _WHY),
    Refused("distributed.optim", "", "DistributedOptimizer", _WHY),
    Refused(
        "distributed.rpc",
        "init_rpc remote rpc_async rpc_sync shutdown",
        "RRef TensorPipeRpcBackendOptions WorkerInfo",
        _WHY,
    ),
    Refused("distributed.tensor.experimental", "context_parallel", "", _WHY),
)

ACCEPTED = (
    # processes
    Accepted(
        "distributed.run",
        "local-addr start-method event-log-handler logs-specs",
        NO_EFFECT,
        "machines find each other by `--rdzv-endpoint`, programs are processes of their own, no "
        "log of events is kept, and `--redirects` and `--tee` say where output goes",
    ),
    Accepted("distributed.launch", "use-env", NO_EFFECT, "ranks are always in the environment"),
    Accepted(
        "distributed.elastic.multiprocessing.api.DefaultLogsSpecs.*",
        "local_ranks_filter",
        EFFECT,
        "the launcher reads it",
    ),
    Accepted(
        "distributed._process_group.ProcessGroup._set_default_backend",
        "backend",
        NO_EFFECT,
        "the first engine is that of a group",
    ),
    Accepted(
        "distributed._process_group.Work.* distributed._process_group.ProcessGroup.Options.*",
        "keep backend",
        EFFECT,
        "kept, alive or for programs to read",
    ),
    Accepted(
        "distributed._objects._tensor_to_object",
        "group",
        NO_EFFECT,
        "bytes are read on the CPU",
    ),
    Accepted(
        "distributed._making._store_based_barrier",
        "logging_interval",
        NO_EFFECT,
        "nothing is written while it waits",
    ),
    Accepted(
        "distributed.checkpoint.default_planner._validate_global_plan",
        "global_plan",
        NO_EFFECT,
        "the metadata holds all that is checked",
    ),
    Accepted(
        "distributed.algorithms.join.JoinHook.* "
        "distributed.checkpoint.staging.AsyncStager.* "
        "distributed.elastic.multiprocessing.errors.ErrorHandler.initialize",
        "",
        EFFECT,
        SUBCLASSES,
    ),
    Accepted(
        "distributed.checkpoint.staging.*Stager.synchronize_staging "
        "distributed.checkpoint.staging.*Stager.close "
        "distributed.checkpoint.default_planner.DefaultLoadPlanner.commit_tensor "
        "distributed.checkpoint.filesystem._FileSystemWriter.set_up_storage_writer",
        "",
        NO_EFFECT,
        "copies are made at once, numbers are read in place, and files need no preparation",
    ),
    Accepted(
        "distributed.checkpoint.staging.DefaultStager.__init__ "
        "distributed.checkpoint.staging.StagingOptions.__init__",
        "config use_pinned_memory use_shared_memory use_async_staging use_non_blocking_copy",
        NO_EFFECT,
        "copies are made at once",
    ),
    Accepted("distributed.fsdp.wrap.always_wrap_policy", "", FIXED, "that is what it says"),
    Accepted(
        "distributed.fsdp._fully_shard.FSDPModule.set_is_last_backward "
        "distributed.fsdp._fully_shard.FSDPModule.set_post_optim_event",
        "",
        NO_EFFECT,
        "every backward ends with all gradients there, and there are no streams",
    ),
    Accepted(
        "distributed.fsdp.api.CPUOffload.__init__",
        "offload_params",
        NO_EFFECT,
        "parameters stay on the device where they are",
    ),
    Accepted(
        "distributed.fsdp.api.Sharded*Config.__init__",
        "_use_dtensor",
        NO_EFFECT,
        "the kind of a state follows from how its module is sharded",
    ),
    Accepted(
        "multiprocessing.set_sharing_strategy",
        "",
        NO_EFFECT,
        "memory is always shared by file descriptors; the setting can be read again",
    ),
    Accepted(
        "distributed.is_available",
        "",
        FIXED,
        "the module is always available; `is_gloo_available` may be False",
    ),
    Accepted(
        "distributed._world.is_ucc_available distributed._world.is_xccl_available",
        "",
        FIXED,
        "the backends are Gloo, MPI and NCCL",
    ),
    Accepted(
        "distributed._engines.ProcessGroupGloo.create_device distributed._making.split_group",
        "_",
        NO_EFFECT,
        "the backends do not use these settings",
    ),
    Accepted(
        "distributed.algorithms.ddp_comm_hooks.debugging_hooks.noop_hook "
        "distributed.algorithms.model_averaging.averagers.ModelAverager.* "
        "distributed.algorithms.join.JoinHook.post_hook "
        "distributed.algorithms.join.Joinable.join_hook "
        "distributed.optim.zero_redundancy_optimizer.ZeroRedundancyOptimizer.join_hook",
        "is_last_joiner kwargs params _state",
        EFFECT,
        "subclasses use the arguments, and hooks are called with them",
    ),
    Accepted(
        "distributed._functional_collectives.*",
        "tag",
        NO_EFFECT,
        "groups are passed as objects",
    ),
    Accepted(
        "nn.parallel.distributed.DistributedDataParallel.*",
        "dim output_device check_reduction skip_all_reduce_unused_params batched_grad_copy",
        NO_EFFECT,
        "a process computes on one device, where results stay; what is reduced is always checked; "
        "unused parameters travel with their bucket, and gradients are copied into it one by one",
    ),
    Accepted(
        "distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel.__init__",
        "cpu_offload limit_all_gathers",
        NO_EFFECT,
        "parameters stay on their device; at most one unit is gathered in advance",
    ),
    Accepted(
        "distributed.fsdp._fully_shard.fully_shard",
        "offload_policy",
        NO_EFFECT,
        "parameters stay on their device",
    ),
    Accepted(
        "distributed.fsdp._fully_shard.FSDPModule.*",
        "is_last_backward event enable",
        NO_EFFECT,
        "every backward ends with all gradients; there are no streams, and groups allocate nothing",
    ),
    Accepted(
        "distributed.tensor._dtensor.DTensor.__init__",
        "args kwargs",
        EFFECT,
        "`__new__` takes the arguments",
    ),
    Accepted(
        "distributed.fsdp._optim_states.full_optim_state_dict "
        "distributed.fsdp._optim_states.sharded_optim_state_dict",
        "optim_input group",
        NO_EFFECT,
        "an optimiser knows its parameters, and a unit knows its group",
    ),
    Accepted(
        "distributed.fsdp._unit._Unshard.forward distributed.fsdp._unit._Collect.*",
        "token leaves _grads",
        EFFECT,
        "autograd needs the arguments to record the graph",
    ),
    Accepted(
        "distributed.checkpoint.planner.*Planner.* distributed.checkpoint.storage.Storage*.* "
        "distributed.checkpoint.filesystem.FileSystemBase.* "
        "distributed.checkpoint.stateful.Stateful.*",
        "",
        EFFECT,
        SUBCLASSES,
    ),
    Accepted(
        "distributed.checkpoint.default_planner.DefaultLoadPlanner.commit_tensor "
        "distributed.checkpoint.filesystem.* distributed.checkpoint.format_utils.* "
        "distributed.checkpoint.staging.DefaultStager.stage",
        "args kwargs is_coordinator metadata read_item tensor",
        EFFECT,
        PROTOCOL,
    ),
    Accepted(
        "distributed.checkpoint.filesystem.*FileSystemWriter.__init__ "
        "distributed.checkpoint.hf_storage.*",
        "thread_count per_thread_copy_ahead cache_staged_state_dict thread_count_consolidation "
        "num_threads args kwargs",
        NO_EFFECT,
        "a process writes one file after the other, from new copies",
    ),
    Accepted(
        "distributed.checkpoint.default_planner.Default*Planner.__init__",
        "flatten_sharded_tensors dedup_replicated_tensors enable_plan_caching",
        NO_EFFECT,
        "data that several processes have is written once; each save makes its plans",
    ),
    Accepted(
        "distributed.checkpoint.staging.BlockingAsyncStager.__init__",
        "cache_staged_state_dict type_check",
        NO_EFFECT,
        "each save makes new copies",
    ),
    Accepted(
        "distributed.checkpoint.state_dict_saver.async_save",
        "async_checkpointer_type",
        NO_EFFECT,
        "saving always runs in a thread",
    ),
    Accepted(
        "distributed.fsdp.wrap.always_wrap_policy distributed.fsdp.wrap.lambda_auto_wrap_policy "
        "distributed.fsdp.wrap.transformer_auto_wrap_policy "
        "distributed.fsdp.wrap.ModuleWrapPolicy.* distributed.fsdp.wrap.CustomPolicy.*",
        "args kwargs nonwrapped_numel",
        EFFECT,
        PROTOCOL,
    ),
)
