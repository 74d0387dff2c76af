"""Random numbers. The same seed gives PyTorch's numbers on the CPU; they are drawn in order, by
one thread.

The distributions stand in src/kernels/random.h, their kernels in src/cpu/isa/pointwise/random.cpp.
"""

from gen.table import composite, custom, op, update

_zero = {"self": "zeros_like(grad)"}
_function = "function out"


def _fill(text: str, doc: str) -> None:
    op(text, kernel=update(), grad=_zero, doc=doc, batch="random")


_fill("uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> "
      "Tensor(a!)",
      "Uniform numbers in [from, to).")
_fill("normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> "
      "Tensor(a!)",
      "Normal numbers.")
_fill("random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> "
      "Tensor(a!)",
      "Integers in [from, to), to the largest of the dtype where to is None.")
_fill("random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)",
      "Integers in [0, to).")
_fill("random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)",
      "Integers from 0 to the largest that the dtype holds without gaps.")
_fill("bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
      "1 with the probability p of its place, else 0.")
_fill("bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
      "1 with probability p, else 0.")
_fill("exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)",
      "Exponential numbers of rate lambd.")
_fill("cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> "
      "Tensor(a!)",
      "Cauchy numbers.")
_fill("log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> "
      "Tensor(a!)",
      "Numbers whose logarithms are normal.")
_fill("geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)",
      "How many trials of probability p it takes to succeed.")

def _with_generator(call, like=False):
    """Overloads without and with a generator: rand, .generator, .out, .generator_out."""
    name, _, arguments = call.partition("(")
    options = "options, memory_format" if like else "options"
    out = "memory_format, out!" if like else "out!"
    return [
        f"{name}{overload}({arguments.replace('$', rest)}"
        for overload, rest in (("", options), (".generator", f"*, Generator? generator, {options}"),
                               (".out", out),
                               (".generator_out", f"*, Generator? generator, {out}"))
    ]


for _name, _doc in (("rand", "Uniform numbers in [0, 1)."), ("randn", "Standard normal numbers.")):
    composite(f"{_name}(int[] size, *, Generator? generator=None, options) -> Tensor",
              variants=_function, doc=_doc,
              overloads=_with_generator(f"{_name}(size, $)"))
    composite(f"{_name}_like(Tensor self, *, Generator? generator=None, options, MemoryFormat? "
              f"memory_format=None) -> Tensor",
              variants="function", cpp_out=True, doc=_doc,
              overloads=_with_generator(f"{_name}_like(self, $)", like=True))
composite("randint(int high, int[] size, *, Generator? generator=None, options) -> Tensor",
          variants=_function,
          doc="Integers in [0, high), int64 by default.",
          overloads=["randint.generator(high, size, *, Generator? generator, dtype=Int64, layout, "
                     "device, pin_memory)",
                     "randint(high, size, dtype=Int64, layout, device, pin_memory)",
                     "randint.generator_out(high, size, *, Generator? generator, out!)",
                     "randint.out(high, size, out!)"])
composite("randint.low(int low, int high, int[] size, *, Generator? generator=None, options) -> "
          "Tensor",
          variants=_function, doc="Integers in [low, high), int64 by default.",
          overloads=["randint.low_generator(low, high, size, *, Generator? generator, dtype=Int64, "
                     "layout, device, pin_memory)",
                     "randint.low(low, high, size, dtype=Int64, layout, device, pin_memory)",
                     "randint.low_generator_out(low, high, size, *, Generator? generator, out!)",
                     "randint.low_out(low, high, size, out!)"])
composite("randint_like(Tensor self, int high, *, Generator? generator=None, options, "
          "MemoryFormat? memory_format=None) -> Tensor",
          variants="function", doc="Integers in [0, high).", cpp_out=True,
          overloads=["randint_like.generator(self, high, *, Generator? generator, options, "
                     "memory_format)",
                     "randint_like(self, high, options, memory_format)",
                     "randint_like.generator_out(self, high, *, Generator? generator, "
                     "memory_format, out!)",
                     "randint_like.out(self, high, memory_format, out!)"])
composite("randint_like.low(Tensor self, int low, int high, *, Generator? generator=None, options, "
          "MemoryFormat? memory_format=None) -> Tensor",
          variants="function", doc="Integers in [low, high).", cpp_out=True,
          overloads=["randint_like.low_generator_dtype(self, low, high, *, Generator? generator, "
                     "options, memory_format)",
                     "randint_like.low_dtype(self, low, high, options, memory_format)",
                     "randint_like.low_generator_dtype_out(self, low, high, *, Generator? "
                     "generator, memory_format, out!)",
                     "randint_like.low_dtype_out(self, low, high, memory_format, out!)"])
composite("randint_like.Tensor(Tensor self, Tensor high, *, Generator? generator=None, options, "
          "MemoryFormat? memory_format=None) "
          "-> Tensor", variants="function", cpp_out=True,
          doc="Integers in [0, high) for a 0-d tensor.",
          overloads=["randint_like.Tensor_generator(self, high, *, Generator? generator, options, "
                     "memory_format)",
                     "randint_like.Tensor(self, high, options, memory_format)",
                     "randint_like.Tensor_generator_out(self, high, *, Generator? generator, "
                     "memory_format, out!)",
                     "randint_like.Tensor_out(self, high, memory_format, out!)"])
