"""Pooling over one, two and three dimensions: one kernel each, whose length of kernel_size says
over how many."""

from gen.table import composite, custom, op

_window = "int[] kernel_size, int[] stride, int[] padding"

def _node(sizes, before, after):
    """PyTorch's names of the nodes: by the number of dimensions that are pooled over."""
    return {"": f"{before}2{after}", **{f"{sizes}.size() == {n}": f"{before}{n}{after}"
                                        for n in (1, 3)}}


op(f"_max_pool(Tensor self, {_window}, int[] dilation, bool ceil_mode) -> (Tensor values, Tensor "
   f"indices)",
   node=_node("kernel_size", "MaxPool", "DWithIndicesBackward0"), kernel=custom(), variants="",
   nondiff=("indices",),
   grad={"self": "_max_pool_backward(grad_values, indices, self.sizes(), kernel_size.size())"},
   doc="The largest element of each window and its place in the image (flat).", own=True,
   jvp="gather_pooled(self_t, indices, kernel_size.size())", batch="fold")
op(f"_max_pool_values(Tensor self, {_window}, int[] dilation, bool ceil_mode) -> Tensor",
   node=_node("kernel_size", "MaxPool", "DWithIndicesBackward0"), kernel=custom(), variants="",
   grad={"self": "_max_pool_backward(grad, places_of_largest(self, kernel_size, stride, padding, "
                 "dilation, ceil_mode), self.sizes(), kernel_size.size())"},
   doc="The largest element of each window, for who will not ask for their places.", own=True,
   jvp="gather_pooled(self_t, places_of_largest(self, kernel_size, stride, padding, dilation, "
       "ceil_mode), kernel_size.size())", batch="fold")
op("_max_pool_backward(Tensor grad_output, Tensor indices, Size[] input_size, int dims) -> Tensor",
   kernel=custom(),
   variants="", grad={"grad_output": "gather_pooled(grad, indices, dims)"},
   doc="Adds gradients at the places of the largest elements.", own=True,
   jvp="linear", batch="fold")
op(f"_avg_pool(Tensor self, {_window}, bool ceil_mode, bool count_include_pad, int? "
   f"divisor_override) -> Tensor",
   node=_node("kernel_size", "AvgPool", "DBackward0"), kernel=custom(), variants="",
   grad={"self": "_avg_pool_backward(grad, self.sizes(), kernel_size, stride, padding, ceil_mode, "
                 "count_include_pad, "
         "divisor_override)"},
   doc="The mean of each window.", own=True,
   jvp="linear", batch="fold")
op(f"_avg_pool_backward(Tensor grad_output, Size[] input_size, {_window}, bool ceil_mode, bool "
   f"count_include_pad, "
   "int? divisor_override) -> Tensor", kernel=custom(), variants="",
   grad={"grad_output": "_avg_pool(grad, kernel_size, stride, padding, ceil_mode, "
                        "count_include_pad, divisor_override)"},
   doc="Spreads gradients over the windows.", own=True,
   jvp="linear", batch="fold")
op("_adaptive_avg_pool(Tensor self, int[] output_size) -> Tensor",
   node=_node("output_size", "AdaptiveAvgPool", "DBackward0"), kernel=custom(), variants="",
   grad={"self": "_adaptive_avg_pool_backward(grad, self.sizes(), output_size.size())"},
   doc="The means of nearly equal windows, as many as output_size says.", own=True,
   jvp="linear", batch="fold")
op("_adaptive_avg_pool_backward(Tensor grad_output, Size[] input_size, int dims) -> Tensor",
   kernel=custom(),
   variants="", grad={"grad_output": "_adaptive_avg_pool(grad, last_sizes(grad_output.sizes(), "
                                     "dims))"},
   doc="Spreads gradients over the windows.", own=True,
   jvp="linear", batch="fold")
op("_adaptive_max_pool(Tensor self, int[] output_size) -> (Tensor values, Tensor indices)",
   node=_node("output_size", "AdaptiveMaxPool", "DBackward0"), kernel=custom(),
   variants="", nondiff=("indices",),
   grad={"self": "_max_pool_backward(grad_values, indices, self.sizes(), output_size.size())"},
   doc="The largest elements of nearly equal windows and their places.", own=True,
   jvp="gather_pooled(self_t, indices, output_size.size())", batch="fold")


def _out(call, n):
    """The keys of the out= overload of a pooling that gives places: images and volumes have it."""
    name, _, arguments = call.partition("(")
    return {"out": "cpp",
            "overloads": [f"{name}.out({arguments}, out!, indices!)"]} if n > 1 else {}


