// Boxing and unboxing. `get` is instantiated here for every type that the op table can ask for; a
// new one is a row of the list at the end.
#include <rushlight/value.h>

namespace rushlight {

std::vector<TensorMeta> metas_of(TensorList list) {
  std::vector<TensorMeta> out;
  out.reserve(list.size());
  for (const Tensor& t : list) {
    out.emplace_back(t);
  }
  return out;
}

Value::Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

Value::Value(const Tensor& t) : v_(t) {}
Value::Value(Tensor&& t) : v_(std::move(t)) {}
Value::Value(TensorList list) : v_(list.vec()) {}
Value::Value(std::vector<Tensor> list) : v_(std::move(list)) {}
Value::Value(std::vector<std::optional<Tensor>> list) : v_(std::move(list)) {}
Value::Value(const Scalar& s) : v_(s) {}
Value::Value(IntArrayRef list) : v_(DimVector(list)) {}
Value::Value(OptionalIntArrayRef list) {
  if (list.has_value()) {
    v_ = DimVector(*list);
  }
}
Value::Value(DimVector list) : v_(std::move(list)) {}
Value::Value(ArrayRef<Scalar> list) : v_(list.vec()) {}
Value::Value(std::vector<Scalar> list) : v_(std::move(list)) {}
Value::Value(ArrayRef<double> list) : v_(list.vec()) {}
Value::Value(std::vector<double> list) : v_(std::move(list)) {}
Value::Value(const char* text) : v_(std::string(text)) {}
Value::Value(std::string_view text) : v_(std::string(text)) {}
Value::Value(std::string text) : v_(std::move(text)) {}
Value::Value(ScalarType dtype) : v_(dtype) {}
Value::Value(Device device) : v_(device) {}
Value::Value(Layout layout) : v_(layout) {}
Value::Value(MemoryFormat format) : v_(format) {}
Value::Value(Generator generator) : v_(std::move(generator)) {}
Value::Value(TensorMeta meta) : v_(std::move(meta)) {}
Value::Value(std::vector<TensorMeta> metas) : v_(std::move(metas)) {}
Value::Value(const TensorOptions& options) : v_(options) {}

template <class T>
const T& Value::held() const {
  const T* p = std::get_if<T>(&v_);
  RL_CHECK(p != nullptr, "a boxed value of kind ", static_cast<int>(v_.index()),
           " was read as another kind");
  return *p;
}

namespace {
template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;
}  // namespace

template <class T>
T Value::get() const {
  if constexpr (is_optional<T>) {
    using Inner = typename T::value_type;
    return is_none() ? T() : T(get<Inner>());
  } else if constexpr (std::is_same_v<T, Tensor>) {
    return is_none() ? T() : is<Scalar>() ? make_number(held<Scalar>()) : held<T>();
  } else if constexpr (std::is_same_v<T, Generator>) {
    return is_none() ? T() : held<T>();
  } else if constexpr (std::is_same_v<T, DimVector>) {
    return is<Scalar>() ? DimVector({get<int64_t>()}) : held<T>();
  } else if constexpr (std::is_same_v<T, bool>) {
    return held<Scalar>().toBool();
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return held<Scalar>().toLong();
  } else if constexpr (std::is_same_v<T, double>) {
    return held<Scalar>().toDouble();
  } else {
    return held<T>();
  }
}

#define RL_GET(...)                                            \
  template RL_API __VA_ARGS__ Value::get<__VA_ARGS__>() const; \
  template RL_API std::optional<__VA_ARGS__> Value::get<std::optional<__VA_ARGS__>>() const;
RL_GET(Tensor)
RL_GET(std::vector<Tensor>)
RL_GET(std::vector<std::optional<Tensor>>)
RL_GET(Scalar)
RL_GET(bool)
RL_GET(int64_t)
RL_GET(double)
RL_GET(DimVector)
RL_GET(std::vector<double>)
RL_GET(std::vector<Scalar>)
RL_GET(std::string)
RL_GET(ScalarType)
RL_GET(Device)
RL_GET(Layout)
RL_GET(MemoryFormat)
RL_GET(Generator)
RL_GET(TensorMeta)
RL_GET(std::vector<TensorMeta>)
RL_GET(TensorOptions)
#undef RL_GET

}  // namespace rushlight
