"""Random numbers. The same seed gives PyTorch's numbers on the CPU; they are drawn in order, by
one thread.

The distributions stand in src/kernels/random.h, their kernels in src/cpu/isa/pointwise/random.cpp.
"""

from gen.table import complex_half, composite, custom, op, update, wide_unsigned

_zero = {"self": "zeros_like(grad)"}
_function = "function out"


def _fill(text: str, doc: str, *stored: str) -> None:
    op(text, kernel=update(stored=stored), grad=_zero, doc=doc, batch="random")


_fill("uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> "
      "Tensor(a!)",
      "Uniform numbers in [from, to).", complex_half)
_fill("normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> "
      "Tensor(a!)",
      "Normal numbers.", complex_half)
_fill("random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> "
      "Tensor(a!)",
      "Integers in [from, to), to the largest of the dtype where to is None.", wide_unsigned)
_fill("random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)",
      "Integers in [0, to).", wide_unsigned)
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

def _with_generator(call, rest="options", name="", kind=""):
    """Overloads without and with a generator, and their out= forms: NAME_generator_KIND_out and so
    on. In the call `$` stands for `rest`, without the options in those that write."""
    function, _, arguments = call.partition("(")
    overloads = []
    for out in ("", "out"):
        said = "memory_format, out!" if "memory_format" in rest else "out!"
        for generator in ("", "generator"):
            overload = "_".join(filter(None, (name, generator, kind, out)))
            more = ("*, Generator? generator, " if generator else "") + (said if out else rest)
            called = ".".join(filter(None, (function, overload)))
            overloads.append(f"{called}({arguments.replace('$', more)}")
    return overloads


_like = "options, memory_format"
# int64 by default, and that is what PyTorch's schema says.
_int64 = "dtype=Int64, layout, device, pin_memory"
_drawn = "*, Generator? generator=None, options"
_drawn_like = f"{_drawn}, MemoryFormat? memory_format=None"
for _name, _doc in (("rand", "Uniform numbers in [0, 1)."), ("randn", "Standard normal numbers.")):
    composite(f"{_name}(Size[] size, {_drawn}) -> Tensor", variants=_function, doc=_doc,
              batch="random",
              tags=("core.default",), overloads=_with_generator(f"{_name}(size, $)"))
    composite(f"{_name}_like(Tensor self, {_drawn_like}) -> Tensor",
              variants="function", out="cpp", doc=_doc, batch="random_like",
              sparse=f"{_name}_like",
              overloads=_with_generator(f"{_name}_like(self, $)", _like))
composite(f"randint(int high, Size[] size, {_drawn}) -> Tensor", variants=_function,
          doc="Random integers in [0, high), of dtype int64 by default.", batch="random",
          overloads=_with_generator("randint(high, size, $)", _int64))
composite(f"randint.low(int low, int high, Size[] size, {_drawn}) -> Tensor", variants=_function,
          doc="Random integers in [low, high), of dtype int64 by default.", batch="random",
          overloads=_with_generator("randint(low, high, size, $)", _int64, "low"))
composite(f"randint_like(Tensor self, int high, {_drawn_like}) -> Tensor",
          variants="function",
          doc="Random integers in [0, high), in the shape, dtype and device of self.",
          out="cpp", batch="random_like",
          overloads=_with_generator("randint_like(self, high, $)", _like))
composite(f"randint_like.low(Tensor self, int low, int high, {_drawn_like}) -> Tensor",
          variants="function",
          doc="Random integers in [low, high), in the shape, dtype and device of self.",
          out="cpp", batch="random_like",
          overloads=_with_generator("randint_like(self, low, high, $)", _like, "low", "dtype"))
composite(f"randint_like.Tensor(Tensor self, Tensor high, {_drawn_like}) -> Tensor",
          variants="function", out="cpp",
          doc="Random integers in [0, high) for a high in a 0-d tensor.",
          batch="random",
          overloads=_with_generator("randint_like(self, high, $)", _like, "Tensor"))
composite(f"randperm(int n, {_drawn}) -> Tensor", variants=_function,
          doc="A random permutation of the integers below n, of dtype int64 by default.",
          batch="random",
          tags=("core.default",),
          overloads=_with_generator("randperm(n, $)", _int64))
composite("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
          variants="function method out", out="dtype",
          shown="whole", batch="random",
          doc="Samples of 0 and 1, where 1 has the probabilities in self.")
composite("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
          shown="whole", batch="random", out="dtype cpp",
          doc="Samples of 0 and 1 in the shape of self, where 1 has probability p.",
          overloads=["bernoulli.float_out(self, p=0.5, generator, out!)"])
