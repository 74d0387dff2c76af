"""Activations and their derivatives."""

from gen.table import complex_, composite, floating, formula, op, pointwise, real

_floats = dict(kernel=pointwise(floating, promote="float"))
_activation = dict(kernel=pointwise(floating))
_backward = dict(kernel=pointwise(floating), variants="function")
_zero = "zeros_like(grad)"

op("relu(Tensor self) -> Tensor", kernel=pointwise(real), python="functional",
   variants="function method inplace",
   grad={"self": "threshold_backward(grad, result, 0)"},
   sparse="values", doc="max(self, 0).", tags=("core",))
op("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
   kernel=pointwise(real), out="any_dtype",
   python="functional inplace",
   variants="function inplace out", grad={"self": "threshold_backward(grad, self, threshold)"},
   doc="self where it is above the threshold, else value.")
op("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
   kernel=pointwise(real),
   variants="function", grad={"grad_output": "threshold_backward(grad, self, threshold)",
                              "self": _zero},
   doc="The gradient of `threshold`.",
   overloads=["threshold_backward.grad_input(grad_output, self, threshold, grad_input!)"])
op("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
   kernel=pointwise(real, check=["check_limits(self, min_val, max_val)"]),
   python="nn functional",
   variants="function inplace", grad={"self": "hardtanh_backward(grad, self, min_val, max_val)"},
   doc="self clamped to [min_val, max_val].", tags=("core",))
op("hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
   **_backward,
   grad={"grad_output": "hardtanh_backward(grad, self, min_val, max_val)", "self": _zero},
   doc="The gradient of `hardtanh`.",
   overloads=["hardtanh_backward.grad_input(grad_output, self, min_val, max_val, grad_input!)"])
composite("relu6(Tensor self) -> Tensor", python="nn", variants="function",
          doc="self clamped to [0, 6].", tags=("pointwise",))
composite("relu6_(Tensor(a!) self) -> Tensor(a!)", python="nn", variants="inplace",
          doc="`relu6` in place.")
op("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", **_activation,
   python="nn functional", variants="function inplace",
   grad={"self": "leaky_relu_backward(grad, self, negative_slope)"},
   doc="self, multiplied by negative_slope where it is negative.", tags=("core",))
op("leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope) -> Tensor",
   **_backward, out="none",
   grad={"grad_output": "leaky_relu_backward(grad, self, negative_slope)", "self": _zero},
   doc="The gradient of `leaky_relu`.")
op("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
   **_activation,
   python="nn functional", variants="function inplace",
   grad={"self": "elu_backward(grad, self, alpha, scale, input_scale)"},
   doc="scale * self, and scale * alpha * expm1(input_scale * self) below 0.", tags=("core",))
op("elu_backward(Tensor grad_output, Tensor self, Scalar alpha, Scalar scale, Scalar input_scale) "
   "-> Tensor", **_backward, out="none",
   grad={"grad_output": "elu_backward(grad, self, alpha, scale, input_scale)",
         "self": "elu_double_backward(grad, grad_output, self, alpha, scale, input_scale)"},
   doc="The gradient of `elu`.")
composite("selu(Tensor self) -> Tensor", variants="function",
          doc="`elu` with the constants of self-normalising networks.", tags=("pointwise",))
composite("selu_(Tensor(a!) self) -> Tensor(a!)", variants="function inplace", python="functional",
          doc="`selu` in place.", tags=("pointwise",))
composite("celu(Tensor self, Scalar alpha=1.0) -> Tensor", variants="function",
          doc="max(0, self) + min(0, alpha * expm1(self / alpha)).", out="cpp",
          tags=("pointwise.default",))
composite("celu_(Tensor(a!) self, Scalar alpha=1.0) -> Tensor(a!)", variants="function inplace",
          python="functional", doc="`celu` in place.", tags=("pointwise",))
op("gelu(Tensor self, *, str approximate='none') -> Tensor",
   kernel=pointwise(floating, check=["check_approximate(approximate)"],
                    formulas=[formula("gelu_tanh", when='approximate == "tanh"'),
                              formula("gelu_erf")]),
   python="nn functional", variants="function out",
   grad={"self": "gelu_backward(grad, self, approximate)"},
   doc="self times the normal distribution function, exact or by tanh.", tags=("core",))
op("gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
   kernel=pointwise(floating, formulas=[
       formula("gelu_tanh_backward", when='approximate == "tanh"'), formula("gelu_erf_backward")]),
   variants="function",
   grad={"grad_output": "gelu_backward(grad, self, approximate)",
         "self": "gelu_double_backward(grad, grad_output, self, approximate)"},
   doc="The gradient of `gelu`.",
   overloads=["gelu_backward.grad_input(grad_output, self, approximate, grad_input!)"])
op("silu(Tensor self) -> Tensor", kernel=pointwise(floating, complex_), python="nn",
   variants="function inplace", grad={"self": "silu_backward(grad, self)"},
   doc="self * sigmoid(self).")
op("silu_backward(Tensor grad_output, Tensor self) -> Tensor", kernel=pointwise(floating, complex_),
   variants="function",
   grad={"grad_output": "silu_backward(grad.conj(), self).conj()",
         "self": "silu_double_backward(grad, grad_output, self)"},
   doc="The gradient of `silu`.",
   overloads=["silu_backward.grad_input(grad_output, self, grad_input!)"],
   jvp={"grad_output": "silu_backward(grad_output_t, self)",
        "self": "grad_output * (self.sigmoid() * (1 - self.sigmoid()) * (2 + self * (1 - 2 * "
                "self.sigmoid())) * self_t).conj()"})
