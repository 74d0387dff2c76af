// AnyModule: a module of any type, called by its forward; what containers of modules hold.
#pragma once

#include <any>
#include <typeinfo>

#include <rushlight/function.h>
#include <rushlight/nn/module.h>

namespace torch::nn {

// An argument or result of forward.
class AnyValue {
 public:
  AnyValue() = default;
  template <class T, std::enable_if_t<!std::is_same_v<std::decay_t<T>, AnyValue>, int> = 0>
  AnyValue(T&& value) : value_(std::forward<T>(value)) {}
  template <class T>
  T* try_get() {
    return std::any_cast<T>(&value_);
  }
  template <class T>
  T get() const {
    const T* const held = std::any_cast<T>(&value_);
    RL_CHECK(held != nullptr, "Attempted to cast AnyValue to ",
             autograd::type_name_of(typeid(T).name()), ", but its actual type is ",
             autograd::type_name_of(value_.type().name()));
    return *held;
  }
  const std::type_info& type_info() const { return value_.type(); }

 private:
  std::any value_;
};

namespace detail {
template <class... A>
struct Arguments {};
template <class M, class R, class... A>
Arguments<A...> arguments_of(R (M::*)(A...));
template <class M, class R, class... A>
Arguments<A...> arguments_of(R (M::*)(A...) const);
// What forward takes; a Tensor where forward is a template or overloaded.
template <class M, class = void>
struct ForwardOf {
  using type = Arguments<Tensor>;
};
template <class M>
struct ForwardOf<M, std::void_t<decltype(arguments_of(&M::forward))>> {
  using type = decltype(arguments_of(&M::forward));
};

template <class T>
T take(AnyValue& value, size_t place) {
  using Plain = std::decay_t<T>;
  Plain* const held = value.try_get<Plain>();
  if constexpr (std::is_same_v<Plain, std::optional<Tensor>>) {
    if (Tensor* const tensor = value.try_get<Tensor>()) {
      return *tensor;
    }
  }
  RL_CHECK(held != nullptr, "Expected argument #", place, " to be of type ",
           autograd::type_name_of(typeid(Plain).name()), ", but received value of type ",
           autograd::type_name_of(value.type_info().name()));
  return static_cast<T>(*held);
}
template <class M, class... A, class = decltype(std::declval<M&>().forward(std::declval<A>()...))>
std::true_type can_call(Arguments<A...>);
template <class M>
std::false_type can_call(...);

// Calls forward with all that is given, its defaults standing for the rest.
template <class M, class... A, size_t... I>
AnyValue call_with(M& module, std::vector<AnyValue>& given, Arguments<A...>,
                   std::index_sequence<I...>) {
  if constexpr (std::is_void_v<decltype(module.forward(take<A>(given[I], I)...))>) {
    module.forward(take<A>(given[I], I)...);
    return {};
  } else {
    return AnyValue(module.forward(take<A>(given[I], I)...));
  }
}
template <class M, class... Used>
AnyValue call_unpacked(M& module, std::vector<AnyValue>& given, Arguments<Used...> used,
                       Arguments<>) {
  RL_CHECK(given.size() == sizeof...(Used), module.name(), "'s forward() method expects ",
           sizeof...(Used), " argument(s), but received ", given.size());
  return call_with(module, given, used, std::index_sequence_for<Used...>());
}
template <class M, class... Used, class Next, class... Rest>
AnyValue call_unpacked(M& module, std::vector<AnyValue>& given, Arguments<Used...> used,
                       Arguments<Next, Rest...>) {
  if constexpr (decltype(can_call<M>(used))::value) {
    if (given.size() == sizeof...(Used)) {
      return call_with(module, given, used, std::index_sequence_for<Used...>());
    }
  }
  return call_unpacked(module, given, Arguments<Used..., Next>(), Arguments<Rest...>());
}
}  // namespace detail

class AnyModule {
 public:
  AnyModule() = default;
  template <class M>
  explicit AnyModule(std::shared_ptr<M> module)
      : module_(std::move(module)),
        type_(&typeid(M)),
        call_([](Module& m, std::vector<AnyValue>& a) {
          return detail::call_unpacked(static_cast<M&>(m), a, detail::Arguments<>(),
                                       typename detail::ForwardOf<M>::type());
        }) {}
  template <class M, std::enable_if_t<std::is_base_of_v<Module, M>, int> = 0>
  explicit AnyModule(M&& module) : AnyModule(std::make_shared<M>(std::forward<M>(module))) {}
  template <class M>
  explicit AnyModule(const ModuleHolder<M>& holder) : AnyModule(holder.ptr()) {}

  AnyModule clone(std::optional<Device> device = {}) const {
    AnyModule copy = *this;
    copy.module_ = ptr()->clone(device);
    return copy;
  }
  template <class M>
  AnyModule& operator=(std::shared_ptr<M> module) {
    return *this = AnyModule(std::move(module));
  }
  bool is_empty() const { return module_ == nullptr; }
  template <class... Args>
  AnyValue any_forward(Args&&... args) {
    std::vector<AnyValue> given;
    given.reserve(sizeof...(Args));
    (given.emplace_back(std::forward<Args>(args)), ...);
    return call(given);
  }
  template <class R = Tensor, class... Args>
  R forward(Args&&... args) {
    return any_forward(std::forward<Args>(args)...).template get<R>();
  }
  AnyValue call(std::vector<AnyValue>& given) {
    const std::shared_ptr<Module> module = ptr();
    try {
      return call_(*module, given);
    } catch (Error& error) {
      detail::name_failing_part(error, *module);
      throw;
    }
  }
  std::shared_ptr<Module> ptr() const {
    RL_CHECK(!is_empty(), "Cannot call ptr() on an empty AnyModule");
    return module_;
  }
  template <class M>
  std::shared_ptr<M> ptr() const {
    auto held = std::dynamic_pointer_cast<M>(ptr());
    RL_CHECK(held != nullptr, "Attempted to cast module of type ", module_->name(), " to type ",
             autograd::type_name_of(typeid(M).name()));
    return held;
  }
  template <class M>
  M& get() const {
    return *ptr<M>();
  }
  const std::type_info& type_info() const { return *type_; }

 private:
  std::shared_ptr<Module> module_;
  const std::type_info* type_ = nullptr;
  AnyValue (*call_)(Module&, std::vector<AnyValue>&) = nullptr;
};

// {"fc", Linear(3, 4)}: a module with a name, for Sequential and OrderedDict.
class NamedAnyModule {
 public:
  template <class M>
  NamedAnyModule(std::string name, std::shared_ptr<M> module)
      : name_(std::move(name)), module_(std::move(module)) {}
  template <class M>
  NamedAnyModule(std::string name, const ModuleHolder<M>& holder)
      : NamedAnyModule(std::move(name), holder.ptr()) {}
  template <class M, std::enable_if_t<std::is_base_of_v<Module, M>, int> = 0>
  NamedAnyModule(std::string name, M&& module)
      : name_(std::move(name)), module_(std::forward<M>(module)) {}
  NamedAnyModule(std::string name, AnyModule module)
      : name_(std::move(name)), module_(std::move(module)) {}
  const std::string& name() const { return name_; }
  const AnyModule& module() const { return module_; }

 private:
  std::string name_;
  AnyModule module_;
};

}  // namespace torch::nn
