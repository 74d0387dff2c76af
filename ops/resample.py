"""Images at other sizes (interpolate) and at given places (grid_sample).

Kernels stand in src/cpu/isa/resample.cpp and src/cpu/isa/grid_sample.cpp. Interpolation is linear in the image and
separable, so one kernel serves all modes and, with the tables of its axes transposed, the gradient.
"""

from gen.table import composite, custom, op

_HOW = "str mode, bool align_corners, bool antialias, float? scale_d, float? scale_h, float? scale_w"
_how = "mode, align_corners, antialias, scale_d, scale_h, scale_w"

op(f"_interpolate(Tensor self, int[] output_size, {_HOW}) -> Tensor", kernel=custom(), variants="function",
   grad={"self": f"_interpolate_backward(grad, self.sizes(), output_size.size(), {_how})"},
   doc="An image of one to three dimensions at another size; a scale that is given replaces the ratio of the sizes.")
op(f"_interpolate_backward(Tensor grad_output, int[] input_size, int dims, {_HOW}) -> Tensor", kernel=custom(),
   variants="function",
   grad={"grad_output": f"_interpolate(grad, last_sizes(grad_output.sizes(), dims), {_how})"},
   doc="Derivative of `_interpolate`: adds up what each pixel contributed to.")
op("grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
   kernel=custom(), variants="function",
   grad={"input, grid": "grid_sampler_gradients(grad, input, grid, interpolation_mode, padding_mode, align_corners, mask)"},
   doc="The image at the places of grid, in coordinates from -1 to 1. Modes: 0 linear, 1 nearest, 2 cubic; outside: "
       "0 zeros, 1 the border, 2 reflected.")
op("_grid_sampler_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
   "bool align_corners) -> (Tensor grad_input, Tensor grad_grid)", kernel=custom(), variants="", grad="none",
   doc="The gradients of `grid_sampler`.")
for _n in (2, 3):
    composite(f"grid_sampler_{_n}d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
              "bool align_corners) -> Tensor", variants="function", doc=f"`grid_sampler` of {_n} dimensions.")
composite("affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor", variants="function",
          doc="The places that affine maps theta send the pixels of images of a size to.")
