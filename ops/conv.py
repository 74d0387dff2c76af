"""Convolutions. One op does them all; its gradients are convolutions again, so they have
gradients themselves."""

from gen.table import composite, custom, op

op("convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] "
   "dilation, bool transposed, "
   "int[] output_padding, int groups) -> Tensor", kernel=custom(place="once"), variants="function",
   grad={"input": "convolution_input_backward(grad, input.sizes(), weight, stride, padding, "
                  "dilation, transposed, groups)",
         "weight": "convolution_weight_gradient(grad, input, weight.sizes(), stride, padding, "
                   "dilation, transposed, groups)",
         "bias": "sum_to_channels(grad)"},
   doc="Correlation of images (N, C, ...) with a weight; transposed: its adjoint.",
   jvp={"input": "convolution(input_t, weight, {}, stride, padding, dilation, transposed, "
                 "output_padding, groups)",
        "weight": "convolution(input, weight_t, {}, stride, padding, dilation, transposed, "
                  "output_padding, groups)",
        "bias": "as_channels(bias_t, result)"},
   batch={"input": "fold",
          "": "split_batch(convolution(merge_batch(input, 1, batch), "
              "merge_batch(weight, 0, batch), merge_batch(bias, 0, batch), "
              "stride, padding, dilation, transposed, output_padding, groups * batch), 1, batch)"},
   shown="_convolution(input, weight, bias, stride, padding, dilation, transposed, "
          "output_padding, groups, false, false, true, true)",
   autocast={"accelerator": "lower"}, tags=("core",))
_whole = ("(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, "
          "int[] dilation, bool transposed, int[] output_padding, int groups, bool benchmark, "
          "bool deterministic, bool cudnn_enabled")
composite(f"_convolution{_whole}, bool allow_tf32) -> Tensor", out="cpp",
          variants="function", doc="`convolution`; its last four arguments are for GPUs.",
          autocast={"accelerator": "lower"})
composite(f"_convolution.deprecated{_whole}) -> Tensor", variants="function",
          doc="`convolution`; its last three arguments are for GPUs.",
          autocast="lower")
op("convolution_weight_backward(Tensor grad_output, Tensor input, int[] weight_size, int[] stride, "
   "int[] padding, "
   "int[] dilation, int groups) -> Tensor", kernel=custom(place="once"), variants="",
   grad={"grad_output": "convolution_output_gradient(grad, grad_output.sizes(), input, stride, "
                        "padding, dilation, groups)",
         "input": "convolution_input_backward(grad_output.conj(), input.sizes(), grad.conj(), "
                  "stride, padding, dilation, false, groups)"},
   doc="The gradient of an ordinary convolution's weight, from the gradient of all of the output "
       "or of its first elements.", own=True,
   jvp="multilinear",
   batch="split_batch(convolution_weight_backward(merge_batch(grad_output, 1, batch), "
         "merge_batch(input, 1, batch), multiply_size(weight_size, 0, batch), stride, padding, "
         "dilation, groups * batch), 0, batch)")

for _n, _d in ((1, "one"), (2, "two"), (3, "three")):
    _common = f"Tensor input, Tensor weight, Tensor? bias=None, int[{_n}] stride=1, "
    composite(f"conv{_n}d({_common}int[{_n}] padding=0, int[{_n}] dilation=1, int groups=1) -> "
              f"Tensor",
              variants="function", python="functional",
              doc=f"Convolution over {_d} dimensions; input (N, C, ...) or (C, ...).",
              shown="body",
              autocast="lower")
    composite(f"conv{_n}d.padding({_common}str padding='valid', int[{_n}] dilation=1, int "
              f"groups=1) -> Tensor",
              variants="function", python="functional",
              doc="The same with padding 'same' (at stride 1: the size stays) or 'valid' (none).",
              shown="body",
              autocast="lower")
    _suffix = "" if _n == 1 else ".input"
    composite(f"conv_transpose{_n}d({_common}int[{_n}] padding=0, int[{_n}] output_padding=0, "
              f"int groups=1, int[{_n}] dilation=1) -> Tensor",
              overloads=[f"conv_transpose{_n}d{_suffix}(input, weight, bias, stride, padding, "
                         f"output_padding, groups, dilation)"],
              variants="function", python="functional",
              doc=f"Transposed convolution over {_d} dimensions.",
              shown="body",
              autocast="lower")

composite("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
          variants="function", python="functional",
          doc="Convolution of (time, batch, channels) with a weight (taps, channels in, channels "
              "out).", out="cpp",
          autocast="lower")

_unfold = "int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride"
op(f"im2col(Tensor self, {_unfold}) -> Tensor", kernel=custom(place="once"), variants="function",
   python="nn",
   grad={"self": "col2im(grad, IntArrayRef(self.sizes()).slice(self.dim() - 2, 2), kernel_size, "
                 "dilation, padding, stride)"},
   doc="The windows of images as columns: (N, C, H, W) becomes (N, C * taps, windows).",
   jvp="linear", batch="fold")
op(f"col2im(Tensor self, int[2] output_size, {_unfold}) -> Tensor", kernel=custom(place="once"),
   variants="function", python="nn",
   grad={"self": "im2col(grad, kernel_size, dilation, padding, stride)"},
   doc="Adds columns up to images: the adjoint of im2col.", tags=("core",),
   jvp="linear", batch="fold")
