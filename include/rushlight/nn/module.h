// nn::Module: a tree of named parameters, buffers and modules; holders, which stand for shared
// pointers to them (TORCH_MODULE); and Cloneable, by which modules are copied.
#pragma once

#include <iosfwd>
#include <memory>

#include <rushlight/nn/namespace.h>
#include <rushlight/nn/ordered_dict.h>
#include <rushlight/serialize.h>
#include <rushlight/thread_state.h>

namespace rushlight {

namespace serialize {
class OutputArchive;
class InputArchive;
}  // namespace serialize

}  // namespace rushlight

namespace torch::nn {
class Module;
}
namespace rushlight {  // compiled once: programs compile their own dicts alone
extern template class RL_API OrderedDict<std::string, Tensor>;
extern template class RL_API OrderedDict<std::string, std::shared_ptr<nn::Module>>;
}  // namespace rushlight

namespace torch::nn {

template <class Contained>
class ModuleHolder;

namespace detail {
// Says in an error that leaves a module's forward which part of the outermost module was running:
// "in the forward pass of Net: layer4.1.fc (Linear)". Modules call it from the inside outwards.
RL_API void name_failing_part(Error& error, const Module& module) noexcept;
}  // namespace detail

class RL_API Module : public std::enable_shared_from_this<Module> {
 public:
  Module() = default;
  explicit Module(std::string name) : name_(std::move(name)) {}
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  Module(Module&&) noexcept = default;
  Module& operator=(Module&&) noexcept = default;
  virtual ~Module();

  // The name of the class, or the one that was given.
  const std::string& name() const noexcept;
  virtual std::shared_ptr<Module> clone(const std::optional<Device>& device = {}) const;

  // f(module), f(name, module), and both with shared pointers, for this module and all below it.
  template <class F>
  void apply(const F& f, const std::string& prefix = {}) {
    visit(f, *this, prefix);
  }
  template <class F>
  void apply(const F& f, const std::string& prefix = {}) const {
    visit(f, *this, prefix);
  }

  std::vector<Tensor> parameters(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const;
  // With this module itself the object must be held by a shared pointer.
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_modules(const std::string& prefix = {},
                                                                  bool include_self = true) const;
  std::vector<std::shared_ptr<Module>> children() const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_children() const;
  // Parameters and buffers by name, as Python's state_dict().
  StateDict state_dict() const;
  // Copies values in; RuntimeError where names or sizes differ.
  void load_state_dict(const StateDict& state);

  virtual void train(bool on = true);
  void eval() { train(false); }
  virtual bool is_training() const noexcept { return training_; }
  virtual void to(Device device, ScalarType dtype, bool non_blocking = false);
  virtual void to(ScalarType dtype, bool non_blocking = false);
  virtual void to(Device device, bool non_blocking = false);
  virtual void zero_grad(bool set_to_none = true);

  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);
  virtual void pretty_print(std::ostream& stream) const;
  virtual bool is_serializable() const { return true; }

  template <class M>
  auto* as() noexcept {
    if constexpr (is_holder<M>::value) {
      return dynamic_cast<typename M::ContainedType*>(this);
    } else {
      return dynamic_cast<M*>(this);
    }
  }
  template <class M>
  const auto* as() const noexcept {
    return const_cast<Module*>(this)->as<M>();
  }

  Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true);
  Tensor& register_buffer(std::string name, Tensor tensor);
  template <class M>
  std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    add_child(std::move(name), module);
    return module;
  }
  template <class M>
  std::shared_ptr<M> register_module(std::string name, ModuleHolder<M> holder) {
    return register_module(std::move(name), holder.ptr());
  }
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, std::shared_ptr<M> module) {
    children_[name] = module;
    if (module != nullptr) {
      module->name_in_parent_ = name;
    }
    return module;
  }
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, ModuleHolder<M> holder) {
    return replace_module(name, holder.ptr());
  }
  void unregister_module(const std::string& name);

 protected:
  // Of a new copy: parameters, buffers and modules get the values of another module's.
  virtual void clone_(Module& other, const std::optional<Device>& device);
  OrderedDict<std::string, Tensor> parameters_{"Parameter"};
  OrderedDict<std::string, Tensor> buffers_{"Buffer"};
  OrderedDict<std::string, std::shared_ptr<Module>> children_{"Submodule"};

 private:
  template <class Derived>
  friend class Cloneable;
  friend RL_API std::ostream& operator<<(std::ostream& stream, const Module& module);
  friend void detail::name_failing_part(Error& error, const Module& module) noexcept;
  template <class M>
  struct is_holder {
    template <class H>
    static std::true_type test(typename H::ContainedType*);
    template <class H>
    static std::false_type test(...);
    static constexpr bool value = decltype(test<M>(nullptr))::value;
  };
  template <class F, class M>
  static void visit(const F& f, M& module, const std::string& name) {
    if constexpr (std::is_invocable_v<const F&, const std::string&, M&>) {
      f(name, module);
    } else if constexpr (std::is_invocable_v<const F&, M&>) {
      f(module);
    } else if constexpr (std::is_invocable_v<const F&, const std::string&,
                                             const std::shared_ptr<Module>&>) {
      f(name, const_cast<Module&>(module).shared_from_this());
    } else {
      f(const_cast<Module&>(module).shared_from_this());
    }
    for (const auto& child : module.children_) {
      visit(f, static_cast<M&>(*child.value()),
            name.empty() ? child.key() : name + '.' + child.key());
    }
  }
  void add_child(std::string name, std::shared_ptr<Module> module);
  void print_tree(std::ostream& stream, const std::string& indent) const;
  template <class F>
  void change_tensors(const F& f);

  mutable std::string name_;
  std::string name_in_parent_;  // the one that it was registered by last
  bool training_ = true;
};
RL_API std::ostream& operator<<(std::ostream& stream, const Module& module);
RL_API serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                            const std::shared_ptr<Module>& module);
RL_API serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                           const std::shared_ptr<Module>& module);

