"""softmax and its relatives."""

from gen.table import composite, op, rows

op("softmax(Tensor self, Dim dim, ScalarType? dtype=None) -> Tensor",
   kernel=rows(gives="softmax_dtype(name, self, dtype)"),
   grad={"self": "_softmax_backward_data(grad, result, dim, "
                 "result.dtype() if is_complex(self.dtype()) else self.dtype())"},
   doc="exp(x) / sum(exp(x)) along a dimension.",
   overloads=["softmax.int(self, dim, dtype)", "softmax.int_out(self, dim, dtype, out!)"],
   jvp="result * (self_t - (result * self_t).sum(dim, true))",
   autocast={"accelerator": "float32"})
op("log_softmax(Tensor self, Dim dim, ScalarType? dtype=None) -> Tensor",
   kernel=rows(gives="softmax_dtype(name, self, dtype)"),
   grad={"self": "_log_softmax_backward_data(grad, result, dim, "
                 "result.dtype() if is_complex(self.dtype()) else self.dtype())"},
   doc="The logarithm of `softmax` along a dimension.",
   overloads=["log_softmax.int(self, dim, dtype)", "log_softmax.int_out(self, dim, dtype, out!)"],
   jvp="self_t - (result.exp() * self_t).sum(dim, true)",
   autocast={"accelerator": "float32"})
op("_softmax_backward_data(Tensor grad_output, Tensor output, Dim dim, ScalarType input_dtype) -> "
   "Tensor",
   kernel=rows(gives="input_dtype", check=["check_same_sizes(name, grad_output, output)"]),
   variants="function",
   grad={"grad_output": "_softmax_backward_data(grad, output, dim, grad_output.dtype())",
         "output": "softmax_double_backward(grad, grad_output, output, dim)"},
   doc="Derivative of softmax: output * (grad_output - sum(grad_output * output)).",
   overloads=["_softmax_backward_data.out(grad_output, output, dim, input_dtype, grad_input!)"],
   jvp={"grad_output": "_softmax_backward_data(grad_output_t, output, dim, input_dtype)",
        "output": "output_t * (grad_output - (grad_output * output).sum(dim, true)) - output * "
                  "(grad_output * output_t).sum(dim, true)"})
op("_log_softmax_backward_data(Tensor grad_output, Tensor output, Dim dim, ScalarType input_dtype) "
   "-> Tensor",
   kernel=rows(gives="input_dtype", check=["check_same_sizes(name, grad_output, output)"]),
   variants="function out",
   grad={"grad_output": "grad - (grad * output.exp()).sum(dim, true)",
         "output": "-grad_output.sum(dim, true) * output.exp() * grad"},
   doc="Derivative of log_softmax: grad_output - exp(output) * sum(grad_output).",
   jvp={"grad_output": "_log_softmax_backward_data(grad_output_t, output, dim, input_dtype)",
        "output": "-output.exp() * output_t * grad_output.sum(dim, true)"})
composite("_masked_softmax(Tensor self, Tensor mask, Dim? dim=None, int? mask_type=None) -> Tensor",
          variants="function", out="cpp",
          doc="softmax, by default along the last dimension, where `mask` is False. A mask of two "
              "dimensions for scores of four says it of queries and keys (`mask_type` 0) or of "
              "items and keys (1).")
composite("softmin(Tensor self, Dim dim, ScalarType? dtype=None) -> Tensor", python="nn",
          doc="`softmax` of -self.", own=True)
