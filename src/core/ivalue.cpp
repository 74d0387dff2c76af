// Classes of values by number, and dicts.
#include <rushlight/ivalue.h>

#include <deque>
#include <mutex>
#include <unordered_map>

namespace rushlight {

// ---- classes ----

namespace {
struct Classes {
  std::mutex mutex;
  std::deque<std::string> names;  // by number; those that are there stay in place
  std::unordered_map<std::string, uint32_t> numbers;
  std::unordered_map<std::string, uint32_t> of_types;
};
// Made when the first class is bound, which programs do before main.
Classes& classes() {
  static auto* const made = new Classes();
  return *made;
}
uint32_t number_of(const std::string& name) {
  const auto [at, is_new] =
      classes().numbers.emplace(name, static_cast<uint32_t>(classes().names.size()));
  if (is_new) {
    classes().names.push_back(name);
  }
  return at->second;
}
}  // namespace

ClassName::ClassName(const std::string& name) {
  const std::lock_guard<std::mutex> lock(classes().mutex);
  number = number_of(name);
}
ClassName::ClassName(const std::type_info& type) {
  const std::lock_guard<std::mutex> lock(classes().mutex);
  const auto found = classes().of_types.find(type.name());
  RL_CHECK(found != classes().of_types.end(),
           "a C++ class is used as a value that torch::class_ has "
           "not bound: ",
           type.name());
  number = found->second;
}
const std::string& ClassName::text() const {
  const std::lock_guard<std::mutex> lock(classes().mutex);
  return classes().names.at(number);
}
void name_class(const std::type_info& type, const std::string& name) {
  const std::lock_guard<std::mutex> lock(classes().mutex);
  const bool is_new = classes().of_types.emplace(type.name(), number_of(name)).second;
  RL_CHECK(is_new, "the class ", name, " is bound already");
}

// ---- dicts ----

namespace ivalue {

namespace {
std::string text_of(const Value& key) {
  if (key.isString()) {
    return "s" + key.toStringRef();
  }
  if (key.isBool()) {
    return key.toBool() ? "i1" : "i0";
  }
  if (key.isInt()) {
    return str("i", key.toInt());
  }
  if (key.isComplexDouble()) {
    const auto number = key.toScalar().to<complex<double>>();
    return "c" + std::string(reinterpret_cast<const char*>(&number), sizeof number);
  }
  RL_CHECK_TYPE(key.isDouble(), "a key of a dict must be a string or a number");
  const double number = key.toDouble();
  return "d" + std::string(reinterpret_cast<const char*>(&number), sizeof number);
}
}  // namespace

struct DictItems::Places {
  std::unordered_map<std::string, size_t> of;
};
DictItems::DictItems() : places_(std::make_unique<Places>()) {}
DictItems::~DictItems() = default;

size_t DictItems::find(const Value& key) const {
  const auto found = places_->of.find(text_of(key));
  return found == places_->of.end() ? pairs.size() : found->second;
}
bool DictItems::insert(Value key, Value value, bool replace) {
  const auto [at, is_new] = places_->of.emplace(text_of(key), pairs.size());
  if (is_new) {
    pairs.emplace_back(std::move(key), std::move(value));
  } else if (replace) {
    pairs[at->second].second = std::move(value);
  }
  return is_new;
}
size_t DictItems::erase(const Value& key) {
  const size_t place = find(key);
  if (place == pairs.size()) {
    return 0;
  }
  places_->of.erase(text_of(key));
  pairs.erase(pairs.begin() + static_cast<ptrdiff_t>(place));
  for (auto& [text, at] : places_->of) {
    at -= at > place ? 1 : 0;
  }
  return 1;
}
void DictItems::clear() {
  pairs.clear();
  places_->of.clear();
}

}  // namespace ivalue
}  // namespace rushlight
