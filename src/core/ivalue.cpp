// Values of no fixed type: what is not a template.
#include <rushlight/ivalue.h>

#include <mutex>
#include <unordered_map>

namespace rushlight {

CustomClassHolder::~CustomClassHolder() = default;

// ---- classes ----

namespace {
struct Names {
  std::mutex mutex;
  std::unordered_map<std::string, std::string> of_type;
};
// Made when the first class is bound, which programs do before main.
Names& names() {
  static auto* const made = new Names();
  return *made;
}
}  // namespace

void name_class(const std::type_info& type, const std::string& name) {
  const std::lock_guard<std::mutex> lock(names().mutex);
  const bool is_new = names().of_type.emplace(type.name(), name).second;
  RL_CHECK(is_new, "the class ", name, " is bound already");
}

const std::string& class_name_of(const std::type_info& type) {
  const std::lock_guard<std::mutex> lock(names().mutex);
  const auto found = names().of_type.find(type.name());
  RL_CHECK(found != names().of_type.end(),
           "a C++ class is used as a value that torch::class_ has "
           "not bound: ",
           type.name());
  return found->second;
}

// ---- values ----

const char* IValue::kind_name() const {
  constexpr const char* of_kinds[] = {"plain value", "list", "tuple", "dict", "object"};
  return of_kinds[static_cast<size_t>(kind_)];
}

IValue IValue::list(std::shared_ptr<Items> items) {
  IValue out;
  out.kind_ = Kind::List;
  out.items_ = std::move(items);
  return out;
}
IValue IValue::tuple(Items items) {
  IValue out = list(std::make_shared<Items>(std::move(items)));
  out.kind_ = Kind::Tuple;
  return out;
}
IValue IValue::dict(std::shared_ptr<ivalue::DictItems> items) {
  IValue out;
  out.kind_ = Kind::Dict;
  out.dict_ = std::move(items);
  return out;
}
IValue IValue::object(intrusive_ptr<CustomClassHolder> object, const std::type_info& type) {
  IValue out;
  out.kind_ = Kind::Object;
  out.object_ = std::move(object);
  out.class_name_ = &class_name_of(type);
  return out;
}
const intrusive_ptr<CustomClassHolder>& IValue::object() const {
  RL_CHECK(isObject(), "a ", kind_name(), " was read as an object");
  return object_;
}
const std::string& IValue::class_name() const {
  object();
  return *class_name_;
}
const std::shared_ptr<IValue::Items>& IValue::items() const {
  RL_CHECK(kind_ == Kind::List || isTuple(), "a ", kind_name(), " was read as a list");
  return items_;
}
const std::shared_ptr<ivalue::DictItems>& IValue::dict_items() const {
  RL_CHECK(isGenericDict(), "a ", kind_name(), " was read as a dict");
  return dict_;
}
intrusive_ptr<ivalue::Tuple> IValue::toTuple() const {
  RL_CHECK(isTuple(), "a ", kind_name(), " was read as a tuple");
  return ivalue::Tuple::create(*items());
}

namespace {
template <class T, class List>
void add_all(IValue::Items& out, const List& list) {
  for (const auto& item : list) {
    out.push_back(IValue(T(item)));
  }
}
template <class T>
std::vector<T> all_of(const IValue& v) {
  std::vector<T> out;
  for (const IValue& item : *v.items()) {
    out.push_back(item.to<T>());
  }
  return out;
}
}  // namespace

IValue::Items IValue::toListRef() const {
  Items out;
  if (isIntList()) {
    add_all<int64_t>(out, value_.get<DimVector>());
  } else if (isDoubleList()) {
    add_all<double>(out, value_.get<std::vector<double>>());
  } else if (isTensorList()) {
    add_all<Tensor>(out, value_.get<std::vector<Tensor>>());
  } else {
    out = *items();
  }
  return out;
}
std::vector<Tensor> IValue::toTensorVector() const {
  return is_plain() ? value_.get<std::vector<Tensor>>() : all_of<Tensor>(*this);
}
std::vector<double> IValue::toDoubleVector() const {
  return is_plain() ? value_.get<std::vector<double>>() : all_of<double>(*this);
}
List<Tensor> IValue::toTensorList() const { return to<List<Tensor>>(); }
List<double> IValue::toDoubleList() const { return to<List<double>>(); }
List<int64_t> IValue::toIntList() const { return to<List<int64_t>>(); }
List<bool> IValue::toBoolList() const { return to<List<bool>>(); }
List<IValue> IValue::toList() const { return to<List<IValue>>(); }
std::vector<int64_t> IValue::toIntVector() const {
  if (!is_plain()) {
    return all_of<int64_t>(*this);
  }
  const DimVector v = value_.get<DimVector>();
  return {v.begin(), v.end()};
}

Value IValue::flattened() const {
  if (is_plain()) {
    return value_;
  }
  const Items& list = *items();
  if (!list.empty() && list[0].isInt()) {
    return DimVector(IntArrayRef(toIntVector()));
  }
  if (!list.empty() && list[0].isDouble()) {
    return toDoubleVector();
  }
  return toTensorVector();
}

// ---- dicts ----

namespace ivalue {

namespace {
std::string text_of(const IValue& key) {
  if (key.isString()) {
    return "s" + key.toStringRef();
  }
  if (key.isBool()) {
    return key.toBool() ? "i1" : "i0";
  }
  if (key.isInt()) {
    return str("i", key.toInt());
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

size_t DictItems::find(const IValue& key) const {
  const auto found = places_->of.find(text_of(key));
  return found == places_->of.end() ? pairs.size() : found->second;
}
bool DictItems::insert(IValue key, IValue value, bool replace) {
  const auto [at, is_new] = places_->of.emplace(text_of(key), pairs.size());
  if (is_new) {
    pairs.emplace_back(std::move(key), std::move(value));
  } else if (replace) {
    pairs[at->second].second = std::move(value);
  }
  return is_new;
}
size_t DictItems::erase(const IValue& key) {
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

}  // namespace ivalue
}  // namespace rushlight
