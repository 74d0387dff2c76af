"""Layers of codes of 8 bits: products and sums of integers, exact, then one formula in float32.

Results have the same bits on every processor and with any number of threads. A weight is packed
once; `sums` are those of its rows, and `steps` what a step of the codes of each row is.
"""

from gen.table import custom, op

_WEIGHT = "Tensor weight, Tensor sums, Tensor steps, Tensor? bias"

op("_int8_pack(Tensor weight, int groups=1) -> Tensor", kernel=custom(place="once"),
   variants="function", grad="none", own=True,
   batch="slices: weights are packed once",
   doc="A matrix (results, inputs) of int8 in the order in which products read it: (groups, panels "
       "of 16 results, groups of 4 inputs, 64). The results are those of each group in turn.")
op(f"_int8_linear_dynamic(Tensor input, {_WEIGHT}, bool reduce_range, bool by_rows, "
   "bool relu) -> Tensor",
   kernel=custom(place="once"), variants="function", grad="none", own=True,
   batch="slices: a slice has a scale of its own",
   doc="A linear layer with a packed weight. The input is rounded to codes of its own scale, of 7 "
       "bits with `reduce_range` and else of 8; or each row to codes from -127 to 127 of its own.")
op(f"_int8_convolution(Tensor input, float scale, int zero_point, {_WEIGHT}, bool relu, "
   "float result_scale, int result_zero_point, int[] kernel, int[] stride, int[] padding, "
   "int[] dilation, int groups) -> Tensor",
   kernel=custom(place="once"), variants="function", grad="none", own=True,
   batch="slices: quantised tensors are not batched",
   doc="A convolution of codes (N, ..., C) with a packed weight of rows (taps, channels of a "
       "group), whose results are codes of the input's dtype; without dimensions of a kernel it is "
       "a linear layer. A weight (taps, C) that is not packed is that of one group a channel.")
op("_codes_of(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor",
   kernel=custom(), variants="function", grad="none", own=True,
   batch="leading",
   doc="The nearest codes of float32 numbers, of int8 or uint8: self / scale + zero_point, rounded "
       "to even. Too large numbers and NaN have the last one.")
op("_numbers_of_codes(Tensor codes, float scale, int zero_point) -> Tensor",
   kernel=custom(), variants="function", grad="none", own=True,
   batch="leading",
   doc="What codes of int8 or uint8 stand for: (codes - zero_point) * scale in float32.")
op("_combine_codes(Tensor self, float self_scale, int self_zero_point, Tensor other, "
   "float other_scale, int other_zero_point, str how, bool relu, float scale, int zero_point)"
   " -> Tensor",
   kernel=custom(), variants="function", grad="none", own=True,
   batch="aligned",
   doc="The codes of the sum (`how` is \"add\") or the product (\"mul\") of the numbers that codes "
       "of one dtype stand for, and of its relu.")
op("_block_linear(Tensor input, Tensor weight, Tensor scales, Tensor? zeros, Tensor? bias, "
   "int group, int bits) -> Tensor",
   kernel=custom(place="once"), variants="function", grad="missing", own=True,
   batch="slices: a weight has no batch",
   doc="A linear layer whose weight has a scale, and perhaps a zero point, for each group of "
       "inputs of a result; `scales` and `zeros` are (groups of inputs, results). Codes of 4 or "
       "8 bits without a sign are packed into (panels of 16 results, groups of 4 inputs, 64), "
       "those of 4 bits two groups at a time, the second in the upper bits. Without `zeros` the "
       "middle code is 0. Each row of the input is rounded to codes from -127 to 127 in the same"
       " groups.")
