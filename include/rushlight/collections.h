// Lists, tuples and dicts of values. Lists and dicts are one object for all who hold them.
#pragma once

#include <memory>

#include <rushlight/value.h>

namespace rushlight {

using Stack = std::vector<Value>;  // of a boxed function

namespace ivalue {
struct RL_API ListItems : CustomClassHolder {
  ListItems() = default;
  explicit ListItems(Value::Items of) : items(std::move(of)) {}
  Value::Items items;
};
struct RL_API Tuple : CustomClassHolder {
  explicit Tuple(Value::Items of) : items(std::move(of)) {}
  const Value::Items& elements() const { return items; }
  size_t size() const { return items.size(); }
  static intrusive_ptr<Tuple> create(Value::Items items) {
    return make_intrusive<Tuple>(std::move(items));
  }
  Value::Items items;
};
struct RL_API ConstantString : CustomClassHolder {
  explicit ConstantString(std::string text) : text_(std::move(text)) {}
  const std::string& string() const { return text_; }
  std::string_view string_view() const { return text_; }
  static intrusive_ptr<ConstantString> create(std::string text) {
    return make_intrusive<ConstantString>(std::move(text));
  }

 private:
  std::string text_;
};
// The pairs of a dict in the order in which they came in.
struct RL_API DictItems : CustomClassHolder {
  std::vector<std::pair<Value, Value>> pairs;
  size_t find(const Value& key) const;  // pairs.size() where there is none
  // Whether the key is new.
  bool insert(Value key, Value value, bool replace);
  size_t erase(const Value& key);
  void clear();
  DictItems();
  ~DictItems() override;
  DictItems(const DictItems&) = delete;
  DictItems& operator=(const DictItems&) = delete;

 private:
  struct Places;
  std::unique_ptr<Places> places_;
};
}  // namespace ivalue

template <class T>
class List {
 public:
  List() : items_(make_intrusive<ivalue::ListItems>()) {}
  List(std::initializer_list<T> items) : List() {
    for (const T& item : items) {
      push_back(item);
    }
  }
  explicit List(intrusive_ptr<ivalue::ListItems> items) : items_(std::move(items)) {}
  explicit List(const std::vector<T>& items) : List() {
    for (const T& item : items) {
      push_back(item);
    }
  }
  // Of a list that says the type of its items, which each of them has anyway.
  template <class Type>
  explicit List(const std::shared_ptr<Type>&) : List() {}
  size_t size() const { return items_->items.size(); }
  bool empty() const { return items_->items.empty(); }
  void reserve(size_t n) { items_->items.reserve(n); }
  void push_back(T item) const { items_->items.push_back(Value(std::move(item))); }
  T get(size_t i) const { return items_->items.at(i).template to<T>(); }
  T operator[](size_t i) const { return get(i); }
  void set(size_t i, T item) const { items_->items.at(i) = Value(std::move(item)); }
  void clear() const { items_->items.clear(); }
  std::vector<T> vec() const {
    std::vector<T> out;
    for (size_t i = 0; i < size(); i++) {
      out.push_back(get(i));
    }
    return out;
  }
  operator std::vector<T>() const { return vec(); }
  class iterator {
   public:
    iterator(const List* list, size_t i) : list_(list), i_(i) {}
    T operator*() const { return list_->get(i_); }
    iterator& operator++() {
      i_++;
      return *this;
    }
    bool operator!=(const iterator& o) const { return i_ != o.i_; }

   private:
    const List* list_;
    size_t i_;
  };
  iterator begin() const { return {this, 0}; }
  iterator end() const { return {this, size()}; }
  const intrusive_ptr<ivalue::ListItems>& items() const { return items_; }

 private:
  intrusive_ptr<ivalue::ListItems> items_;
};

template <class K, class V>
class Dict {
 public:
  Dict() : items_(make_intrusive<ivalue::DictItems>()) {}
  template <class Key, class Of>
  Dict(const std::shared_ptr<Key>&, const std::shared_ptr<Of>&) : Dict() {}
  explicit Dict(intrusive_ptr<ivalue::DictItems> items) : items_(std::move(items)) {}
  size_t size() const { return items_->pairs.size(); }
  bool empty() const { return size() == 0; }
  bool contains(const K& key) const { return items_->find(Value(key)) != size(); }
  V at(const K& key) const {
    const size_t place = items_->find(Value(key));
    RL_CHECK_INDEX(place != size(), "Argument passed to at() was not in the map.");
    return items_->pairs[place].second.template to<V>();
  }
  bool insert(K key, V value) const {
    return items_->insert(Value(std::move(key)), Value(std::move(value)), false);
  }
  bool insert_or_assign(K key, V value) const {
    return items_->insert(Value(std::move(key)), Value(std::move(value)), true);
  }
  size_t erase(const K& key) const { return items_->erase(Value(key)); }
  class Entry {
   public:
    explicit Entry(const std::pair<Value, Value>* pair) : pair_(pair) {}
    K key() const { return pair_->first.template to<K>(); }
    V value() const { return pair_->second.template to<V>(); }

   private:
    const std::pair<Value, Value>* pair_;
  };
  class iterator {
   public:
    explicit iterator(const std::pair<Value, Value>* at) : entry_(at), at_(at) {}
    const Entry& operator*() const { return entry_; }
    const Entry* operator->() const { return &entry_; }
    iterator& operator++() {
      entry_ = Entry(++at_);
      return *this;
    }
    bool operator==(const iterator& o) const { return at_ == o.at_; }
    bool operator!=(const iterator& o) const { return at_ != o.at_; }

   private:
    Entry entry_;
    const std::pair<Value, Value>* at_;
  };
  iterator begin() const { return iterator(items_->pairs.data()); }
  iterator end() const { return iterator(items_->pairs.data() + size()); }
  iterator find(const K& key) const {
    return iterator(items_->pairs.data() + items_->find(Value(key)));
  }
  const intrusive_ptr<ivalue::DictItems>& items() const { return items_; }

 private:
  intrusive_ptr<ivalue::DictItems> items_;
};
inline Dict<Value, Value> Value::toGenericDict() const { return Dict<Value, Value>(dict_items()); }
namespace impl {
using GenericList = List<Value>;
using GenericDict = Dict<Value, Value>;
// The same list, told what its items are, or not.
template <class T>
List<T> toTypedList(const GenericList& list) {
  return List<T>(list.items());
}
template <class T>
GenericList toList(const List<T>& list) {
  return GenericList(list.items());
}
}  // namespace impl

}  // namespace rushlight
