"""Complex tensors and their parts."""

from gen.table import composite, custom, op, view

view("view_as_real(Tensor(a) self) -> Tensor(a)",
     grad={"self": "view_as_complex(grad.contiguous())"},
     variants="function", doc="Real and imaginary part as a last dimension of size 2.",
     batch="leading")
view("view_as_complex(Tensor(a) self) -> Tensor(a)",
     grad={"self": "view_as_real(grad.resolve_conj())"},
     variants="function", doc="The last dimension, of size 2, as real and imaginary part.",
     batch="leading",
     autocast={"cpu": "float32"})
composite("real(Tensor(a) self) -> Tensor(a)", variants="function", ref="numpy.real",
          doc="The real part, a view; real tensors themselves.")
composite("imag(Tensor(a) self) -> Tensor(a)", variants="function", ref="numpy.imag",
          doc="The imaginary part, a view.")
op("_complex(Tensor real, Tensor imag) -> Tensor", kernel=custom(isa=False),
   variants="function out",
   grad={"real": "rushlight::real(grad)", "imag": "rushlight::imag(grad)"}, doc="real + imag * 1j.",
   own=True,
   jvp="linear", batch="aligned")
composite("polar(Tensor abs, Tensor angle) -> Tensor", variants="function out",
          doc="abs * exp(1j * angle).",
          autocast={"cpu": "float32"})
composite("resolve_conj(Tensor(a) self) -> Tensor(a)", doc="self: conjugation is done at once.")
composite("resolve_neg(Tensor(a) self) -> Tensor(a)", doc="self: negation is done at once.")
composite("is_conj(Tensor self) -> bool", doc="False: conjugation is done at once.")
composite("is_neg(Tensor self) -> bool", doc="False: negation is done at once.")
