"""Deprecated paths of quantisation, and the package torchao where it is not installed."""

from rushlight.foreign.rows import NO_EFFECT, PROTOCOL, Accepted, Refused

MODULES = {
    "ao.torchao": {"ao.integer_weights": "quantize_"},
    "ao.torchao.quantization": "ao.integer_weights",
    "nn.intrinsic": "ao.nn.intrinsic",
    "nn.intrinsic.qat": "ao.nn.intrinsic.qat",
    "nn.intrinsic.quantized": "ao.nn.intrinsic.quantized",
    "nn.qat": "ao.nn.qat",
    "nn.quantized": "ao.nn.quantized",
    "nn.quantized.dynamic": "ao.nn.quantized.dynamic",
    "quantization": "ao.quantization",
    "quantization.fake_quantize": "ao.quantization.fake_quantize",
    "quantization.fuse_modules": "ao.quantization.fuse_modules",
    "quantization.observer": "ao.quantization.observer",
    "quantization.qconfig": "ao.quantization.qconfig",
    "quantization.quantization_mappings": "ao.quantization.quantization_mappings",
    "quantization.quantize": "ao.quantization.quantize",
    "quantization.quantize_fx": "ao.quantization.quantize_fx",
    "quantization.stubs": "ao.quantization.stubs",
}

_TRITON = "there are no kernels of Triton"
_SEMI = "nothing computes faster with two zeros in four"

# What the package torchao imports.
REFUSED = (
    Refused(
        "sparse._triton_ops",
        "broadcast_batch_dims launch_kernel prepare_inputs ptr_stride_extractor tile_to_blocksize",
        "",
        _TRITON,
    ),
    Refused("sparse._triton_ops_meta", "get_meta minimize update", "", _TRITON),
    Refused(
        "sparse",
        "to_sparse_semi_structured",
        "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT "
        "SparseSemiStructuredTensorCUTLASS",
        _SEMI,
    ),
)

ACCEPTED = (
    # quantisation
    Accepted(
        "ao.quantization.observer.PlaceholderObserver.* ao.quantization.observer.NoopObserver.*",
        "custom_op_name",
        NO_EFFECT,
        "there are no graphs that a custom op would be looked for in",
    ),
    Accepted(
        "ao.nn.quantized.modules.*.from_float ao.nn.quantized.dynamic.modules.*.from_float "
        "ao.nn.quantized._arithmetic.*.from_float",
        "use_precomputed_fake_quant",
        NO_EFFECT,
        "layers without a weight ignore it; linear layers and convolutions read it",
    ),
    Accepted(
        "ao.quantization.quantize_fx.prepare_fx ao.quantization.quantize_fx.prepare_qat_fx",
        "example_inputs",
        NO_EFFECT,
        "graphs are traced without values",
    ),
    Accepted("ao.nn.quantized.modules.DeQuantize.from_float", "mod", NO_EFFECT, PROTOCOL),
    Accepted("_quantized.fake._FakeQuantize.*", "inputs _", NO_EFFECT, PROTOCOL),
)