composite("bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
          variants="", out="cpp dtype",
          shown="whole", batch="random",
          doc="Samples of 0 and 1 in the shape of self, where 1 has the probabilities in p.")
composite("normal(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
          variants=_function,
          shown="whole", batch="random",
          doc="Samples of normal distributions with the given means and standard deviations.",
          overloads=["normal.Tensor_Tensor(mean, std, generator)",
                     "normal.Tensor_Tensor_out(mean, std, generator, out!)"])
composite("normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor",
          variants=_function,
          shown="whole", batch="random",
          doc="Samples of normal distributions with the given means and one standard deviation.")
composite("normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
          variants=_function,
          shown="whole", batch="random",
          doc="Samples of normal distributions with one mean and the given standard deviations.")
composite("normal.float_float(float mean, float std, Size[] size, *, Generator? generator=None, "
          "options) -> Tensor",
          variants=_function, doc="Samples of one normal distribution.", batch="random")
composite("multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? "
          "generator=None) -> Tensor",
          doc="Indices that are drawn with the weights in each row.",
          variants="function method out")
composite("_multinomial(Tensor p, int num_samples, bool replacement=False, *, Generator? "
          "generator=None) -> Tensor", variants="", shown="whole", own=True, batch="random",
          doc="`multinomial` of rows that lie in any number of dimensions.")

op("poisson(Tensor self, Generator? generator=None) -> Tensor", kernel=custom(place="once"),
   variants="function", grad={"self": "zeros_like(grad)"},
   doc="Samples of Poisson distributions with the rates in self.",
   batch="random")
op("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
   kernel=custom(place="once"), variants="function",
   grad={"count": "zeros_like(grad)", "prob": "zeros_like(grad)"},
   doc="Samples of binomial distributions: the number of successes in `count` trials of "
       "probability `prob`.",
   batch="random")

op("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", kernel=custom(place="once"),
   variants="function", grad={"self": "grad * _standard_gamma_grad(self, result)"},
   doc="Samples of gamma distributions with the shapes in self and scale 1.",
   jvp="self_t * _standard_gamma_grad(self, result)", batch="random")
_gradient = "_dirichlet_grad(result, self, self.sum(-1, true))"
op("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
   kernel=custom(place="once"), variants="function",
   grad={"self": f"{_gradient} * (grad - (result * grad).sum(-1, true))"},
   doc="Samples of Dirichlet distributions with the concentrations along the last dimension.",
   jvp=f"self_t * {_gradient} - result * (self_t * {_gradient}).sum(-1, true)", batch="random")

# ---- dropout ----

composite("_dropout_noise(Tensor self, Size[] size, float p, float value) -> Tensor", variants="",
          shown="whole", own=True, batch="random_like",
          doc="What dropout multiplies with: value with probability p, else 0.")
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
              doc=_doc, tags=("nondeterministic_seeded",))
    composite(f"{_name}_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
              variants="function inplace",
              doc=f"`{_name}` in place.", tags=("nondeterministic_seeded",))
composite("native_dropout(Tensor input, float p, bool? train) -> (Tensor output, Tensor mask)",
          variants="function", out="cpp",
          doc="`dropout`, and a mask of the elements that it kept.",
          overloads=["native_dropout.out(input, p, train, out0!, out1!)"],
          tags=("core", "nondeterministic_seeded"))
composite("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
          variants="", out="cpp", body="grad_output.mul(mask).mul(scale)",
          doc="Derivative of `native_dropout`.", tags=("pointwise.default",))
composite("dropout1d(Tensor input, float p, bool train) -> Tensor", variants="function",
          python="nn", doc="`feature_dropout` of (N, C, L) or (C, L).", own=True)
composite("dropout1d_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
          variants="function inplace", python="nn",
          doc="`dropout1d` in place.", own=True)
composite("gumbel_softmax(Tensor logits, float tau=1, bool hard=False, Dim dim=-1) -> Tensor",
          variants="function", python="nn",
          doc="A differentiable sample of the categorical distribution with these logits; hard: "
              "one-hot, with the soft "
              "sample's gradient.", own=True)
composite("rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool "
          "training=False, "
          "Generator? generator=None) -> Tensor", variants="function",
          doc="leaky_relu with slopes drawn from [lower, upper] in training, their mean otherwise.",
          tags=("pointwise",))
composite("rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool "
          "training=False, "
          "Generator? generator=None) -> Tensor(a!)", variants="function inplace",
          python="functional",
          doc="`rrelu` in place.")
op("_draw_from_cumulative(Tensor cumulative, int num_samples, *, Generator? generator=None) -> "
   "Tensor",
   kernel=custom(), variants="function", grad="none",
   doc="Indices drawn from rows of growing sums that end at 1.", own=True,
   batch="random")
