"""Complex tensors and their parts."""

from gen.table import composite, custom, op, view

view("view_as_real(Tensor(a) self) -> Tensor(a)",
     grad={"self": "view_as_complex(grad.contiguous())"},
     variants="function",
     doc="A view whose last dimension, of size 2, holds the real and the imaginary part.",
     batch="leading")
view("view_as_complex(Tensor(a) self) -> Tensor(a)",
     grad={"self": "view_as_real(grad.resolve_conj())"},
     variants="function",
     doc="A complex view of a last dimension of size 2 that holds the real and the imaginary "
         "part.",
     batch="leading",
     autocast={"cpu": "float32"})
composite("real(Tensor(a) self) -> Tensor(a)", variants="function", ref="numpy.real",
          doc="A view of the real part; real tensors are returned as they are.")
composite("imag(Tensor(a) self) -> Tensor(a)", variants="function", ref="numpy.imag",
          doc="A view of the imaginary part.")
op("_complex(Tensor real, Tensor imag) -> Tensor", kernel=custom(place="once"),
   variants="function out",
   grad={"real": "view_as_real(grad).select(-1, 0)", "imag": "view_as_real(grad).select(-1, 1)"},
   doc="real + imag * 1j.", own=True,
   jvp="linear", batch="aligned")
composite("polar(Tensor abs, Tensor angle) -> Tensor", variants="function out",
          doc="abs * exp(1j * angle).",
          autocast={"cpu": "float32"})
composite("resolve_conj(Tensor(a) self) -> Tensor(a)",
          doc="Returns self: `conj` computes at once, so no conjugation is pending.")
composite("resolve_neg(Tensor(a) self) -> Tensor(a)",
          doc="Returns self: `neg` computes at once, so no negation is pending.")
composite("is_conj(Tensor self) -> bool",
          doc="Returns False: `conj` computes at once, so no conjugation is pending.")
composite("is_neg(Tensor self) -> bool",
          doc="Returns False: `neg` computes at once, so no negation is pending.")
