// Numbers by which .pt2 files say what a tensor is.
#include "exported/facts.h"

#include <limits>

namespace rushlight::exported {

using serialize::Json;

namespace {
constexpr DtypeNumber dtypes[] = {{1, kUInt8},
                                  {2, kInt8},
                                  {3, kInt16},
                                  {4, kInt32},
                                  {5, kInt64},
                                  {6, kFloat16},
                                  {7, kFloat32},
                                  {8, kFloat64},
                                  {9, kComplexHalf},
                                  {10, kComplexFloat},
                                  {11, kComplexDouble},
                                  {12, kBool},
                                  {13, kBFloat16},
                                  {28, kUInt16},
                                  {29, ScalarType::Float8_e4m3fn},
                                  {30, ScalarType::Float8_e5m2},
                                  {31, ScalarType::Float8_e4m3fnuz},
                                  {32, ScalarType::Float8_e5m2fnuz},
                                  {34, kUInt32},
                                  {35, kUInt64}};
}  // namespace

ArrayRef<DtypeNumber> dtype_numbers() { return dtypes; }

ScalarType dtype_numbered(int64_t number) {
  for (const DtypeNumber& row : dtypes) {
    if (row.number == number) {
      return row.dtype;
    }
  }
  throw Error(str(damaged, ": ", number, " stands for no dtype"));
}

Layout layout_numbered(int64_t number) {
  constexpr Layout layouts[] = {
      kSparse, kSparseCsr, kSparseCsc, kSparseBsr, kSparseBsc, kStrided /* unused */, kStrided};
  RL_CHECK(number >= 1 && number <= 7 && number != 6, damaged, ": ", number,
           " stands for no layout");
  return layouts[number - 1];
}

MemoryFormat memory_format_numbered(int64_t number) {
  constexpr MemoryFormat formats[] = {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast,
                                      MemoryFormat::ChannelsLast3d, MemoryFormat::Preserve};
  RL_CHECK(number >= 1 && number <= 4, damaged, ": ", number, " stands for no memory format");
  return formats[number - 1];
}

Device device_of(const Json& record) {
  const std::string type = record.at("type").string();
  const std::optional<Json> index = record.find("index");
  return Device(index ? str(type, ":", index->integer()) : type);
}

std::optional<int64_t> known_size(const Json& record) {
  const std::optional<Json> size = record.find("as_int");
  return size ? std::optional(size->integer()) : std::nullopt;
}

double number_of(const Json& record) {
  if (!record.is_string()) {
    return record.number();
  }
  const std::string word = record.string();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  RL_CHECK(word == "Infinity" || word == "-Infinity" || word == "NaN", damaged, ": '", word,
           "' where a number is wanted");
  return word == "Infinity"    ? infinity
         : word == "-Infinity" ? -infinity
                               : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace rushlight::exported
