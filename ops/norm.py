"""Normalisation over batches, layers, groups and root mean squares.

The fused backward kernels have no derivative of their own: where a graph of the backward is wanted,
it is written over ordinary ops instead (src/ops/norm.cpp).
"""

from gen.table import composite, custom, op

op("native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
   "running_var, "
   "bool training, float momentum, float eps) -> (Tensor output, Tensor save_mean, Tensor "
   "save_invstd)",
   kernel=custom(), variants="function out", nondiff=("save_mean", "save_invstd"),
   grad={"input, weight, bias": "batch_norm_backward(grad_output, input, weight, running_mean, "
                                "running_var, save_mean, "
         "save_invstd, training, eps, mask)"},
   doc="Normalises each channel (dimension 1) and updates the running statistics; also gives the "
       "statistics used.",
   overloads=["native_batch_norm.out(input, weight, bias, running_mean, running_var, training, "
              "momentum, eps, out!, save_mean!, save_invstd!)"],
   jvp={"input": "batch_norm_tangent(input_t, input, weight, running_mean, running_var, "
                 "save_mean, save_invstd, training, eps)",
        "weight": "as_channels(weight_t, input) * batch_norm_scaled(input, running_mean, "
                  "running_var, save_mean, save_invstd, training, eps)",
        "bias": "as_channels(bias_t, input)"},
   batch="batched_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, "
         "eps, batch)")
op("native_batch_norm_backward(Tensor grad_output, Tensor input, Tensor? weight, Tensor? "
   "running_mean, Tensor? running_var, "
   "Tensor save_mean, Tensor save_invstd, bool training, float eps) -> "
   "(Tensor grad_input, Tensor grad_weight, Tensor grad_bias)", kernel=custom(), variants="",
   grad="missing",
   out="none", doc="The gradients of `native_batch_norm`.",
   batch="batched_batch_norm_backward(grad_output, input, weight, running_mean, running_var, "
         "save_mean, save_invstd, training, eps, batch)")
_LEGIT = "Tensor input, Tensor? weight, Tensor? bias"
_STATISTICS = "(Tensor output, Tensor save_mean, Tensor save_invstd)"
_RESERVED = "(Tensor output, Tensor save_mean, Tensor save_invstd, Tensor reserve)"
composite(f"_native_batch_norm_legit({_LEGIT}, Tensor(a!) running_mean, Tensor(b!) running_var, "
          f"bool training, float momentum, float eps) -> {_STATISTICS}", variants="function",
          body="native_batch_norm(input, weight, bias, running_mean, "
               "running_var, training, momentum, eps)",
          doc="`native_batch_norm` that updates the running statistics.", tags=("core",))
composite(f"_native_batch_norm_legit.no_stats({_LEGIT}, bool training, float momentum, float eps) "
          f"-> {_STATISTICS}", variants="function", out="cpp",
          body="native_batch_norm(input, weight, bias, Tensor(), Tensor(), "
               "training, momentum, eps)",
          overloads=["_native_batch_norm_legit.no_stats_out(input, weight, bias, training, "
                     "momentum, eps, out!, save_mean!, save_invstd!)"],
          doc="`native_batch_norm` without running statistics.", tags=("core.no_stats",))
composite(f"_batch_norm_with_update({_LEGIT}, Tensor(a!) running_mean, Tensor(b!) running_var, "
          f"float momentum, float eps) -> {_RESERVED}", variants="",
          body="out, mean, invstd = native_batch_norm(input, weight, bias, "
               "running_mean, running_var, true, momentum, eps); "
               "(out, mean, invstd, empty({0}, input.options().dtype(kByte)))",
          out="cpp",
          overloads=["_batch_norm_with_update.out(input, weight, bias, running_mean, running_var, "
                     "momentum, eps, out!, save_mean!, save_invstd!, reserve!)"],
          doc="`native_batch_norm` in training; `reserve` is empty, for backward needs nothing "
              "more.")
