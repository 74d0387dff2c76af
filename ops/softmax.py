"""softmax and its relatives."""

from gen.table import composite, custom, op

op("softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", kernel=custom(),
   grad={"self": "_softmax_backward_data(grad, result, dim, self.dtype())"},
   doc="exp(x) / sum(exp(x)) along a dimension.",
   overloads=["softmax.int(self, dim, dtype)", "softmax.int_out(self, dim, dtype, out!)"])
op("log_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", kernel=custom(),
   grad={"self": "_log_softmax_backward_data(grad, result, dim, self.dtype())"},
   doc="The logarithm of softmax along a dimension.",
   overloads=["log_softmax.int(self, dim, dtype)", "log_softmax.int_out(self, dim, dtype, out!)"])
op("_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
   kernel=custom(), variants="function",
   grad={"grad_output": "_softmax_backward_data(grad, output, dim, grad_output.dtype())",
         "output": "softmax_double_backward(grad, grad_output, output, dim)"},
   doc="Derivative of softmax: output * (grad_output - sum(grad_output * output)).",
   overloads=["_softmax_backward_data.out(grad_output, output, dim, input_dtype, grad_input!)"])
op("_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
   kernel=custom(), variants="function",
   grad={"grad_output": "grad - (grad * output.exp()).sum(dim, true)",
         "output": "-grad_output.sum(dim, true) * output.exp() * grad"},
   doc="Derivative of log_softmax: grad_output - exp(output) * sum(grad_output).")
composite("softmin(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", nn=True, doc="softmax of -self.", own=True)
