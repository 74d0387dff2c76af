"""Language models that make a token at a time: blocks of GGUF, rotated rows, caches of attention.

Blocks are read as files have them, or packed for products (src/kernels/gguf_blocks.h). Sums of a
block are whole numbers, and blocks are added in order, so that products have the same bits on
every processor, with any number of threads, and beside any other rows.
"""

from gen.table import custom, op

op("_gguf_dequantize(Tensor blocks, str format) -> Tensor", kernel=custom(place="once"),
   variants="function", grad="none", own=True,
   batch="leading",
   doc="The float32 numbers of blocks: rows of bytes (..., bytes) become (..., numbers). Formats "
       "are Q8_0, Q4_0, Q4_K and Q6_K.")
op("_gguf_pack(Tensor blocks, str format) -> Tensor", kernel=custom(place="once"),
   variants="function", grad="none", own=True,
   batch="slices: a weight has no batch",
   doc="A weight of blocks (results, bytes) in the order in which products read it: (panels of 16 "
       "results, 16 times the bytes of a row). What is missing in the last panel is 0.")
op("_gguf_unpack(Tensor panels, str format, int results) -> Tensor", kernel=custom(place="once"),
   variants="function", grad="none", own=True,
   batch="slices: a weight has no batch",
   doc="The blocks (results, bytes) of a packed weight.")
op("_gguf_linear(Tensor input, Tensor panels, Tensor? bias, str format, int results) -> Tensor",
   kernel=custom(place="once"), variants="function", grad="missing", own=True,
   batch="slices: a weight has no batch",
   doc="A linear layer with a packed weight of blocks. Each row of the input is rounded to codes "
       "from -127 to 127, with a scale for as many numbers as a block has.")
op("_rotary(Tensor input, Tensor cos, Tensor sin, Tensor position, bool adjacent) -> Tensor",
   kernel=custom(place="once"), variants="function", own=True,
   grad={"input": "_rotary(grad, cos, -sin, position, adjacent)"},
   jvp={"input": "_rotary(input_t, cos, sin, position, adjacent)"},
   batch="slices: tables have no batch",
   doc="Rotary position embedding of rows (..., rows, width): row i is turned by the angles of "
       "which row `position` + i of the tables (positions, angles) has cosines and sines; "
       "`position` is a number, or one for each of the first dimension. Pairs are numbers side by "
       "side, or those of the two halves of what is turned; numbers beyond two for each angle "
       "stay.")
op("_cached_attention(Tensor query, Tensor key, Tensor value, Tensor(a!) keys, Tensor(b!) values, "
   "Tensor(c!) length, float scale) -> Tensor",
   kernel=custom(), variants="function", grad="missing", own=True,
   batch="refused: a cache has one length for all slices",
   doc="Appends keys and values (batch, heads, rows, width) to caches (sequences, heads, "
       "positions, width) of which `length` are filled, and attends to all positions up to each "
       "query's own. `length` is a number, one for each sequence, or (batch, 2): what is filled "
       "of a sequence, and where in the caches it is. Equal groups of heads of query share a head "
       "of the cache. Caches of int8 have codes and behind those of a row their scale, a float "
       "in four bytes.")
