"""Headers by libtorch's names, for programs that include them as they always did: each is one of rushlight's."""

from __future__ import annotations

LAYERS = """activation batchnorm conv distance dropout embedding fold instancenorm linear loss normalization padding
    pixelshuffle pooling upsampling"""
TRANSFORMERS = "adaptive rnn transformer transformercoder transformerlayer"
# What a name stands for → the names, by folder. They end in .h where they say nothing else.
NAMES = {
    "<torch/torch.h>": {
        "torch": """
            all arg cuda data enum expanding_array fft mps nn optim ordered_dict print serialize special types
            utils version xpu""",
        "torch/data": "dataloader dataloader_options datasets example iterator samplers transforms worker_exception",
        "torch/data/dataloader": "base stateful stateless",
        "torch/data/datasets": "base chunk map mnist shared stateful tensor",
        "torch/data/samplers": "base custom_batch_request distributed random sequential serialize stream",
        "torch/data/transforms": "base collate lambda stack tensor",
        "torch/nn": "cloneable functional init module modules options pimpl utils",
        "torch/nn/functional": f"{LAYERS} vision",
        "torch/nn/modules": f"{LAYERS} {TRANSFORMERS} common",
        "torch/nn/modules/container": """
            any any_value functional moduledict modulelist named_any parameterdict parameterlist sequential""",
        "torch/nn/options": f"{LAYERS} {TRANSFORMERS} vision",
        "torch/nn/utils": "clip_grad convert_parameters rnn",
        "torch/optim": "adagrad adam adamw lbfgs optimizer rmsprop serialize sgd",
        "torch/optim/schedulers": "lr_scheduler reduce_on_plateau_scheduler step_lr",
        "torch/serialize": "archive input-archive output-archive tensor",
        "torch/csrc": "Export",
        "torch/csrc/api/include/torch": "all data nn optim torch types utils",
        "torch/csrc/autograd": """
            VariableTypeUtils anomaly_mode autograd custom_function edge function grad_mode variable""",
        "torch/csrc/autograd/generated": "variable_factories",
        "ATen": """
            CPUGeneratorImpl Context Device DeviceGuard Dispatch Dispatch_v2 ExpandUtils Formatting Functions Generator
            InferSize Layout NativeFunctions OpMathType Parallel Scalar ScalarOps ScalarType Storage Tensor
            TensorAccessor TensorIndexing TensorOperators TensorOptions""",
        "ATen/core": """
            DimVector Formatting Generator Reduction Scalar Tensor TensorAccessor TensorBase TensorBody grad_mode""",
        "ATen/ops": "empty empty_like zeros zeros_like",
        "c10/core": """
            DefaultDtype Device DeviceGuard DeviceType GradMode InferenceMode Layout MemoryFormat Scalar ScalarType
            Storage SymInt SymIntArrayRef TensorImpl TensorOptions""",
        "c10/macros": "Export Macros",
        "c10/util": """
            ArrayRef BFloat16 Exception Half Optional OptionalArrayRef SmallVector StringUtil accumulate complex
            intrusive_ptr irange string_view""",
    },
    "<torch/library.h>": {
        "torch": "autograd",
        "torch/csrc/jit/runtime": "custom_operator",
        "ATen": "Operators",
        "ATen/core": "Dict LegacyTypeDispatch List function_schema ivalue stack",
        "ATen/core/boxing": "KernelFunction",
        "ATen/core/dispatch": "Dispatcher",
        "ATen/core/op_registration": "op_registration",
        "c10/core": "DispatchKey DispatchKeySet",
        "c10/core/impl": "LocalDispatchKeySet",
    },
    "<torch/script.h>": {
        "torch": "jit",
        "torch/csrc/jit/api": "module",
        "torch/csrc/jit/serialization": "import pickle",
    },
    "<torch/extension.h>": {"torch": "python", "torch/csrc/utils": "pybind"},
    "<rushlight/record_function.h>": {"ATen": "record_function", "torch/csrc/autograd": "profiler record_function"},
    "<rushlight/nn/parallel.h>": {"torch/nn/parallel": "data_parallel"},
    "<rushlight/checks.h>": {"ATen": "TensorUtils", "c10/util": "MaybeOwned"},
    "<rushlight/tensor_iterator.h>": {"ATen": "TensorIterator", "ATen/native": "TensorIterator cpu/Loops"},
    "<rushlight/distributed/c10d.h>": {
        "torch/csrc/distributed/c10d": """
            Backend.hpp FileStore.hpp HashStore.hpp PrefixStore.hpp ProcessGroup.hpp ProcessGroupGloo.hpp Store.hpp
            TCPStore.hpp Types.hpp Work.hpp""",
    },
}


def generate() -> dict[str, str]:
    files = {}
    for target, folders in NAMES.items():
        # Every name brings the names of namespaces with it: torch, at and c10.
        includes = [target] if target.startswith("<torch/") else [target, "<torch/torch.h>"]
        for folder, names in folders.items():
            for name in names.split():
                path = f"include/{folder}/{name}" + ("" if name.endswith(".hpp") else ".h")
                what = f"// Another name of {target}.\n#pragma once\n\n"
                files[path] = what + "".join(f"#include {i}\n" for i in includes)
    return files
