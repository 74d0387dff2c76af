// Lists, sets and maps of the standard library in streams, as programs of libtorch print them:
// elements with blanks between them, "..." in place of those behind the hundredth.
#pragma once

#include <map>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

namespace rushlight::detail {
template <class List>
std::ostream& print_elements(std::ostream& out, const List& list);
}  // namespace rushlight::detail

// Where a stream of such a list looks for its operator.
namespace std {
template <class A, class B>
ostream& operator<<(ostream& out, const pair<A, B>& two) {
  return out << '(' << two.first << ", " << two.second << ')';
}
template <class T, class Allocator>
ostream& operator<<(ostream& out, const vector<T, Allocator>& list) {
  return ::rushlight::detail::print_elements(out, list);
}
template <class T, class Less, class Allocator>
ostream& operator<<(ostream& out, const set<T, Less, Allocator>& list) {
  return ::rushlight::detail::print_elements(out, list);
}
template <class K, class V, class Less, class Allocator>
ostream& operator<<(ostream& out, const map<K, V, Less, Allocator>& list) {
  return ::rushlight::detail::print_elements(out, list);
}
}  // namespace std

template <class List>
std::ostream& rushlight::detail::print_elements(std::ostream& out, const List& list) {
  constexpr size_t most = 100;
  size_t n = 0;
  for (const auto& element : list) {
    if (n > 0) {
      out << ' ';
    }
    if (n++ == most) {
      return out << "...";
    }
    out << element;
  }
  return out;
}
