// Numbers by which .pt2 files say what a tensor is, and tensors that they describe.
#pragma once

#include <rushlight/tensor.h>

#include <rushlight/json.h>

namespace rushlight::exported {

constexpr const char* damaged = "this .pt2 file is damaged";
constexpr int64_t schema_version = 8;

// The dtypes that files have numbers for.
struct DtypeNumber {
  int64_t number;
  ScalarType dtype;
};
RL_API ArrayRef<DtypeNumber> dtype_numbers();
// RuntimeError of a number that stands for none.
ScalarType dtype_numbered(int64_t number);
Layout layout_numbered(int64_t number);
MemoryFormat memory_format_numbered(int64_t number);
Device device_of(const serialize::Json& record);
// A size that is a number; nothing where it is an expression.
std::optional<int64_t> known_size(const serialize::Json& record);
// A float, of which infinities and NaN are words.
double number_of(const serialize::Json& record);

}  // namespace rushlight::exported