// A module that can be copied: reset() registers what the options say, and the copy takes values.
template <class Derived>
class RL_API Cloneable : public Module {
 public:
  using Module::Module;
  virtual void reset() = 0;
  std::shared_ptr<Module> clone(const std::optional<Device>& device = {}) const override {
    const NoGradGuard no_grad;
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    Module& fresh = *copy;
    fresh.parameters_.clear();
    fresh.buffers_.clear();
    fresh.children_.clear();
    copy->reset();
    fresh.Module::clone_(const_cast<Cloneable&>(*this), device);
    return copy;
  }

 private:
  void clone_(Module& other, const std::optional<Device>& device) final {
    auto copy = std::dynamic_pointer_cast<Derived>(other.clone(device));
    RL_CHECK(copy != nullptr,
             "Attempted to clone submodule, but what its clone() gave is of another class than the "
             "module in its place");
    static_cast<Derived&>(*this) = *copy;
  }
};

// Stands for a shared pointer to a module, or to any other object that a program shares in this way
// (a dataset). Made from the object's own arguments, from a pointer to it, or empty from nullptr.
class HolderBase {  // what does not depend on the type of the object, so that it is compiled once
 public:
  explicit operator bool() const { return impl_ != nullptr; }
  bool is_empty() const { return impl_ == nullptr; }

 protected:
  HolderBase() = default;
  explicit HolderBase(std::shared_ptr<void> object) : impl_(std::move(object)) {}
  void* checked_impl() const {
    RL_CHECK(impl_ != nullptr, "Accessing empty ModuleHolder");
    return impl_.get();
  }
  std::shared_ptr<void> impl_;
};
template <class Contained>
class ModuleHolder : public HolderBase {
 public:
  using ContainedType = Contained;
  using Impl = Contained;
  ModuleHolder() : HolderBase(std::make_shared<Contained>()) {}
  ModuleHolder(std::nullptr_t) {}
  ModuleHolder(std::shared_ptr<Contained> module) : HolderBase(std::move(module)) {}
  template <class Head, class... Tail,
            std::enable_if_t<!(sizeof...(Tail) == 0 &&
                               (std::is_base_of_v<ModuleHolder<Contained>, std::decay_t<Head>> ||
                                std::is_convertible_v<Head&&, std::shared_ptr<Contained>>)),
                             int> = 0>
  explicit ModuleHolder(Head&& head, Tail&&... tail)
      : HolderBase(
            std::make_shared<Contained>(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}

  Contained* operator->() { return get(); }
  const Contained* operator->() const { return get(); }
  Contained& operator*() { return *get(); }
  const Contained& operator*() const { return *get(); }
  std::shared_ptr<Contained> ptr() const {
    checked_impl();
    return std::static_pointer_cast<Contained>(impl_);
  }
  Contained* get() { return static_cast<Contained*>(checked_impl()); }
  const Contained* get() const { return static_cast<const Contained*>(checked_impl()); }
  template <class... Args>
  decltype(auto) operator()(Args&&... args) {
    Contained* const object = get();
    if constexpr (std::is_convertible_v<Contained*, const Module*>) {
      try {
        return object->forward(std::forward<Args>(args)...);
      } catch (Error& error) {
        detail::name_failing_part(error, *object);
        throw;
      }
    } else {
      return object->forward(std::forward<Args>(args)...);
    }
  }
  template <class Arg>
  decltype(auto) operator[](Arg&& arg) {
    return (*get())[std::forward<Arg>(arg)];
  }
};
template <class M>
std::ostream& operator<<(std::ostream& stream, const ModuleHolder<M>& module) {
  return stream << static_cast<const Module&>(*module);
}
template <class M>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const ModuleHolder<M>& module) {
  return archive << std::static_pointer_cast<Module>(module.ptr());
}
template <class M>
serialize::InputArchive& operator>>(serialize::InputArchive& archive, ModuleHolder<M>& module) {
  return archive >> std::static_pointer_cast<Module>(module.ptr());
}

}  // namespace torch::nn

#define TORCH_MODULE_IMPL(Name, ImplType)                        \
  class Name : public ::rushlight::nn::ModuleHolder<ImplType> {  \
   public:                                                       \
    using ::rushlight::nn::ModuleHolder<ImplType>::ModuleHolder; \
    using Impl [[maybe_unused]] = ImplType;                      \
  }
// TORCH_MODULE(Net): class Net, the holder of NetImpl.
#define TORCH_MODULE(Name) TORCH_MODULE_IMPL(Name, Name##Impl)
// The same for modules of the library, whose copying is compiled there, and whose holders the
// compiler makes only where a program names them.
#define RL_MODULE(Name)                        \
  extern template class Cloneable<Name##Impl>; \
  using Name = ModuleHolder<Name##Impl>
// Defaults of forward's arguments are seen without being told.
#define FORWARD_HAS_DEFAULT_ARGS(...)
