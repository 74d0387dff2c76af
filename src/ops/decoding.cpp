// The contract of ops of language models that make a token at a time (ops/decoding.py).
#include "generated/contracts.h"
#include "kernels/gguf_blocks.h"

namespace rushlight {

namespace {

// Products of sizes that the caller gives must not overflow.
constexpr int64_t largest = int64_t{1} << 48;

const GgufBlock& checked_format(const char* op, std::string_view format) {
  const GgufBlock* const found = find_gguf_block(format);
  RL_CHECK(found != nullptr, op, ": format must be Q8_0, Q4_0, Q4_K or Q6_K, not '", format, "'");
  return *found;
}

// How many blocks a row of bytes has.
int64_t checked_blocks(const char* op, const Tensor& bytes, int64_t dims, const GgufBlock& format) {
  RL_CHECK(bytes.dtype() == kUInt8 && bytes.dim() >= dims, op,
           ": blocks must be of uint8 and have at least ", dims, " dimensions, not of ",
           bytes.dtype(), " and size ", bytes.sizes());
  const int64_t n = bytes.size(-1);
  RL_CHECK(n < largest, op, ": rows of ", n, " bytes are too long");
  RL_CHECK(n % format.bytes() == 0, op, ": rows of ", n, " bytes are no blocks of ", format.name,
           ", which have ", format.bytes());
  return n / format.bytes();
}

void check_panels(const char* op, const Tensor& panels, int64_t results, const GgufBlock& format) {
  RL_CHECK(results >= 0 && results < largest, op, ": there cannot be ", results, " results");
  RL_CHECK(panels.dtype() == kUInt8 && panels.dim() == 2 &&
               panels.size(0) == int8_panels(results) &&
               panels.size(1) % (int8_panel * format.bytes()) == 0,
           op, ": ", results, " results in blocks of ", format.name,
           " are panels of uint8 and size (", int8_panels(results), ", a multiple of ",
           int8_panel * format.bytes(), "), not of ", panels.dtype(), " and size ", panels.sizes());
}

void check_same_rows(const char* op, const char* name, const Tensor& t, const Tensor& like,
                     int64_t dim) {
  RL_CHECK(t.size(dim) == like.size(dim), op, ": ", name, " is of size ", t.sizes(),
           ", which does not go with ", like.sizes());
}

}  // namespace

namespace shape {

OutSpec _gguf_dequantize(Tensor& blocks, std::string& format) {
  constexpr const char* op = "_gguf_dequantize";
  const GgufBlock& about = checked_format(op, format);
  DimVector sizes(blocks.sizes());
  const int64_t count = checked_blocks(op, blocks, 1, about);
  sizes.back() = count * about.numbers;
  blocks = contiguous_raw(blocks);
  return {sizes, kFloat32};
}

OutSpec _gguf_pack(Tensor& blocks, std::string& format) {
  constexpr const char* op = "_gguf_pack";
  checked_blocks(op, blocks, 2, checked_format(op, format));
  RL_CHECK(blocks.dim() == 2, op, ": blocks must be a matrix, not of size ", blocks.sizes());
  blocks = contiguous_raw(blocks);
  return {{int8_panels(blocks.size(0)), int8_panel * blocks.size(1)}, kUInt8};
}

OutSpec _gguf_unpack(Tensor& panels, std::string& format, int64_t& results) {
  constexpr const char* op = "_gguf_unpack";
  check_panels(op, panels, results, checked_format(op, format));
  panels = contiguous_raw(panels);
  return {{results, panels.size(1) / int8_panel}, kUInt8};
}

OutSpec _gguf_linear(Tensor& input, Tensor& panels, Tensor& bias, std::string& format,
                     int64_t& results) {
  constexpr const char* op = "_gguf_linear";
  const GgufBlock& about = checked_format(op, format);
  RL_CHECK(input.dtype() == kFloat32 && input.dim() > 0, op,
           ": input must be of float32 and have a dimension, not of ", input.dtype(), " and size ",
           input.sizes());
  check_panels(op, panels, results, about);
  const int64_t inputs = panels.size(1) / (int8_panel * about.bytes()) * about.numbers;
  RL_CHECK(input.size(-1) == inputs, op, ": the weight has ", inputs, " inputs, not ",
           input.size(-1));
  if (bias.defined()) {
    RL_CHECK(bias.dim() == 1 && bias.size(0) == results && bias.dtype() == kFloat32, op,
             ": bias must be a vector of ", results, " numbers of float32, not of size ",
             bias.sizes(), " and of ", bias.dtype());
    bias = contiguous_raw(bias);
  }
  input = contiguous_raw(input);
  panels = contiguous_raw(panels);
  DimVector sizes(input.sizes());
  sizes.back() = results;
  return {sizes, kFloat32};
}

OutSpec _rotary(Tensor& input, Tensor& cos, Tensor& sin, Tensor& position, bool& /*adjacent*/) {
  constexpr const char* op = "_rotary";
  RL_CHECK(is_floating(input.dtype()) && input.dim() >= 2, op,
           ": input must be of floats and have at least two dimensions, not of ", input.dtype(),
           " and size ", input.sizes());
  RL_CHECK(cos.dtype() == kFloat32 && sin.dtype() == kFloat32 && cos.dim() == 2 &&
               cos.sizes() == sin.sizes() && cos.size(1) <= input.size(-1) / 2,
           op, ": cos and sin must be of float32 and of one size (positions, angles), at most ",
           input.size(-1) / 2, " angles, not of ", cos.dtype(), ", ", sin.dtype(), " and sizes ",
           cos.sizes(), ", ", sin.sizes());
  const bool is_number = position.numel() == 1;
  RL_CHECK(position.dtype() == kInt64 && (is_number || (input.dim() > 2 && position.dim() == 1 &&
                                                        position.size(0) == input.size(0))),
           op, ": position must be a number of int64, or one for each sequence, not of ",
           position.dtype(), " and size ", position.sizes());
  input = contiguous_raw(input);
  cos = contiguous_raw(cos);
  sin = contiguous_raw(sin);
  return {DimVector(input.sizes()), input.dtype()};
}

OutSpec _cached_attention(Tensor& query, Tensor& key, Tensor& value, Tensor& keys, Tensor& values,
                          Tensor& length, double& /*scale*/) {
  constexpr const char* op = "_cached_attention";
  for (const Tensor* t : {&query, &key, &value}) {
    RL_CHECK(t->dim() == 4 && t->dtype() == kFloat32, op,
             ": query, key and value must be (batch, heads, rows, width) of float32, not of size ",
             t->sizes(), " and of ", t->dtype());
    check_same_rows(op, "key or value", *t, query, 0);
    check_same_rows(op, "key or value", *t, query, 2);
  }
  for (const Tensor* t : {&keys, &values}) {
    RL_CHECK(t->dim() == 4 && t->is_contiguous() &&
                 (t->dtype() == kFloat32 || t->dtype() == kFloat16 || t->dtype() == kBFloat16 ||
                  t->dtype() == kInt8),
             op,
             ": caches must be contiguous (batch, heads, positions, width) of float32, float16, "
             "bfloat16 or int8, not of size ",
             t->sizes(), " and of ", t->dtype());
    check_same_rows(op, "a cache", *t, key, 1);
  }
  check_same_rows(op, "key", key, query, 3);
  const int64_t scales = keys.dtype() == kInt8 ? 4 : 0;  // bytes behind the codes of a row
  RL_CHECK(keys.size(3) == key.size(3) + scales && values.size(3) == value.size(3) + scales, op,
           ": rows of keys are of size ", keys.sizes(), " and those of values ", values.sizes(),
           ", which do not go with ", key.sizes(), " and ", value.sizes());
  check_same_rows(op, "value", value, key, 1);
  check_same_rows(op, "values", values, keys, 2);
  check_same_rows(op, "values", values, keys, 0);
  RL_CHECK(keys.dtype() == values.dtype(), op, ": caches must be of one dtype, not of ",
           keys.dtype(), " and ", values.dtype());
  RL_CHECK(key.size(1) > 0 ? query.size(1) % key.size(1) == 0 : query.size(1) == 0, op, ": ",
           query.size(1), " heads of query do not go into ", key.size(1), " heads of key");
  const bool picks = length.dim() == 2;
  RL_CHECK(
      length.dtype() == kInt64 &&
          (picks ? length.size(0) == query.size(0) && length.size(1) == 2
                 : length.numel() == 1 || (length.dim() == 1 && length.size(0) == query.size(0))),
      op,
      ": length must be of int64: a number, one for each sequence, or for each sequence what "
      "is filled and where it is in the cache, not of ",
      length.dtype(), " and size ", length.sizes());
  if (!picks) {
    check_same_rows(op, "a cache", keys, query, 0);
  }
  query = contiguous_raw(query);
  key = contiguous_raw(key);
  value = contiguous_raw(value);
  return {{query.size(0), query.size(1), query.size(2), value.size(3)}, kFloat32};
}

}  // namespace shape

}  // namespace rushlight
