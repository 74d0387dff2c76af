"""Padding of the last dimensions: two sizes for each, the last dimension first; negative ones
crop."""

from gen.table import composite, custom, op

op("constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
   kernel=custom(place="anywhere"), variants="function",
   grad={"self": "constant_pad_nd(grad, negate(pad), 0)"}, doc="Pads with one value.",
   jvp="constant_pad_nd(self_t, pad, 0)", batch="leading", tags=("core",))
op("_pad_edges(Tensor self, int[] pad, str mode) -> Tensor",
   kernel=custom(place="once"), variants="",
   grad={"self": "_pad_edges_backward(grad, self.sizes(), pad, mode)"},
   doc="Pads by reflection, by repetition of the edge, or circularly.", own=True,
   jvp="linear", batch="fold")
op("_pad_edges_backward(Tensor grad_output, Size[] input_size, int[] pad, str mode) -> Tensor",
   kernel=custom(place="once"), variants="",
   grad={"grad_output": "_pad_edges(grad, pad, mode)"},
   doc="Adds up the gradients of repeated elements.", own=True,
   jvp="linear", batch="fold")
composite("pad(Tensor self, int[] pad, str mode='constant', float? value=None) -> Tensor",
          variants="function", python="nn functional",
          doc="Pads with one value, by reflection, by repetition of the edge, or circularly.")
