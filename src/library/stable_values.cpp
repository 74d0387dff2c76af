// Values of the stable ABI: numbers lie in the leading bytes, tensors, strings and lists are
// handles, optional values are boxes of one value, null without one.
#include "library/stable_values.h"

#include <cstring>
#include <memory>

#include <rushlight/generator.h>

namespace rushlight::stable {

namespace {
// Never destroyed: threads of Python fail after main, too.
std::string& error_of_thread() {
  static thread_local auto* const text = new std::string();
  return *text;
}
}  // namespace
const std::string& last_error() { return error_of_thread(); }
void keep_error(const char* text) noexcept { error_of_thread() = text; }

// ---- numbers of dtypes and the like ----

ScalarType dtype_of(int32_t number) {
  for (const ScalarType dtype : all_dtypes) {
    if (static_cast<int32_t>(dtype) == number) {
      return dtype;
    }
  }
  throw Error(str("the stable ABI: no dtype here has the number ", number));
}

Layout layout_of(int32_t number) {
  switch (number) {
#define RL_CASE(name, Enum, value) \
  case value:                      \
    return Layout::Enum;
    RL_FOR_EACH_STABLE_LAYOUT(RL_CASE)
#undef RL_CASE
    default:
      throw Error(str("the stable ABI: no layout here has the number ", number));
  }
}

MemoryFormat memory_format_of(int32_t number) {
  RL_CHECK(number >= 0 && number <= static_cast<int32_t>(MemoryFormat::ChannelsLast3d),
           "the stable ABI: no memory format has the number ", number);
  return static_cast<MemoryFormat>(number);
}

Device device_of(int32_t type, int32_t index) {
  RL_CHECK(index >= -1 && index < 128, "the stable ABI: no device has the index ", index);
  switch (type) {
#define RL_CASE(name, Enum, value) \
  case value:                      \
    return Device(DeviceType::Enum, static_cast<int8_t>(index));
    RL_FOR_EACH_STABLE_DEVICE(RL_CASE)
#undef RL_CASE
    default:
      throw Error(str("the stable ABI: no device here has the type ", type));
  }
}

int32_t number_of(Layout layout) {
  switch (layout) {
#define RL_CASE(name, Enum, value) \
  case Layout::Enum:               \
    return value;
    RL_FOR_EACH_STABLE_LAYOUT(RL_CASE)
#undef RL_CASE
  }
  throw Error("the stable ABI has no number for this layout");
}

int32_t number_of(DeviceType type) {
  switch (type) {
#define RL_CASE(name, Enum, value) \
  case DeviceType::Enum:           \
    return value;
    RL_FOR_EACH_STABLE_DEVICE(RL_CASE)
#undef RL_CASE
    default:
      throw Error(str("the stable ABI has no number for the device ", Device(type)));
  }
}

// ---- values ----

namespace {

template <class T>
T leading(StableIValue value) {
  T out;
  std::memcpy(&out, &value, sizeof out);
  return out;
}
template <class T>
StableIValue as_leading(T number) {
  StableIValue out = 0;
  std::memcpy(&out, &number, sizeof number);
  return out;
}
template <class T>
T* pointer(StableIValue value) {
  return reinterpret_cast<T*>(value);
}

Value take_list(StableIValue value, const Type& item) {
  RL_CHECK(value != 0, "the stable ABI: a null handle of a list");
  const std::unique_ptr<StableListOpaque> list(pointer<StableListOpaque>(value));
  Value::Items items;
  std::exception_ptr error;
  for (const StableIValue given : list->items) {  // all are taken, whatever the first says
    try {
      items.push_back(take(given, item));
    } catch (...) {
      error = error ? error : std::current_exception();
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
  return Value::list(std::move(items));
}

}  // namespace

Value take(StableIValue value, const Type& type) {
  switch (type.kind) {
    case Type::Kind::None:
      return {};
    case Type::Kind::Optional: {
      if (value == 0) {
        return {};
      }
      const std::unique_ptr<StableIValue> box(pointer<StableIValue>(value));
      return take(*box, type.of[0]);
    }
    case Type::Kind::Tensor: {
      RL_CHECK(value != 0, "the stable ABI: a null handle of a tensor");
      const std::unique_ptr<Tensor> tensor(pointer<Tensor>(value));
      return Value(std::move(*tensor));
    }
    case Type::Kind::Int:
      return Value(leading<int64_t>(value));
    case Type::Kind::Float:
      return Value(leading<double>(value));
    case Type::Kind::Bool:
      return Value(leading<uint8_t>(value) != 0);
    case Type::Kind::String: {
      RL_CHECK(value != 0, "the stable ABI: a null handle of a string");
      const std::unique_ptr<StringOpaque> string(pointer<StringOpaque>(value));
      return Value(std::string_view(string->text));
    }
    case Type::Kind::ScalarType:
      return Value(dtype_of(leading<int32_t>(value)));
    case Type::Kind::Layout:
      return Value(layout_of(leading<int32_t>(value)));
    case Type::Kind::MemoryFormat:
      return Value(memory_format_of(leading<int32_t>(value)));
    case Type::Kind::Device:
      return Value(device_of(static_cast<int32_t>(value >> 32), static_cast<int32_t>(value)));
    case Type::Kind::Generator: {
      const std::unique_ptr<Generator> generator(pointer<Generator>(value));
      return generator == nullptr ? Value() : Value(*generator);
    }
    case Type::Kind::List:
      return take_list(value, type.of[0]);
    default:
      throw Error(str("the stable ABI has no form for values of type ", type.str()));
  }
}

StableIValue give(const Value& value, const Type& type) {
  switch (type.kind) {
    case Type::Kind::None:
      return 0;
    case Type::Kind::Optional:
      return value.is_none()
                 ? 0
                 : reinterpret_cast<StableIValue>(new StableIValue(give(value, type.of[0])));
    case Type::Kind::Tensor:
      return reinterpret_cast<StableIValue>(
          new_handle(value.is_none() ? Tensor() : value.toTensor()));
    case Type::Kind::Int:
      return as_leading(value.get<int64_t>());
    case Type::Kind::Float:
      return as_leading(value.get<double>());
    case Type::Kind::Bool:
      return as_leading(static_cast<uint8_t>(value.get<bool>() ? 1 : 0));
    case Type::Kind::String:
      return reinterpret_cast<StableIValue>(new StringOpaque{std::string(value.toStringView())});
    case Type::Kind::ScalarType:
      return as_leading(static_cast<int32_t>(value.get<ScalarType>()));
    case Type::Kind::Layout:
      return as_leading(number_of(value.get<Layout>()));
    case Type::Kind::MemoryFormat:
      return as_leading(static_cast<int32_t>(value.get<MemoryFormat>()));
    case Type::Kind::Device: {
      const Device device = value.get<Device>();
      const auto type_bits = static_cast<StableIValue>(number_of(device.type())) << 32;
      return type_bits | static_cast<uint32_t>(static_cast<int32_t>(device.index()));
    }
    case Type::Kind::Generator:
      return reinterpret_cast<StableIValue>(new Generator(value.get<Generator>()));
    case Type::Kind::List: {
      auto list = std::make_unique<StableListOpaque>();
      for (const Value& item : value.toListRef()) {
        list->items.push_back(give(item, type.of[0]));
      }
      return reinterpret_cast<StableIValue>(list.release());
    }
    default:
      throw Error(str("the stable ABI has no form for values of type ", type.str()));
  }
}

}  // namespace rushlight::stable