op("_swiglu(Tensor gate, Tensor up) -> Tensor", kernel=pointwise(floating), variants="function",
   own=True, grad={"gate": "silu_backward(grad * up, gate)", "up": "grad * silu(gate)"},
   doc="silu(gate) * up, the gated activation of language models.")
op("mish(Tensor self) -> Tensor", **_activation, python="nn", variants="function inplace",
   grad={"self": "mish_backward(grad, self)"},
   doc="self * tanh(softplus(self)).")
op("mish_backward(Tensor grad_output, Tensor self) -> Tensor", **_backward, out="none",
   grad={"grad_output": "mish_backward(grad, self)",
         "self": "mish_double_backward(grad, grad_output, self)"},
   doc="The gradient of `mish`.")
op("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", **_activation,
   python="nn functional", variants="function out",
   grad={"self": "softplus_backward(grad, self, beta, threshold)"},
   doc="log(1 + exp(beta * self)) / beta, self above threshold / beta.",
   autocast={"accelerator": "float32"})
op("softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
   **_backward,
   grad={"grad_output": "softplus_backward(grad, self, beta, threshold)",
         "self": "softplus_double_backward(grad * grad_output, self, beta, threshold)"},
   doc="The gradient of `softplus`.",
   overloads=["softplus_backward.grad_input(grad_output, self, beta, threshold, grad_input!)"])
op("log_sigmoid(Tensor self) -> Tensor", **_activation, python="nn", variants="function",
   grad={"self": "grad * sigmoid(-self)"}, doc="log(sigmoid(self)).")
composite("logsigmoid(Tensor self) -> Tensor", python="nn functional", variants="function out",
          body="log_sigmoid(self)", doc="Alias of `log_sigmoid`.", own=True)
op("hardswish(Tensor self) -> Tensor", **_activation, python="nn", variants="function inplace",
   grad={"self": "hardswish_backward(grad, self)"}, doc="self * hardsigmoid(self).")
op("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", **_backward,
   grad={"grad_output": "hardswish_backward(grad, self)",
         "self": "grad * grad_output * (self.abs() < 3) / 3"}, doc="The gradient of `hardswish`.")
op("hardsigmoid(Tensor self) -> Tensor", **_activation, python="nn", variants="function inplace",
   grad={"self": "hardsigmoid_backward(grad, self)"}, doc="(self + 3) / 6 clamped to [0, 1].")
op("hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", **_backward,
   grad={"grad_output": "hardsigmoid_backward(grad, self)", "self": _zero},
   doc="The gradient of `hardsigmoid`.",
   overloads=["hardsigmoid_backward.grad_input(grad_output, self, grad_input!)"])
op("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", **_activation,
   variants="function method out",
   python="functional",
   grad={"self": "hardshrink_backward(grad, self, lambd)"},
   doc="self, replaced by 0 within [-lambd, lambd].")
op("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
   kernel=pointwise(floating, check=["check_lambda(self, lambd)"]), python="nn functional",
   variants="function out",
   grad={"self": "hardshrink_backward(grad, self, lambd)"}, doc="self moved towards 0 by lambd.")
op("hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor", **_backward,
   grad={"grad_out": "hardshrink_backward(grad, self, lambd)", "self": _zero},
   doc="The gradient of `hardshrink` and `softshrink`.",
   overloads=["hardshrink_backward.grad_input(grad_out, self, lambd, grad_input!)"])
composite("softsign(Tensor self) -> Tensor", python="nn functional", variants="function",
          doc="self / (1 + |self|).", own=True)
op("_softsign(Tensor self) -> Tensor", **_floats, variants="", own=True,
   shown=("parts", "div(self, add(abs(self), Scalar(1)))"),
   grad={"self": "grad * (1 + self.abs()).reciprocal().square()"},
   doc="`softsign` of real numbers.")
composite("tanhshrink(Tensor self) -> Tensor", python="nn functional", variants="function",
          doc="self - tanh(self).", own=True)
composite("prelu(Tensor self, Tensor weight) -> Tensor", variants="function method",
          python="functional",
          doc="self, multiplied where it is negative by weight, one number or one for each "
              "channel.",
          autocast="lower")
composite("glu(Tensor self, Dim dim=-1) -> Tensor", python="nn functional", variants="function",
          doc="The first half along dim times the sigmoid of the second half.", out="cpp")
op("sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
   kernel=pointwise(floating, complex_), variants="function",
   grad={"grad_output": "sigmoid_backward(grad, output.conj())",
         "output": "grad.conj() * grad_output * (1 - 2 * output.conj())"},
   doc="The gradient of `sigmoid` from its result.",
   overloads=["sigmoid_backward.grad_input(grad_output, output, grad_input!)"],
   jvp={"grad_output": "sigmoid_backward(grad_output_t, output)",
        "output": "grad_output * ((1 - 2 * output) * output_t).conj()"})
op("tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
   kernel=pointwise(floating, complex_), variants="function",
   grad={"grad_output": "tanh_backward(grad, output.conj())",
         "output": "grad.conj() * (-2 * output.conj() * grad_output)"},
   doc="The gradient of `tanh` from its result.",
   overloads=["tanh_backward.grad_input(grad_output, output, grad_input!)"],
   jvp={"grad_output": "tanh_backward(grad_output_t, output)",
        "output": "grad_output * (-2 * output * output_t).conj()"})
