// Functions of lists, which change the list that all of its holders see.
#include <algorithm>

#include "graph/builtins.h"

namespace rushlight::graph {

namespace {

using Items = IValue::Items;

// What a list holds, to be read and changed.
Items& list_items(const IValue& list) {
  RL_CHECK(list.isList(), "a ", type_of(list).annotation(), " was used as a list");
  return items_of(list);
}

// A list taken from the first argument's place, which is the result too.
#define RL_LIST_CALL(body)                                                 \
  [](IValue* a, [[maybe_unused]] size_t n, [[maybe_unused]] IValue* out) { \
    [[maybe_unused]] Items& list = list_items(a[0]);                       \
    body                                                                   \
  }

size_t find_in(const Items& list, const IValue& item) {
  return static_cast<size_t>(
      std::find_if(list.begin(), list.end(), [&](const IValue& one) { return equal(one, item); }) -
      list.begin());
}

void sort(Items& list, bool reverse) {
  // A stable order either way, as Python's; what cannot be compared leaves the list as it was.
  Items sorted = list;
  std::stable_sort(sorted.begin(), sorted.end(), [&](const IValue& a, const IValue& b) {
    return reverse ? less(b, a) : less(a, b);
  });
  list = std::move(sorted);
}

void extend(Items& list, const IValue& by) {
  const Items more = list_items(by);  // which may be the list itself
  list.insert(list.end(), more.begin(), more.end());
}

Items concatenate(const Items& a, const Items& b) {
  Items out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

Items repeat(const Items& list, int64_t times) {
  Items out;
  constexpr uint64_t most = uint64_t{1} << 40;
  RL_CHECK(times <= 0 || static_cast<uint64_t>(times) < most / std::max<size_t>(list.size(), 1),
           "a list of ", list.size(), " items repeated ", times, " times is too long");
  out.reserve(list.size() * static_cast<size_t>(std::max<int64_t>(times, 0)));
  for (int64_t i = 0; i < times; i++) {
    out.insert(out.end(), list.begin(), list.end());
  }
  return out;
}

template <bool wants_more>
void extreme_item(IValue* a, size_t, IValue* out) {
  const Items& list = list_items(a[0]);
  RL_CHECK_VALUE(!list.empty(), wants_more ? "max" : "min", "() arg is an empty sequence");
  const IValue* best = &list[0];
  for (const IValue& one : list) {
    if (wants_more ? less(*best, one) : less(one, *best)) {
      best = &one;
    }
  }
  out[0] = *best;
}
template <bool wants_more>
void extreme_list(IValue* a, size_t, IValue* out) {
  const bool takes_second =
      wants_more
          ? std::lexicographical_compare(list_items(a[0]).begin(), list_items(a[0]).end(),
                                         list_items(a[1]).begin(), list_items(a[1]).end(), less)
          : std::lexicographical_compare(list_items(a[1]).begin(), list_items(a[1]).end(),
                                         list_items(a[0]).begin(), list_items(a[0]).end(), less);
  out[0] = a[takes_second ? 1 : 0];
}

bool is_true(const IValue& item) {
  return item.isString() ? !item.toStringRef().empty() : item.toScalar().toBool();
}

template <bool is_equal>
void compare(IValue* a, size_t, IValue* out) {
  out[0] = IValue(equal(a[0], a[1]) == is_equal);
}

void sum_of_ints(IValue* a, size_t, IValue* out) {
  uint64_t sum = 0;
  for (const IValue& item : list_items(a[0])) {
    sum += static_cast<uint64_t>(item.toScalar().as<int64_t>());
  }
  out[0] = IValue(static_cast<int64_t>(sum));
}
void sum_of_floats(IValue* a, size_t, IValue* out) {
  double sum = 0;
  for (const IValue& item : list_items(a[0])) {
    sum += item.toDouble();
  }
  out[0] = IValue(sum);
}
void sum_of_complex(IValue* a, size_t, IValue* out) {
  complex<double> sum = 0;
  for (const IValue& item : list_items(a[0])) {
    sum = sum + item.toScalar().as<complex<double>>();
  }
  out[0] = IValue(Scalar(sum));
}

const BuiltinRow rows[] = {
    {"aten::len.t(t[] a) -> int",
     RL_LIST_CALL({ out[0] = IValue(static_cast<int64_t>(list.size())); })},
    {"aten::__getitem__.t(t[] list, int idx) -> t",
     RL_LIST_CALL({ out[0] = list[place_in(a[1].toInt(), list.size(), "list")]; })},
    {"aten::select.t(t[] list, int idx) -> t",
     RL_LIST_CALL({ out[0] = list[place_in(a[1].toInt(), list.size(), "list")]; })},
    {"aten::_set_item.t(t[](a!) l, int idx, t el) -> t[](a!)", RL_LIST_CALL({
       list[place_in(a[1].toInt(), list.size(), "list")] = std::move(a[2]);
       out[0] = a[0];
     }),
     false},
    {"aten::Delete.t(t[](a!) self, int idx) -> ()", RL_LIST_CALL({
       list.erase(list.begin() +
                  static_cast<ptrdiff_t>(place_in(a[1].toInt(), list.size(), "list")));
     }),
     false},
    {"aten::append.t(t[](a!) self, t el) -> t[](a!)", RL_LIST_CALL({
       list.push_back(std::move(a[1]));
       out[0] = a[0];
     }),
     false},
    {"aten::extend.t(t[](a!) self, t[] other) -> ()", RL_LIST_CALL({ extend(list, a[1]); }), false},
    {"aten::add_.t(t[](a!) self, t[] b) -> t[](a!)", RL_LIST_CALL({
       extend(list, a[1]);
       out[0] = a[0];
     }),
     false},
    {"aten::add.t(t[] a, t[] b) -> t[]",
     RL_LIST_CALL({ out[0] = list_value(concatenate(list, list_items(a[1]))); })},
    {"aten::mul.left_t(t[] l, int n) -> t[]",
     RL_LIST_CALL({ out[0] = list_value(repeat(list, a[1].toInt())); })},
    {"aten::mul.right_(int n, t[] l) -> t[]",
     [](IValue* a, size_t, IValue* out) {
       out[0] = list_value(repeat(list_items(a[1]), a[0].toInt()));
     }},
    {"aten::mul_.t(t[](a!) l, int n) -> t[](a!)", RL_LIST_CALL({
       list = repeat(list, a[1].toInt());
       out[0] = a[0];
     }),
     false},
    {"aten::insert.t(t[](a!) self, int idx, t el) -> ()", RL_LIST_CALL({
       const auto size = static_cast<int64_t>(list.size());
       const int64_t wanted = a[1].toInt() < 0 ? a[1].toInt() + size : a[1].toInt();
       list.insert(list.begin() + std::clamp<int64_t>(wanted, 0, size), std::move(a[2]));
     }),
     false},
    {"aten::pop.t(t[](a!) self, int idx=-1) -> t", RL_LIST_CALL({
       RL_CHECK_INDEX(!list.empty(), "pop from empty list");
       const auto at =
           list.begin() + static_cast<ptrdiff_t>(place_in(a[1].toInt(), list.size(), "list"));
       out[0] = std::move(*at);
       list.erase(at);
     }),
     false},
    {"aten::remove.t(t[](a!) self, t el) -> ()", RL_LIST_CALL({
       const size_t place = find_in(list, a[1]);
       RL_CHECK_VALUE(place < list.size(), "list.remove(x): x not in list");
       list.erase(list.begin() + static_cast<ptrdiff_t>(place));
     }),
     false},
    {"aten::reverse.t(t[](a!) self) -> ()",
     RL_LIST_CALL({ std::reverse(list.begin(), list.end()); }), false},
    {"aten::clear.t(t[](a!) self) -> ()", RL_LIST_CALL({ list.clear(); }), false},
    {"aten::copy.t(t[] self) -> t[]", RL_LIST_CALL({ out[0] = list_value(list); })},
    {"aten::list.t(t[] l) -> t[]", RL_LIST_CALL({ out[0] = list_value(list); })},
    {"aten::Size(int[] sizes) -> int[]", RL_LIST_CALL({ out[0] = list_value(list); })},
    {"aten::index.list_t(t[] self, t el) -> int", RL_LIST_CALL({
       const size_t place = find_in(list, a[1]);
       RL_CHECK_VALUE(place < list.size(), "'", text_of(a[1]), "' is not in list");
       out[0] = IValue(static_cast<int64_t>(place));
     })},
    {"aten::count.t(t[] self, t el) -> int", RL_LIST_CALL({
       const auto found = std::count_if(list.begin(), list.end(),
                                        [&](const IValue& one) { return equal(one, a[1]); });
       out[0] = IValue(static_cast<int64_t>(found));
     })},
    {"aten::__contains__.t(t[] l, t item) -> bool",
     RL_LIST_CALL({ out[0] = IValue(find_in(list, a[1]) < list.size()); })},
    {"aten::slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]", RL_LIST_CALL({
       Items made;
       for (const size_t place : slice_places(a[1], a[2], a[3].toInt(), list.size())) {
         made.push_back(list[place]);
       }
       out[0] = list_value(std::move(made));
     })},
    {"aten::sort.t(t[](a!) self, bool reverse=False) -> ()",
     RL_LIST_CALL({ sort(list, a[1].toBool()); }), false},
    {"aten::sorted.t(t[] input) -> t[]", RL_LIST_CALL({
       Items made = list;
       sort(made, false);
       out[0] = list_value(std::move(made));
     })},
    {"aten::eq.list_t(t[] a, t[] b) -> bool", compare<true>},
    {"aten::ne.list_t(t[] a, t[] b) -> bool", compare<false>},
    {"prim::max.int_list(int[] l, int[] r) -> int[]", extreme_list<true>},
    {"prim::max.float_list(float[] l, float[] r) -> float[]", extreme_list<true>},
    {"prim::max.self_int(int[] self) -> int", extreme_item<true>},
    {"prim::max.self_float(float[] self) -> float", extreme_item<true>},
    {"prim::max.self_bool(bool[] self) -> bool", extreme_item<true>},
    {"prim::min.int_list(int[] l, int[] r) -> int[]", extreme_list<false>},
    {"prim::min.float_list(float[] l, float[] r) -> float[]", extreme_list<false>},
    {"prim::min.self_int(int[] self) -> int", extreme_item<false>},
    {"prim::min.self_float(float[] self) -> float", extreme_item<false>},
    {"prim::min.self_bool(bool[] self) -> bool", extreme_item<false>},
    {"aten::sum.int(int[] self) -> int", sum_of_ints},
    {"aten::sum.bool(bool[] self) -> int", sum_of_ints},
    {"aten::sum.float(float[] self) -> float", sum_of_floats},
    {"aten::sum.complex(complex[] self) -> complex", sum_of_complex},
    {"prim::rangelist(int n) -> int[]",
     [](IValue* a, size_t, IValue* out) {
       constexpr int64_t most = int64_t{1} << 32;
       RL_CHECK(a[0].toInt() < most, "range(", a[0].toInt(), ") is too long for a list");
       Items made;
       for (int64_t i = 0; i < a[0].toInt(); i++) {
         made.push_back(IValue(i));
       }
       out[0] = list_value(std::move(made));
     }},
    {"aten::_infer_size(int[] a, int[] b) -> int[]",
     [](IValue* a, size_t, IValue* out) {
       std::vector<int64_t> x = a[0].toIntVector();
       std::vector<int64_t> y = a[1].toIntVector();
       if (x.size() < y.size()) {
         std::swap(x, y);
       }
       const size_t extra = x.size() - y.size();
       for (size_t i = 0; i < y.size(); i++) {
         int64_t& size = x[extra + i];
         RL_CHECK(size == y[i] || size == 1 || y[i] == 1, "The size of tensor a (", size,
                  ") must match the size of tensor b (", y[i], ") at dimension ", extra + i);
         size = size == 1 ? y[i] : size;
       }
       Items made;
       for (const int64_t size : x) {
         made.push_back(IValue(size));
       }
       out[0] = list_value(std::move(made));
     }},
};

}  // namespace

size_t place_in(int64_t index, size_t size, const char* what) {
  const auto n = static_cast<int64_t>(size);
  RL_CHECK_INDEX(index >= -n && index < n, what, " index out of range");
  return static_cast<size_t>(index < 0 ? index + n : index);
}

std::vector<size_t> slice_places(const IValue& start, const IValue& end, int64_t step,
                                 size_t size) {
  RL_CHECK_VALUE(step != 0, "slice step cannot be zero");
  const auto n = static_cast<int64_t>(size);
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? n : n - 1;
  const auto place = [&](const IValue& wanted, int64_t otherwise) {
    if (wanted.isNone()) {
      return otherwise;
    }
    const int64_t at = wanted.toInt();
    return std::clamp(at < 0 && at >= -n ? at + n : at < 0 ? low : at, low, high);
  };
  std::vector<size_t> out;
  const int64_t last = place(end, step > 0 ? high : low);
  int64_t at = place(start, step > 0 ? low : high);
  while (step > 0 ? at < last : at > last) {
    out.push_back(static_cast<size_t>(at));
    if (step > 0 ? step >= last - at : step <= last - at) {
      break;  // the next is beyond the end, and perhaps beyond int64
    }
    at += step;
  }
  return out;
}

BuiltinRows list_builtins() {
  BuiltinRows out(std::begin(rows), std::end(rows));
  for (const char* const item : {"int", "float", "bool", "str"}) {
    const std::string type = item;
    out.push_back({"aten::any." + type + "(" + type + "[] self) -> bool", RL_LIST_CALL({
                     out[0] = IValue(std::any_of(list.begin(), list.end(), is_true));
                   })});
    if (type != "str") {
      out.push_back({"aten::all." + type + "(" + type + "[] self) -> bool", RL_LIST_CALL({
                       out[0] = IValue(std::all_of(list.begin(), list.end(), is_true));
                     })});
    }
  }
  return out;
}
#undef RL_LIST_CALL

}  // namespace rushlight::graph
