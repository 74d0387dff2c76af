// The table of the language's functions, a part for each kind of value.
#pragma once

#include <rushlight/graph_function.h>

#include "graph/values.h"

namespace rushlight::graph {

struct BuiltinRow {
  std::string schema;
  BuiltinCall call;
  bool pure = true;
};
using BuiltinRows = std::vector<BuiltinRow>;

BuiltinRows number_builtins();
BuiltinRows math_builtins();
BuiltinRows list_builtins();
BuiltinRows dict_builtins();
BuiltinRows string_builtins();
BuiltinRows tensor_builtins();
BuiltinRows vision_builtins();

// ---- C++ functions as functions of the language ----

template <class R>
void put_result(IValue* results, R&& result) {
  results[0] = IValue(std::forward<R>(result));
}
template <class A, class B>
void put_result(IValue* results, std::pair<A, B>&& result) {  // two results
  results[0] = IValue(std::move(result.first));
  results[1] = IValue(std::move(result.second));
}
template <class R, class... A, size_t... I>
void call_with(R (*function)(A...), IValue* arguments, IValue* results, std::index_sequence<I...>) {
  if constexpr (std::is_void_v<R>) {
    function(arguments[I].to<std::decay_t<A>>()...);
  } else {
    put_result(results, function(arguments[I].to<std::decay_t<A>>()...));
  }
}
template <class R, class... A>
void call_unpacked(R (*function)(A...), IValue* arguments, IValue* results) {
  call_with(function, arguments, results, std::index_sequence_for<A...>());
}
// A BuiltinCall of a function of values: call_of<+[](int64_t a, int64_t b) { return a + b; }>.
template <auto function>
void call_of(IValue* arguments, size_t, IValue* results) {
  call_unpacked(function, arguments, results);
}

// ---- what several parts need ----

// As == of the language: of numbers by value, of lists and tuples item by item.
bool equal(const IValue& a, const IValue& b);
bool less(const IValue& a, const IValue& b);  // of numbers, strings, and objects with __lt__
// As str() and format() say it, which is what print writes.
std::string text_of(const IValue& value);
std::string float_text(double number);  // "1." and "0.10000000000000001"
// A place counted from the end where it is negative; IndexError where there is none.
size_t place_in(int64_t index, size_t size, const char* what);
// The places that [start:end:step] names.
std::vector<size_t> slice_places(const IValue& start, const IValue& end, int64_t step, size_t size);

}  // namespace rushlight::graph
