"""Pooling over one, two and three dimensions: one kernel each, whose length of kernel_size says over how many."""

from gen.table import composite, custom, op

_window = "int[] kernel_size, int[] stride, int[] padding"

def _node(sizes, before, after):
    """PyTorch's names of the nodes: by the number of dimensions that are pooled over."""
    return {"": f"{before}2{after}", **{f"{sizes}.size() == {n}": f"{before}{n}{after}" for n in (1, 3)}}


op(f"_max_pool(Tensor self, {_window}, int[] dilation, bool ceil_mode) -> (Tensor values, Tensor indices)",
   node=_node("kernel_size", "MaxPool", "DWithIndicesBackward0"), kernel=custom(), variants="", nondiff=("indices",),
   grad={"self": "_max_pool_backward(grad_values, indices, self.sizes(), kernel_size.size())"},
   doc="The largest element of each window and its place in the image (flat).")
op("_max_pool_backward(Tensor grad_output, Tensor indices, int[] input_size, int dims) -> Tensor", kernel=custom(),
   variants="", grad={"grad_output": "pooled_at(grad, indices, dims)"},
   doc="Adds gradients at the places of the largest elements.")
op(f"_avg_pool(Tensor self, {_window}, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
   node=_node("kernel_size", "AvgPool", "DBackward0"), kernel=custom(), variants="",
   grad={"self": "_avg_pool_backward(grad, self.sizes(), kernel_size, stride, padding, ceil_mode, count_include_pad, "
         "divisor_override)"},
   doc="The mean of each window.")
op(f"_avg_pool_backward(Tensor grad_output, int[] input_size, {_window}, bool ceil_mode, bool count_include_pad, "
   "int? divisor_override) -> Tensor", kernel=custom(), variants="",
   grad={"grad_output": "_avg_pool(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)"},
   doc="Spreads gradients over the windows.")
op("_adaptive_avg_pool(Tensor self, int[] output_size) -> Tensor", node=_node("output_size", "AdaptiveAvgPool", "DBackward0"), kernel=custom(), variants="",
   grad={"self": "_adaptive_avg_pool_backward(grad, self.sizes(), output_size.size())"},
   doc="The means of nearly equal windows, as many as output_size says.")
op("_adaptive_avg_pool_backward(Tensor grad_output, int[] input_size, int dims) -> Tensor", kernel=custom(),
   variants="", grad={"grad_output": "_adaptive_avg_pool(grad, last_sizes(grad_output.sizes(), dims))"},
   doc="Spreads gradients over the windows.")
op("_adaptive_max_pool(Tensor self, int[] output_size) -> (Tensor values, Tensor indices)", node=_node("output_size", "AdaptiveMaxPool", "DBackward0"), kernel=custom(),
   variants="", nondiff=("indices",),
   grad={"self": "_max_pool_backward(grad_values, indices, self.sizes(), output_size.size())"},
   doc="The largest elements of nearly equal windows and their places.")

for _n in (1, 2, 3):
    _sizes = f"int[{_n}] kernel_size, int[{_n}] stride=[], int[{_n}] padding=0"
    _dims = ("one dimension", "two dimensions", "three dimensions")[_n - 1]
    composite(f"max_pool{_n}d(Tensor self, {_sizes}, int[{_n}] dilation=1, bool ceil_mode=False) -> Tensor",
              variants="function", doc=f"The largest element of each window over {_dims}.")
    composite(f"max_pool{_n}d_with_indices(Tensor self, {_sizes}, int[{_n}] dilation=1, bool ceil_mode=False) -> "
              "(Tensor, Tensor)", variants="function", nn=_n > 1, doc="The same, with the places.")
    _more = ", int? divisor_override=None" if _n > 1 else ""
    composite(f"avg_pool{_n}d(Tensor self, {_sizes}, bool ceil_mode=False, bool count_include_pad=True{_more}) -> Tensor",
              variants="function", nn=_n > 1, doc=f"The mean of each window over {_dims}.")
    composite(f"adaptive_avg_pool{_n}d(Tensor self, int[{_n}] output_size) -> Tensor", variants="function", nn=_n > 1,
              doc=f"Means of nearly equal windows over {_dims}.")
    composite(f"adaptive_max_pool{_n}d(Tensor self, int[{_n}] output_size) -> (Tensor, Tensor)", variants="function",
              nn=_n > 1, doc=f"Largest elements of nearly equal windows over {_dims}, with their places.")
