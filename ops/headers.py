"""Headers by libtorch's names, for programs that include them as they always did.

Each is one of rushlight's; gen/headers.py writes them. Names end in .h where they say nothing else.
"""

LAYERS = """
    activation batchnorm conv distance dropout embedding fold instancenorm linear loss
    normalization padding pixelshuffle pooling upsampling"""
TRANSFORMERS = "adaptive rnn transformer transformercoder transformerlayer"
# Ops that programs include by one header each.
OPS = """
    _unique2 abs add all any arange argmax argsort as_strided bmm cat clamp clone copy cross
    cumsum div dot einsum empty empty_like empty_strided eq exp eye fill flip from_blob full
    full_like gather gelu index index_select linspace log log_softmax masked_select matmul max
    mean min mm mul narrow native_layer_norm neg nonzero norm ones ones_like pad permute pow
    rand randint randn relu repeat_interleave reshape resize scalar_tensor scatter scatter_add
    select sigmoid silu slice softmax sort split sqrt squeeze stack sub sum tanh tensor to topk
    transpose unsqueeze view where zero zeros zeros_like"""
# Names of headers whose contents are not here, by the reason.
ABSENT = {
    "graphs of programs are those of <rushlight/graph.h>": """
        torch/csrc/jit/ir/ir.h torch/csrc/jit/ir/irparser.h""",
    "archives of the mobile interpreter are not read; save for torch::jit::load": """
        torch/csrc/jit/mobile/import.h torch/csrc/jit/mobile/module.h""",
    "kernels of the GPU are in the library; its streams are those of <c10/cuda/CUDAStream.h>": """
        ATen/cuda/CUDAApplyUtils.cuh ATen/cuda/CUDABlas.h ATen/cuda/Atomic.cuh
        ATen/cuda/Exceptions.h ATen/cuda/detail/TensorInfo.cuh ATen/cudnn/Handle.h
        c10/cuda/CUDAException.h c10/cuda/CUDAMathCompat.h""",
    "graphs of ops are made by tracing and by Python; no tensor stands for a functional one": """
        ATen/FunctionalTensorWrapper.h""",
    "modules of TorchScript pass from Python to C++ by torch::jit::load": """
        torch/csrc/jit/python/module_python.h torch/csrc/jit/python/pybind_utils.h""",
    "steps are recorded by rushlight::Recording (<rushlight/capture.h>)": "ATen/cuda/CUDAGraph.h",
    "archives are read by torch::load, torch::pickle_load and torch::jit::load": """
        caffe2/serialize/inline_container.h""",
}
# What a name stands for → the names, by folder.
NAMES = {
    "<torch/torch.h>": {
        "torch": """
            all arg cuda data detail/static detail/TensorDataContainer enum expanding_array fft
            mps nn optim ordered_dict print serialize special tensor types utils version xpu""",
        "torch/data": """
            dataloader dataloader_options datasets example iterator samplers transforms
            worker_exception""",
        "torch/data/dataloader": "base stateful stateless",
        "torch/data/datasets": "base chunk map mnist shared stateful tensor",
        "torch/data/samplers": """
            base custom_batch_request distributed random sequential serialize stream""",
        "torch/data/transforms": "base collate lambda stack tensor",
        "torch/nn": "cloneable functional init module modules options pimpl utils",
        "torch/nn/functional": f"{LAYERS} vision",
        "torch/nn/modules": f"{LAYERS} {TRANSFORMERS} common",
        "torch/nn/modules/container": """
            any any_value functional moduledict modulelist named_any parameterdict parameterlist
            sequential""",
        "torch/nn/options": f"{LAYERS} {TRANSFORMERS} vision",
        "torch/nn/utils": "clip_grad convert_parameters rnn",
        "torch/optim": "adagrad adam adamw lbfgs optimizer rmsprop serialize sgd",
        "torch/optim/schedulers": "lr_scheduler reduce_on_plateau_scheduler step_lr",
        "torch/serialize": "archive input-archive output-archive tensor",
        "torch/csrc": "Export",
        "torch/csrc/api/include/torch": "all data nn optim torch types utils",
        "torch/csrc/autograd": """
            InferenceMode VariableTypeUtils anomaly_mode autograd custom_function edge function
            grad_mode saved_variable variable""",
        "torch/csrc/autograd/generated": "variable_factories",
        "ATen": """
            ArrayRef CPUGeneratorImpl Context Device DeviceGuard Dispatch Dispatch_v2
            ExpandUtils Formatting Functions Generator InferSize Layout NamedTensor
            NativeFunctions OpMathType Parallel ParallelOpenMP Scalar ScalarOps ScalarType
            SmallVector Storage Tensor TensorAccessor TensorIndexing TensorOperators
            TensorOptions TypeDefault Utils Version WrapDimUtils""",
        "ATen/native": "TypeProperties",
        "ATen/core": """
            ATen_fwd DeprecatedTypeProperties Dimname DimVector Formatting Generator NamedTensor
            Reduction Scalar Tensor TensorAccessor TensorBase TensorBody grad_mode
            interned_strings""",
        "ATen/ops": OPS,
        "c10/core": """
            Allocator Backend CPUAllocator DefaultDtype Device DeviceGuard DeviceType GradMode
            InferenceMode Layout MemoryFormat Scalar ScalarType ScalarTypeToTypeMeta Storage
            QScheme Stream StreamGuard SymInt SymIntArrayRef TensorImpl TensorOptions
            WrapDimMinimal""",
        "c10/core/impl": "alloc_cpu",
        "c10/macros": "Export Macros",
        "c10/util": """
            ArrayRef BFloat16 BFloat16-inl C++17 Deprecated DimVector Exception Float8_e4m3fn
            Float8_e4m3fnuz Float8_e5m2 Float8_e5m2fnuz Half Half-inl Logging Optional
            OptionalArrayRef SmallVector StringUtil TypeCast TypeTraits accumulate complex
            complex_math complex_utils flat_hash_map intrusive_ptr irange string_utils string_view
            typeid""",
    },
    "<torch/library.h>": {
        "torch": "autograd",
        "torch/csrc/jit/runtime": "custom_operator",
        "ATen": "Operators",
        "ATen/core": "Dict IListRef LegacyTypeDispatch List function_schema ivalue stack",
        "ATen/core/boxing": "KernelFunction",
        "ATen/core/dispatch": "Dispatcher",
        "ATen/core/op_registration": "op_registration",
        "c10/core": "DispatchKey DispatchKeySet",
        "c10/core/impl": "LocalDispatchKeySet",
    },
    "<torch/script.h>": {
        "torch": "jit",
        "torch/csrc/jit": "api/module api/method api/object runtime/operator runtime/jit_exception",
        "ATen/core": "jit_type jit_type_base",
        "torch/csrc/jit/serialization": "export import pickle",
    },
    "<rushlight/tracer.h>": {
        "torch/csrc/jit/frontend": "tracer",
        "torch/csrc/jit/passes": "fixup_trace_scope_blocks normalize_ops",
    },
    "<rushlight/jit_settings.h>": {
        "torch/csrc/jit/codegen/cuda": "interface",
        "torch/csrc/jit/mobile": "import_data",
        "torch/csrc/jit/passes": "tensorexpr_fuser",
        "torch/csrc/jit/python": "utf8_decoding_ignore",
        "torch/csrc/jit/runtime": "graph_executor profiling_graph_executor_impl",
        "caffe2/serialize": "read_adapter_interface",
    },
    "<torch/extension.h>": {"torch": "python", "torch/csrc/utils": "pybind"},
    "<rushlight/python_variable.h>": {
        "torch/csrc": "THP",
        "torch/csrc/autograd": "python_variable",
    },
    "<rushlight/engine.h>": {"torch/csrc/autograd": "engine"},
    "<rushlight/cuda_guard.h>": {
        "c10/cuda": "CUDACachingAllocator CUDAFunctions CUDAGuard CUDAStream",
        "ATen/cuda": "CUDAContext CUDAContextLight CUDAEvent",
    },
    "<rushlight/accelerator.h>": {"ATen": "DeviceAccelerator"},
    "<rushlight/custom_node.h>": {"torch/csrc/autograd/functions": "accumulate_grad utils"},
    "<rushlight/record_function.h>": {
        "ATen": "record_function",
        "torch/csrc/autograd": "record_function",
    },
    "<rushlight/profiler.h>": {
        "torch/csrc/autograd": "profiler profiler_kineto profiler_legacy",
    },
    "<rushlight/stable/abi.h>": {
        "torch/csrc/stable/c": "shim",
        "torch/csrc/inductor/aoti_torch/c": "macros shim",
        "torch/csrc/inductor/aoti_torch/generated": "c_shim_aten",
        "torch/csrc/stable": "version",
    },
    "<rushlight/stable/headeronly.h>": {
        "torch/headeronly": "version",
        "torch/headeronly/core": """
            DeviceType Dispatch Dispatch_v2 Layout MemoryFormat ScalarType TensorAccessor
            enum_tag""",
        "torch/headeronly/macros": "Export Macros",
        "torch/headeronly/util": """
            BFloat16 Deprecated Exception Float8_e4m3fn Float8_e4m3fnuz Float8_e5m2
            Float8_e5m2fnuz Half HeaderOnlyArrayRef TypeTraits complex""",
    },
    "<rushlight/stable/tensor.h>": {
        "torch/csrc/stable": "device device_struct generator macros tensor tensor_struct",
        "torch/headeronly/util": "shim_utils",
    },
    "<rushlight/stable/values.h>": {"torch/csrc/stable": "stableivalue_conversions"},
    "<rushlight/stable/ops.h>": {"torch/csrc/stable": "ops"},
    "<rushlight/stable/library.h>": {"torch/csrc/stable": "library"},
    "<rushlight/stable/accelerator.h>": {"torch/csrc/stable": "accelerator"},
    "<rushlight/nn/parallel.h>": {"torch/nn/parallel": "data_parallel"},
    "<rushlight/aoti_package.h>": {"torch/csrc/inductor/aoti_package": "model_package_loader"},
    "<rushlight/checks.h>": {"ATen": "TensorUtils", "c10/util": "MaybeOwned"},
    "<rushlight/kernel_tools.h>": {
        "ATen": "TensorGeometry",
        "ATen/native": "cpu/utils",
        "c10/util": "Unroll bit_cast llvmMathExtras",
    },
    "<rushlight/ordered_map.h>": {"c10/util": "order_preserving_flat_hash_map"},
    "<rushlight/cpu_blas.h>": {"ATen/native": "CPUBlas"},
    "<rushlight/accumulate_type.h>": {"ATen": "AccumulateType"},
    "<rushlight/vectorized.h>": {
        "ATen/cpu/vec": "functional functional_base functional_bfloat16 vec vec_base vec_half",
    },
    "<rushlight/flatten.h>": {"torch/csrc/utils": "tensor_flatten"},
    "<rushlight/dlpack.h>": {"ATen": "DLConvertor dlpack"},
    "<rushlight/tensor_iterator.h>": {
        "ATen": "TensorIterator",
        "ATen/native": "TensorIterator cpu/Loops",
    },
    "<rushlight/distributed/c10d.h>": {
        "torch/csrc/distributed/c10d": """
            Backend.hpp FileStore.hpp HashStore.hpp PrefixStore.hpp ProcessGroup.hpp
            ProcessGroupGloo.hpp Store.hpp TCPStore.hpp Types.hpp Work.hpp""",
    },
}