composite("randperm(int n, *, Generator? generator=None, options) -> Tensor", variants=_function,
          doc="The numbers below n in random order, int64 by default.",
          overloads=["randperm.generator(n, *, Generator? generator, dtype=Int64, layout, device, "
                     "pin_memory)",
                     "randperm(n, dtype=Int64, layout, device, pin_memory)",
                     "randperm.generator_out(n, *, Generator? generator, out!)",
                     "randperm.out(n, out!)"])
composite("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
          variants="function method out",
          doc="1 with the probabilities of self, else 0.")
composite("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
          doc="1 with probability p, else 0, in the shape of self.", cpp_out=True,
          overloads=["bernoulli.float_out(self, p=0.5, generator, out!)"])
composite("bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
          variants="", cpp_out=True,
          doc="1 with the probabilities of p, else 0, in the shape of self.")
composite("normal(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
          variants=_function,
          doc="Normal numbers of each mean and deviation.",
          overloads=["normal.Tensor_Tensor(mean, std, generator)",
                     "normal.Tensor_Tensor_out(mean, std, generator, out!)"])
composite("normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor",
          variants=_function,
          doc="Normal numbers of each mean.")
composite("normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
          variants=_function,
          doc="Normal numbers of each deviation.")
composite("normal.float_float(float mean, float std, int[] size, *, Generator? generator=None, "
          "options) -> Tensor",
          variants=_function, doc="Normal numbers of one mean and deviation.")
composite("multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? "
          "generator=None) -> Tensor",
          doc="Indices drawn with the probabilities of each row.", cpp_out=True)

op("poisson(Tensor self, Generator? generator=None) -> Tensor", kernel=custom(isa=False),
   variants="function", grad={"self": "zeros_like(grad)"},
   doc="Poisson numbers of the rates in self.",
   batch="random")
op("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
   kernel=custom(isa=False), variants="function",
   grad={"count": "zeros_like(grad)", "prob": "zeros_like(grad)"},
   doc="How many of count trials of probability prob succeed.",
   batch="random")

op("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", kernel=custom(isa=False),
   variants="function", grad={"self": "grad * _standard_gamma_grad(self, result)"},
   doc="Gamma numbers of the shapes in self, of scale 1.",
   jvp="self_t * _standard_gamma_grad(self, result)", batch="random")
_gradient = "_dirichlet_grad(result, self, self.sum(-1, true))"
op("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
   kernel=custom(isa=False), variants="function",
   grad={"self": f"{_gradient} * (grad - (result * grad).sum(-1, true))"},
   doc="Dirichlet numbers of the concentrations along the last dimension.",
   jvp=f"self_t * {_gradient} - result * (self_t * {_gradient}).sum(-1, true)", batch="random")

# ---- dropout ----

op("_scaled_bernoulli_(Tensor(a!) self, float p, float value) -> Tensor(a!)", kernel=update(),
   variants="method inplace",
   grad=_zero, doc="value with probability p, else 0.", own=True,
   batch="random")
for _name, _doc in (
    ("dropout", "Zeroes elements with probability p and scales the others by 1 / (1 - p)."),
    ("feature_dropout", "`dropout` of whole channels."),
    ("alpha_dropout", "Dropout that keeps mean and variance after `selu`."),
    ("feature_alpha_dropout", "`alpha_dropout` of whole channels."),
):
    composite(f"{_name}(Tensor input, float p, bool train) -> Tensor", variants="function",
              doc=_doc)
    composite(f"{_name}_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
              variants="function inplace",
              doc=f"`{_name}` in place.")
composite("dropout1d(Tensor input, float p, bool train) -> Tensor", variants="function", nn=True,
          doc="`feature_dropout` of (N, C, L) or (C, L).", own=True)
composite("dropout1d_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
          variants="function inplace", nn=True,
          doc="`dropout1d` in place.", own=True)
composite("gumbel_softmax(Tensor logits, float tau=1, bool hard=False, int dim=-1) -> Tensor",
          variants="function", nn=True,
          doc="A differentiable sample of the categorical distribution with these logits; hard: "
              "one-hot, with the soft "
              "sample's gradient.", own=True)
composite("rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool "
          "training=False, "
          "Generator? generator=None) -> Tensor", variants="function",
          doc="leaky_relu with slopes drawn from [lower, upper] in training, their mean otherwise.")
composite("rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool "
          "training=False, "
          "Generator? generator=None) -> Tensor(a!)", variants="function inplace",
          doc="`rrelu` in place.")
op("_draw_from_cumulative(Tensor cumulative, int num_samples, *, Generator? generator=None) -> "
   "Tensor",
   kernel=custom(), variants="function", grad="none",
   doc="Indices drawn from rows of growing sums that end at 1.", own=True,
   batch="random")
