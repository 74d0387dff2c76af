// OrderedDict: keys and values in the order in which they were inserted.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <rushlight/error.h>

namespace rushlight {

template <class Key, class Value>
class RL_API OrderedDict {
 public:
  class Item {
   public:
    Item(Key key, Value value) : pair_(std::move(key), std::move(value)) {}
    const Key& key() const { return pair_.first; }
    Value& value() { return pair_.second; }
    const Value& value() const { return pair_.second; }
    Value& operator*() { return pair_.second; }
    const Value& operator*() const { return pair_.second; }
    Value* operator->() { return &pair_.second; }
    const Value* operator->() const { return &pair_.second; }
    const std::pair<Key, Value>& pair() const { return pair_; }

   private:
    std::pair<Key, Value> pair_;
  };
  using Iterator = typename std::vector<Item>::iterator;
  using ConstIterator = typename std::vector<Item>::const_iterator;

  // `what` a key is, for messages.
  explicit OrderedDict(std::string what = "Key") : what_(std::move(what)) {}
  OrderedDict(std::initializer_list<Item> items) : what_("Key") {
    for (const Item& item : items) {
      insert(item.key(), item.value());
    }
  }
  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  bool contains(const Key& key) const { return places_.count(key) != 0; }
  Value* find(const Key& key) {
    const auto at = places_.find(key);
    return at == places_.end() ? nullptr : &items_[at->second].value();
  }
  const Value* find(const Key& key) const { return const_cast<OrderedDict*>(this)->find(key); }
  Value& operator[](const Key& key) {
    Value* const found = find(key);
    RL_CHECK(found != nullptr, what_, " '", key, "' is not defined");
    return *found;
  }
  const Value& operator[](const Key& key) const { return (*const_cast<OrderedDict*>(this))[key]; }
  Item& operator[](size_t i) { return items_.at(i); }
  const Item& operator[](size_t i) const { return items_.at(i); }
  Item& front() { return items_.front(); }
  const Item& front() const { return items_.front(); }
  Item& back() { return items_.back(); }
  const Item& back() const { return items_.back(); }
  Iterator begin() { return items_.begin(); }
  Iterator end() { return items_.end(); }
  ConstIterator begin() const { return items_.begin(); }
  ConstIterator end() const { return items_.end(); }

  Value& insert(Key key, Value value) {
    RL_CHECK(places_.emplace(key, items_.size()).second, what_, " '", key, "' already defined");
    items_.emplace_back(std::move(key), std::move(value));
    return items_.back().value();
  }
  void update(const OrderedDict& other) {
    for (const Item& item : other) {
      insert(item.key(), item.value());
    }
  }
  void erase(const Key& key) {
    const auto at = places_.find(key);
    RL_CHECK(at != places_.end(), what_, " '", key, "' doesn't exist");
    const size_t place = at->second;
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(place));
    places_.erase(at);
    for (auto& [name, i] : places_) {
      i -= i > place ? 1 : 0;
    }
  }
  void clear() {
    items_.clear();
    places_.clear();
  }
  void reserve(size_t n) { items_.reserve(n); }
  const std::vector<Item>& items() const { return items_; }
  std::vector<Key> keys() const {
    std::vector<Key> out;
    for (const Item& item : items_) {
      out.push_back(item.key());
    }
    return out;
  }
  std::vector<Value> values() const {
    std::vector<Value> out;
    for (const Item& item : items_) {
      out.push_back(item.value());
    }
    return out;
  }
  std::vector<std::pair<Key, Value>> pairs() const {
    std::vector<std::pair<Key, Value>> out;
    for (const Item& item : items_) {
      out.push_back(item.pair());
    }
    return out;
  }

 private:
  std::string what_;
  std::vector<Item> items_;
  std::unordered_map<Key, size_t> places_;
};

}  // namespace rushlight
