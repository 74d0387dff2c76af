"""Images at other sizes (interpolate) and at given places (grid_sample).

Kernels stand in src/cpu/isa/image/resample.cpp and src/cpu/isa/image/grid_sample.cpp. Interpolation
is linear in the image and separable, so one kernel serves all modes and, with the tables of its
axes transposed, the gradient.
"""

from gen.table import composite, custom, op

_HOW = ("str mode, bool align_corners, bool antialias, float? scale_d, float? scale_h, "
        "float? scale_w")
_how = "mode, align_corners, antialias, scale_d, scale_h, scale_w"

op(f"_interpolate(Tensor self, int[] output_size, {_HOW}) -> Tensor", kernel=custom(),
   variants="function",
   grad={"self": f"_interpolate_backward(grad, self.sizes(), output_size.size(), {_how})"},
   doc="An image of one to three dimensions at another size; a scale that is given replaces the "
       "ratio of the sizes.", own=True,
   jvp="linear", batch="fold")
op(f"_interpolate_backward(Tensor grad_output, Size[] input_size, int dims, {_HOW}) -> Tensor",
   kernel=custom(),
   variants="function",
   grad={"grad_output": f"_interpolate(grad, last_sizes(grad_output.sizes(), dims), {_how})"},
   doc="Derivative of `_interpolate`: adds up what each pixel contributed to.", own=True,
   jvp="linear", batch="fold")
op("_resize_pixels(Tensor self, int[] output_size, str mode) -> Tensor", kernel=custom(),
   variants="function out", grad="none", own=True,
   doc="A picture of bytes (H, W, 1) or (H, W, 4) at another size (H, W), bit for bit as Pillow "
       "makes it, along the width first; mode: bilinear or bicubic.",
   batch="slices: pictures one by one")
op("grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
   "align_corners) -> Tensor",
   kernel=custom(), variants="function",
   grad={"input, grid": "grid_sampler_gradients(grad, input, grid, interpolation_mode, "
                        "padding_mode, align_corners, mask)"},
   doc="Samples the image at the positions in grid, whose coordinates go from -1 to 1. Modes: 0 "
       "linear, 1 nearest, 2 cubic; outside: 0 zeros, 1 the border, 2 reflection.", out="none",
   jvp={"input": "grid_sampler(input_t, grid, interpolation_mode, padding_mode, align_corners)",
        "grid": "grid_sampler_tangent(grid_t, input, grid, interpolation_mode, padding_mode, "
                "align_corners)"},
   batch="fold",
   autocast={"cpu": "float32", "accelerator": "promote"})
op("_grid_sampler_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, "
   "int padding_mode, "
   "bool align_corners) -> (Tensor grad_input, Tensor grad_grid)", kernel=custom(), variants="",
   grad="missing",
   doc="The gradients of `grid_sampler`.", own=True,
   batch="fold")

# ---- interpolation, by aten's names ----

_scales = {1: "float? scales=None", 2: "float? scales_h=None, float? scales_w=None",
           3: "float? scales_d=None, float? scales_h=None, float? scales_w=None"}
for _name, _corners in (("upsample_nearest", ""), ("_upsample_nearest_exact", ""),
                        *((f"upsample_{_kind}", ", bool align_corners")
                          for _kind in ("linear", "bilinear", "trilinear", "bicubic")),
                        *((f"_upsample_{_kind}2d_aa", ", bool align_corners")
                          for _kind in ("bilinear", "bicubic"))):
    _dims = {"upsample_linear": (1,), "upsample_trilinear": (3,)}
    for _n in _dims.get(_name, (2,) if _corners else (1, 2, 3)):
        _whole = _name if _name.endswith("_aa") else f"{_name}{_n}d"
        composite(f"{_whole}(Tensor self, int[{_n}] output_size{_corners}, {_scales[_n]}) -> "
                  f"Tensor",
                  variants="function out", python="nn",
                  doc="`interpolate` to a size; a scale that is given replaces its ratio.")
        composite(f"{_whole}.vec(Tensor input, int[]? output_size{_corners}, float[]? "
                  f"scale_factors) -> Tensor",
                  out="cpp" if _whole in ("upsample_nearest2d", "upsample_bilinear2d") else "none",
                  variants="function", python="nn", doc="The same to a size, or by factors.",
                  tags=("core",) if _whole in ("upsample_nearest2d", "upsample_bilinear2d") else ())
composite("interpolate(Tensor input, int[]? size=None, float[]? scale_factor=None, str "
          "mode='nearest', "
          "bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> "
          "Tensor",
          variants="function", python="nn",
          doc="Images (N, C, L), (N, C, H, W) or (N, C, D, H, W) at another size: size, or "
              "scale_factor times their own, "
              "each one number or one for each dimension. Modes: nearest, nearest-exact, area, and "
              "as many dimensions "
              "want linear, bilinear, bicubic, trilinear. align_corners: the middles of the "
              "outermost pixels stay where "
              "they are. recompute_scale_factor: by the ratio of the sizes, not the given factor. "
              "antialias: smooth what "
              "shrinks (bilinear and bicubic).", own=True)

# ---- sampling ----

for _n in (2, 3):
    composite(f"grid_sampler_{_n}d(Tensor input, Tensor grid, int interpolation_mode, int "
              f"padding_mode, "
              "bool align_corners) -> Tensor", variants="function", out="cpp",
              doc=f"`grid_sampler` of {_n} dimensions.", tags=("core",) if _n == 2 else (),
              autocast={"cpu": "float32", "accelerator": "promote"})
composite("_grid_sampler_2d_cpu_fallback(Tensor input, Tensor grid, int interpolation_mode, int "
          "padding_mode, bool align_corners) -> Tensor", variants="function", out="cpp",
          body="grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)",
          doc="`grid_sampler_2d` by another name.")
composite("affine_grid_generator(Tensor theta, Size[] size, bool align_corners) -> Tensor",
          variants="function",
          doc="The positions to which the affine maps theta send the pixels of images of a size.",
          out="cpp")
composite("grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', "
          "bool? align_corners=None) "
          "-> Tensor", variants="function", python="nn functional",
          doc="`grid_sampler` with its modes in words: bilinear, nearest or bicubic; zeros, border "
              "or reflection.", own=True)
composite("affine_grid(Tensor theta, Size[] size, bool? align_corners=None) -> Tensor",
          variants="function", python="nn functional",
          doc="`affine_grid_generator` for floating theta (N, 2, 3) or (N, 3, 4) and sizes of "
              "images.", own=True)