composite(f"_batch_norm_no_update({_LEGIT}, Tensor? running_mean, Tensor? running_var, "
          f"float momentum, float eps) -> {_RESERVED}", variants="",
          body="out, mean, invstd = native_batch_norm(input, weight, bias, "
               "running_mean, running_var, false, momentum, eps); "
               "(out, mean, invstd, empty({0}, input.options().dtype(kByte)))",
          out="cpp",
          overloads=["_batch_norm_no_update.out(input, weight, bias, running_mean, running_var, "
                     "momentum, eps, out0!, out1!, out2!, out3!)"],
          doc="`native_batch_norm` that uses the running statistics.")
composite(f"_native_batch_norm_legit_no_training({_LEGIT}, Tensor running_mean, "
          f"Tensor running_var, float momentum, float eps) -> {_STATISTICS}", variants="function",
          out="cpp",
          body="native_batch_norm(input, weight, bias, running_mean, "
               "running_var, false, momentum, eps)",
          overloads=["_native_batch_norm_legit_no_training.out(input, weight, bias, running_mean, "
                     "running_var, momentum, eps, out0!, out1!, out2!)"],
          doc="`native_batch_norm` that uses the running statistics.", tags=("core.default",))
op("native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float "
   "eps) -> "
   "(Tensor output, Tensor mean, Tensor rstd)", kernel=custom(), variants="function",
   nondiff=("mean", "rstd"),
   grad={"input, weight, bias": "layer_norm_backward(grad_output, input, normalized_shape, weight, "
                                "bias, mean, rstd, eps, mask)"},
   doc="Normalises over the last dimensions; also gives the statistics used.",
   overloads=["native_layer_norm.out(input, normalized_shape, weight, bias, eps, out0!, out1!, "
              "out2!)"],
   jvp={"input": "multiply_weight(layer_norm_backward(input_t, input, "
                 "normalized_shape, {}, {}, mean, rstd, eps, {true, false, false})[0], weight)",
        "weight": "layer_norm_scaled(input, normalized_shape, mean, rstd, eps) * weight_t",
        "bias": "bias_t"},
   batch={"input": "leading",
          "": "batched_layer_norm(input, normalized_shape, weight, bias, eps, batch)"},
   autocast={"accelerator": "float32"}, tags=("core",))
op("native_layer_norm_backward(Tensor grad_output, Tensor input, int[] normalized_shape, Tensor "
   "mean, Tensor rstd, "
   "Tensor? weight) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)", kernel=custom(),
   variants="",
   grad="missing", doc="The gradients of `native_layer_norm`.",
   batch="batched_layer_norm_backward(grad_output, input, normalized_shape, mean, rstd, weight, "
         "batch)", tags=("core",))
op("_group_norm(Tensor input, Tensor? weight, Tensor? bias, int num_groups, float eps) -> "
   "(Tensor output, Tensor mean, Tensor rstd)", kernel=custom(), variants="",
   nondiff=("mean", "rstd"),
   grad={"input, weight, bias": "group_norm_backward(grad_output, input, weight, bias, mean, rstd, "
                                "num_groups, eps, mask)"},
   node="NativeGroupNormBackward0", own=True,
   doc="Normalises each group of channels of each image; also gives the statistics used.",
   jvp={"input": "multiply_channels(group_norm_backward(input_t, input, {}, {}, mean, "
                 "rstd, num_groups, eps, {true, false, false})[0], weight)",
        "weight": "group_norm_scaled(input, mean, rstd, num_groups, eps) * as_channels(weight_t, "
                  "input)",
        "bias": "as_channels(bias_t, input)"},
   batch={"input": "fold", "": "batched_group_norm(input, weight, bias, num_groups, eps, batch)"},
   autocast={"accelerator": "float32"})
op("_group_norm_backward(Tensor grad_output, Tensor input, Tensor mean, Tensor rstd, Tensor? "
   "weight, int num_groups) -> "
   "(Tensor grad_input, Tensor grad_weight, Tensor grad_bias)", kernel=custom(), variants="",
   grad="missing",
   own=True, doc="The gradients of `_group_norm`.",
   batch="batched_group_norm_backward(grad_output, input, mean, rstd, weight, num_groups, batch)")
composite("native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, "
          "int group, float eps) -> "
          "(Tensor, Tensor, Tensor)", variants="function", out="cpp",
          doc="`_group_norm` of N images of C channels and HxW pixels.", tags=("core",))