for _n in (1, 2, 3):
    _sizes = f"int[{_n}] kernel_size, int[{_n}] stride=[], int[{_n}] padding=0"
    _dims = ("one dimension", "two dimensions", "three dimensions")[_n - 1]
    composite(f"max_pool{_n}d(Tensor self, {_sizes}, int[{_n}] dilation=1, bool ceil_mode=False) "
              f"-> Tensor",
              variants="function", doc=f"The largest element of each window over {_dims}.",
              autocast={"cpu": "float32"} if _n == 3 else None)
    composite(f"max_pool{_n}d_with_indices(Tensor self, {_sizes}, int[{_n}] dilation=1, bool "
              f"ceil_mode=False) -> "
              "(Tensor, Tensor)", variants="function", python="nn" if _n > 1 else "",
              doc="The same, with the places.",
              tags=("core",) if _n > 1 else (),
              **_out(f"max_pool{_n}d_with_indices(self, kernel_size, stride, padding, dilation, "
                     f"ceil_mode", _n))
    _more = ", int? divisor_override=None" if _n > 1 else ""
    composite(f"avg_pool{_n}d(Tensor self, {_sizes}, bool ceil_mode=False, bool "
              f"count_include_pad=True{_more}) -> Tensor",
              variants="function out" if _n > 1 else "function",
              python="nn functional" if _n > 1 else "functional",
              out="cpp", doc=f"The mean of each window over {_dims}.", tags=("core",),
              autocast={"cpu": "float32"} if _n == 3 else None)
    composite(f"adaptive_avg_pool{_n}d(Tensor self, int[{_n}] output_size) -> Tensor",
              variants="function", python="nn" if _n > 1 else "functional",
              out="cpp", doc=f"Means of nearly equal windows over {_dims}.",
              tags=("core",) if _n == 1 else (),
              autocast={"cpu": "float32"} if _n == 3 else None)
    composite(f"adaptive_max_pool{_n}d(Tensor self, int[{_n}] output_size) -> (Tensor, Tensor)",
              variants="function", python="nn" if _n > 1 else "",
              doc=f"Largest elements of nearly equal windows over {_dims}, with their places.",
              **_out(f"adaptive_max_pool{_n}d(self, output_size", _n),
              autocast={"cpu": "float32"} if _n == 3 else None)
    composite(f"lp_pool{_n}d(Tensor self, float norm_type, int[{_n}] kernel_size, int[{_n}]? "
              f"stride=None, "
              "bool ceil_mode=False) -> Tensor", variants="function", python="nn functional",
              doc=f"The p-norm of each window over {_dims}.", own=True)

# ---- derivatives under PyTorch's names ----

for _n in (2, 3):
    _given = f"int[{_n}] kernel_size, int[{_n}] stride, int[{_n}] padding"
    composite(f"max_pool{_n}d_with_indices_backward(Tensor grad_output, Tensor self, {_given}, "
              f"int[{_n}] dilation, bool ceil_mode, Tensor indices) -> Tensor", variants="",
              doc=f"The gradient of `max_pool{_n}d_with_indices` for self.",
              tags=("core",) if _n == 2 else ())
    composite(f"_adaptive_avg_pool{_n}d_backward(Tensor grad_output, Tensor self) -> Tensor",
              variants="", doc=f"The gradient of `adaptive_avg_pool{_n}d` for self.",
              tags=("core",) if _n == 2 else ())

# ---- windows at random places ----

_windows = "int[{n}] kernel_size, int[{n}] output_size, Tensor random_samples"
for _n in (2, 3):
    composite(f"fractional_max_pool{_n}d(Tensor self, {_windows.format(n=_n)}) -> (Tensor, Tensor)",
              variants="function",
              out="cpp", python="nn",
              overloads=[f"fractional_max_pool{_n}d.output(self, kernel_size, output_size, "
                         f"random_samples, output!, indices!)"],
              doc="The largest elements of output_size windows, and their places. The distances of "
                  "the windows "
                           "are nearly equal; where they begin depends on a number in [0, 1) for "
                           "each channel and dimension.",
              autocast={"cpu": "float32"})
composite("_fractional_max_pool(Tensor self, int dims, int[] kernel_size, int[]? output_size=None, "
          "float[]? output_ratio=None, Tensor? random_samples=None) -> (Tensor, Tensor)",
          variants="function",
          doc="`fractional_max_pool` of output_size windows, or of output_ratio times as many as "
              "there are pixels; "
              "random_samples are drawn where there are none.", own=True)

# ---- maxima put back ----

composite("max_unpool2d(Tensor self, Tensor indices, int[2] output_size) -> Tensor",
          variants="function out", python="nn",
          doc="An image of zeros with elements where indices say.",
          autocast={"cpu": "float32"})
composite("max_unpool3d(Tensor self, Tensor indices, int[3] output_size, int[3] stride, int[3] "
          "padding) -> Tensor",
          variants="function out", python="nn",
          doc="The same in three dimensions; stride and padding of the pooling that is undone are "
              "checked only.",
          autocast={"cpu": "float32"})
composite("_max_unpool(Tensor self, Tensor indices, int dims, int[] kernel_size, int[]? "
          "stride=None, int[] padding=0, "
          "int[]? output_size=None) -> Tensor", variants="function",
          doc="Undoes `max_pool`: the maxima at their indices, zeros elsewhere. output_size "
              "chooses among the sizes that "
              "pool to the input's.", own=True)
