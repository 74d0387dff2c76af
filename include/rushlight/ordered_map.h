// A hash map whose items keep the order in which they came: libtorch's
// ska_ordered::order_preserving_flat_hash_map.
#pragma once

#include <initializer_list>
#include <iterator>
#include <list>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace ska_ordered {

template <class K, class V>
class order_preserving_flat_hash_map {
 public:
  using key_type = K;
  using mapped_type = V;
  using value_type = std::pair<const K, V>;
  using iterator = typename std::list<value_type>::iterator;
  using const_iterator = typename std::list<value_type>::const_iterator;

  order_preserving_flat_hash_map() = default;
  order_preserving_flat_hash_map(std::initializer_list<value_type> items) {
    insert(items.begin(), items.end());
  }
  template <class Iterator>
  order_preserving_flat_hash_map(Iterator first, Iterator last) {
    insert(first, last);
  }
  order_preserving_flat_hash_map(const order_preserving_flat_hash_map& o)
      : order_preserving_flat_hash_map(o.begin(), o.end()) {}
  order_preserving_flat_hash_map(order_preserving_flat_hash_map&&) = default;
  order_preserving_flat_hash_map& operator=(order_preserving_flat_hash_map o) {
    items_.swap(o.items_);
    places_.swap(o.places_);
    return *this;
  }

  iterator begin() { return items_.begin(); }
  iterator end() { return items_.end(); }
  const_iterator begin() const { return items_.begin(); }
  const_iterator end() const { return items_.end(); }
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void reserve(size_t n) { places_.reserve(n); }
  void clear() {
    places_.clear();
    items_.clear();
  }

  iterator find(const K& key) {
    const auto place = places_.find(key);
    return place == places_.end() ? end() : place->second;
  }
  const_iterator find(const K& key) const {
    return const_cast<order_preserving_flat_hash_map*>(this)->find(key);
  }
  size_t count(const K& key) const { return places_.count(key); }
  bool contains(const K& key) const { return count(key) != 0; }
  V& at(const K& key) {
    const iterator place = find(key);
    if (place == end()) {
      throw std::out_of_range("a map has no such key");
    }
    return place->second;
  }
  const V& at(const K& key) const {
    return const_cast<order_preserving_flat_hash_map*>(this)->at(key);
  }
  V& operator[](const K& key) { return emplace(key, V()).first->second; }

  // The item with the key, and whether it is new: one that is there stays as it is.
  template <class... A>
  std::pair<iterator, bool> emplace(A&&... arguments) {
    items_.emplace_back(std::forward<A>(arguments)...);
    const iterator made = std::prev(items_.end());
    const auto [place, is_new] = places_.emplace(made->first, made);
    if (!is_new) {
      items_.erase(made);
    }
    return {place->second, is_new};
  }
  std::pair<iterator, bool> insert(value_type item) { return emplace(std::move(item)); }
  template <class Iterator>
  void insert(Iterator first, Iterator last) {
    for (; first != last; ++first) {
      emplace(first->first, first->second);
    }
  }
  size_t erase(const K& key) {
    const iterator place = find(key);
    if (place == end()) {
      return 0;
    }
    erase(const_iterator(place));
    return 1;
  }
  iterator erase(const_iterator place) {
    places_.erase(place->first);
    return items_.erase(place);
  }

 private:
  std::list<value_type> items_;
  std::unordered_map<K, iterator> places_;
};

}  // namespace ska_ordered