op("_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor "
   "output, Tensor rstd)",
   kernel=custom(), variants="", nondiff=("rstd",),
   grad={"input, weight": "rms_norm_backward(grad_output, input, normalized_shape, weight, rstd, "
                          "eps, mask)"},
   doc="Divides by the root mean square over the last dimensions.", out="none",
   jvp={"input": "multiply_weight(rms_norm_backward(input_t, input, normalized_shape, "
                 "{}, rstd, eps, {true, false})[0], weight)",
        "weight": "rms_norm_scaled(input, normalized_shape, rstd, eps) * weight_t"},
   batch={"input": "leading", "": "batched_rms_norm(input, normalized_shape, weight, eps, batch)"})
op("_fused_rms_norm_backward(Tensor grad_output, Tensor input, int[] normalized_shape, Tensor "
   "rstd, Tensor? weight) -> "
   "(Tensor grad_input, Tensor grad_weight)", kernel=custom(), variants="", grad="missing",
   out="none",
   doc="The gradients of `_fused_rms_norm`.",
   batch="batched_rms_norm_backward(grad_output, input, normalized_shape, rstd, weight, batch)")

composite("batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
          "running_var, bool training, "
          "float momentum, float eps, bool cudnn_enabled=True) -> Tensor", variants="function",
          doc="Batch normalisation of (N, C, ...). In training it uses the batch's statistics, "
              "else the running ones.",
          overloads=["batch_norm(input, weight, bias, running_mean, running_var, training, "
                     "momentum, eps, bool cudnn_enabled)"])
composite("layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? "
          "bias=None, float eps=1e-05, "
          "bool cudnn_enable=True) -> Tensor", variants="function", python="functional",
          doc="Layer normalisation over the last dimensions.",
          autocast={"accelerator": "float32"})
composite("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
          "eps=1e-05, "
          "bool cudnn_enabled=True) -> Tensor", variants="function",
          doc="Group normalisation of (N, C, ...).",
          autocast={"accelerator": "float32"})
composite("instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
          "running_var, "
          "bool use_input_stats, float momentum, float eps, bool cudnn_enabled=True) -> Tensor",
          variants="function",
          doc="Normalises each channel of each image.",
          overloads=["instance_norm(input, weight, bias, running_mean, running_var, "
                     "use_input_stats, momentum, eps, bool cudnn_enabled)"])
composite("rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> "
          "Tensor",
          variants="function", python="functional",
          doc="input / sqrt(mean(input ** 2) + eps) * weight over the last dimensions.")
composite("local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float "
          "k=1) -> Tensor",
          variants="function", python="nn functional",
          doc="Divides input by (k + alpha * the mean square of `size` neighbouring channels) to "
              "the power beta.", own=True,
          autocast={"cpu": "float32"})
composite("normalize(Tensor input, float p=2, Dim[1] dim=1, float eps=1e-12) -> Tensor",
          variants="function out", python="nn functional",
          doc="Divides input by the larger of its p-norm along dim and eps.", own=True)

# ---- as nn.functional has them: checked ----

composite("_batch_norm_of_values(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? "
          "weight=None, Tensor? bias=None, bool training=False, float momentum=0.1, float "
          "eps=1e-05) -> Tensor",
          variants="function", python="functional.batch_norm", own=True,
          doc="Normalises each channel by its mean and variance, in training those of the batch, "
              "towards which the running ones (if any) move by `momentum`; needs more than one "
              "value a channel there.")
composite("_instance_norm_of_values(Tensor input, Tensor? running_mean=None, Tensor? "
          "running_var=None, Tensor? weight=None, Tensor? bias=None, bool use_input_stats=True, "
          "float momentum=0.1, float eps=1e-05) -> Tensor",
          variants="function", python="functional.instance_norm", own=True,
          doc="Normalises each channel of each sample, which needs more than one value a channel.")
composite("_group_norm_of_values(Tensor input, int num_groups, Tensor? weight=None, Tensor? "
          "bias=None, float eps=1e-05) -> Tensor",
          variants="function", python="functional.group_norm", own=True,
          doc="Normalises each of `num_groups` groups of channels of each sample; needs more than "
              "one value a group.")
