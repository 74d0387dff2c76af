"""Paths of optimisers; what layers and optimisers accept."""

from rushlight.foreign.rows import (
    AS_WRITTEN,
    EFFECT,
    KEPT,
    NO_EFFECT,
    ONE_KERNEL,
    PROTOCOL,
    SUBCLASSES,
    Accepted,
)

MODULES = {
    "optim._adafactor": "optim.adafactor",
    "optim._muon": "optim.muon",
}

ACCEPTED = (
    # nn
    Accepted("nn.modules.module.Module.extra_repr", "", EFFECT, SUBCLASSES),
    Accepted(
        "nn.modules.rnn.RNNBase.flatten_parameters", "", NO_EFFECT, "weights lie where they lie"
    ),
    Accepted(
        "nn.attention.SDPAParams.*",
        "query key value attn_mask dropout is_causal enable_gqa",
        EFFECT,
        KEPT,
    ),
    Accepted("nn.attention._cur_sdpa_kernel_backends", "with_priority", NO_EFFECT, ONE_KERNEL),
    Accepted(
        "nested._functions._nested_tensor_from_mask_left_aligned",
        "t",
        NO_EFFECT,
        "the mask alone says it",
    ),
    Accepted("masked._ops._input_mask", "args", NO_EFFECT, PROTOCOL),
    Accepted("_rules.masked.Call.*", "name", NO_EFFECT, PROTOCOL),
    Accepted(
        "nn.modules.transformer.TransformerEncoder.*",
        "enable_nested_tensor mask_check",
        NO_EFFECT,
        "padded positions are computed like all others",
    ),
    Accepted(
        "nn.parallel.data_parallel.DataParallel.*",
        "output_device dim",
        NO_EFFECT,
        "the module runs on one device",
    ),
    Accepted("nn.utils.clip_grad.*", "foreach", NO_EFFECT, "there is one implementation"),
    Accepted("nn.attention.flex_attention.flex_attention", "kernel_options", NO_EFFECT, ONE_KERNEL),
    Accepted(
        "nn.attention.flex_attention.create_block_mask "
        "nn.attention.flex_attention.BlockMask.from_kv_blocks",
        "_compile compute_dq_write_order dq_kv_order _",
        NO_EFFECT,
        "the mask is made whole, block after block",
    ),
    Accepted(
        "nn.attention.flex_attention.noop_mask nn.utils.prune.*.compute_mask", "", EFFECT, PROTOCOL
    ),
    Accepted("nn.modules.linear.Identity.*", "args kwargs", NO_EFFECT, "all arguments are ignored"),
    Accepted("nn.modules.lazy.*.initialize_parameters", "", EFFECT, SUBCLASSES),
    # optim
    Accepted("optim.*", "foreach fused", NO_EFFECT, "one pass steps all parameters"),
    Accepted(
        "optim.*", "capturable", NO_EFFECT, "there are no graphs that a step could be part of"
    ),
    Accepted(
        "optim._imported._disable_dynamo_if_unsupported", "single_tensor_fn", NO_EFFECT, AS_WRITTEN
    ),
    Accepted("optim._composed.ReduceLROnPlateau._reduce_lr", "epoch", EFFECT, SUBCLASSES),
)
