// Modules that hold modules or parameters: Sequential, lists and dicts; Functional.
#pragma once

#include <functional>

#include <rushlight/nn/any.h>

namespace torch::nn {

// Modules run one after the other. A forward with other types: forward<Result>(inputs...).
class RL_API SequentialImpl : public Cloneable<SequentialImpl> {
 public:
  using Iterator = std::vector<AnyModule>::iterator;
  using ConstIterator = std::vector<AnyModule>::const_iterator;
  SequentialImpl() = default;
  template <class... M, std::enable_if_t<(sizeof...(M) > 0), int> = 0>
  explicit SequentialImpl(M&&... modules) {
    (push_back(std::forward<M>(modules)), ...);
  }
  explicit SequentialImpl(OrderedDict<std::string, AnyModule>&& modules);
  explicit SequentialImpl(std::initializer_list<NamedAnyModule> modules);
  std::shared_ptr<Module> clone(const std::optional<Device>& device = {}) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  template <class R = Tensor, class... Inputs>
  R forward(Inputs&&... inputs) {
    std::vector<AnyValue> given;
    (given.emplace_back(std::forward<Inputs>(inputs)), ...);
    return run(given).template get<R>();
  }
  template <class M>
  void push_back(std::shared_ptr<M> module) {
    push_back(std::to_string(modules_.size()), AnyModule(std::move(module)));
  }
  template <class M>
  void push_back(std::string name, std::shared_ptr<M> module) {
    push_back(std::move(name), AnyModule(std::move(module)));
  }
  template <class M>
  void push_back(const ModuleHolder<M>& holder) {
    push_back(holder.ptr());
  }
  template <class M>
  void push_back(std::string name, const ModuleHolder<M>& holder) {
    push_back(std::move(name), holder.ptr());
  }
  template <class M, std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>>, int> = 0>
  void push_back(M&& module) {
    push_back(std::make_shared<std::decay_t<M>>(std::forward<M>(module)));
  }
  template <class M, std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>>, int> = 0>
  void push_back(std::string name, M&& module) {
    push_back(std::move(name), std::make_shared<std::decay_t<M>>(std::forward<M>(module)));
  }
  void push_back(const NamedAnyModule& module) { push_back(module.name(), module.module()); }
  void push_back(AnyModule module) {
    push_back(std::to_string(modules_.size()), std::move(module));
  }
  void push_back(std::string name, AnyModule module);
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) {
      push_back(module);
    }
  }
  Iterator begin() { return modules_.begin(); }
  ConstIterator begin() const { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator end() const { return modules_.end(); }
  template <class M>
  M& at(size_t i) {
    RL_CHECK(i < size(), "Index out of range");
    return modules_[i].get<M>();
  }
  std::shared_ptr<Module> ptr(size_t i) const {
    RL_CHECK(i < size(), "Index out of range");
    return modules_[i].ptr();
  }
  template <class M>
  std::shared_ptr<M> ptr(size_t i) const {
    RL_CHECK(i < size(), "Index out of range");
    return modules_[i].ptr<M>();
  }
  std::shared_ptr<Module> operator[](size_t i) const { return ptr(i); }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  AnyValue run(std::vector<AnyValue>& given);
  std::vector<AnyModule> modules_;
};
extern template class Cloneable<SequentialImpl>;
class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  using Impl = SequentialImpl;
  Sequential() = default;
  RL_API Sequential(std::initializer_list<NamedAnyModule> modules);
};

// Modules by number.
class RL_API ModuleListImpl : public Cloneable<ModuleListImpl> {
 public:
  using Iterator = std::vector<std::shared_ptr<Module>>::iterator;
  ModuleListImpl() = default;
  template <class... M, std::enable_if_t<(sizeof...(M) > 0), int> = 0>
  explicit ModuleListImpl(M&&... modules) {
    (push_back(std::forward<M>(modules)), ...);
  }
  std::shared_ptr<Module> clone(const std::optional<Device>& device = {}) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  void push_back(std::shared_ptr<Module> module) { insert(size(), std::move(module)); }
  template <class M>
  void push_back(const ModuleHolder<M>& holder) {
    push_back(std::static_pointer_cast<Module>(holder.ptr()));
  }
  template <class M, std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>>, int> = 0>
  void push_back(M&& module) {
    push_back(std::make_shared<std::decay_t<M>>(std::forward<M>(module)));
  }
  void insert(size_t i, std::shared_ptr<Module> module);
  template <class M>
  void insert(size_t i, const ModuleHolder<M>& holder) {
    insert(i, std::static_pointer_cast<Module>(holder.ptr()));
  }
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) {
      push_back(module);
    }
  }
  Iterator begin() { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  std::vector<std::shared_ptr<Module>>::const_iterator begin() const { return modules_.begin(); }
  std::vector<std::shared_ptr<Module>>::const_iterator end() const { return modules_.end(); }
  template <class M>
  M& at(size_t i) {
    return *ptr<M>(i);
  }
  std::shared_ptr<Module> ptr(size_t i) const {
    RL_CHECK(i < size(), "Index out of range");
    return modules_[i];
  }
  template <class M>
  std::shared_ptr<M> ptr(size_t i) const {
    auto held = std::dynamic_pointer_cast<M>(ptr(i));
    RL_CHECK(held != nullptr, "Unable to cast module[", i, "] to ",
             autograd::type_name_of(typeid(M).name()));
    return held;
  }
  std::shared_ptr<Module> operator[](size_t i) const { return ptr(i); }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};
RL_MODULE(ModuleList);

// Modules by name.
class RL_API ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  using Modules = OrderedDict<std::string, std::shared_ptr<Module>>;
  ModuleDictImpl() = default;
  explicit ModuleDictImpl(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& list);
  explicit ModuleDictImpl(const Modules& modules);
  std::shared_ptr<Module> clone(const std::optional<Device>& device = {}) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  void insert(const std::string& name, std::shared_ptr<Module> module);
  template <class M>
  void insert(const std::string& name, const ModuleHolder<M>& holder) {
    insert(name, std::static_pointer_cast<Module>(holder.ptr()));
  }
  void update(const Modules& modules);
  void update(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& list);
  void update(const ModuleDictImpl& other) { update(other.children_); }
  std::shared_ptr<Module> operator[](const std::string& name) const { return children_[name]; }
  template <class M>
  M& at(const std::string& name) {
    auto* const held = children_[name]->template as<M>();
    RL_CHECK(held != nullptr, "Unable to cast module[", name, "] to ",
             autograd::type_name_of(typeid(M).name()));
    return *held;
  }
  bool contains(const std::string& name) const { return children_.contains(name); }
  std::shared_ptr<Module> pop(const std::string& name);
  void clear() { children_.clear(); }
  size_t size() const noexcept { return children_.size(); }
  bool empty() const noexcept { return children_.is_empty(); }
  std::vector<std::string> keys() const;
  std::vector<std::shared_ptr<Module>> values() const;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> items() const;
  Modules::ConstIterator begin() const { return children_.begin(); }
  Modules::ConstIterator end() const { return children_.end(); }
};
RL_MODULE(ModuleDict);

class RL_API ParameterListImpl : public Cloneable<ParameterListImpl> {
 public:
  ParameterListImpl() = default;
  template <class... T, std::enable_if_t<(std::is_convertible_v<T, Tensor> && ...), int> = 0>
  explicit ParameterListImpl(const T&... tensors) {
    (append(tensors), ...);
  }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  void append(const Tensor& tensor) {
    register_parameter(std::to_string(size()), tensor, tensor.requires_grad());
  }
  template <class Container>
  void extend(const Container& tensors) {
    for (const auto& t : tensors) {
      append(t);
    }
  }
  void append(const OrderedDict<std::string, Tensor>::Item& item) { append(item.value()); }
  ParameterListImpl& operator+=(const ParameterListImpl& other) {
    extend(other.parameters(/*recurse=*/false));
    return *this;
  }
  Tensor& at(size_t i) { return parameters_[i].value(); }
  Tensor& operator[](size_t i) { return at(i); }
  auto begin() { return parameters_.begin(); }
  auto begin() const { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  auto end() const { return parameters_.end(); }
  size_t size() const noexcept { return parameters_.size(); }
  bool is_empty() const noexcept { return size() == 0; }
};
RL_MODULE(ParameterList);

class RL_API ParameterDictImpl : public Cloneable<ParameterDictImpl> {
 public:
  ParameterDictImpl() = default;
  explicit ParameterDictImpl(const OrderedDict<std::string, Tensor>& tensors);
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor& insert(const std::string& name, const Tensor& tensor) {
    return register_parameter(name, tensor, tensor.requires_grad());
  }
  void update(const OrderedDict<std::string, Tensor>& tensors);
  void update(const ParameterDictImpl& other) { update(other.parameters_); }
  Tensor& get(const std::string& name) { return parameters_[name]; }
  Tensor& operator[](const std::string& name) { return get(name); }
  bool contains(const std::string& name) const { return parameters_.contains(name); }
  Tensor pop(const std::string& name);
  void clear() { parameters_.clear(); }
  std::vector<std::string> keys() const;
  std::vector<Tensor> values() const;
  size_t size() const noexcept { return parameters_.size(); }
  bool empty() const noexcept { return size() == 0; }
};
RL_MODULE(ParameterDict);

// A function of a tensor as a module, with arguments that follow it.
class RL_API FunctionalImpl : public Cloneable<FunctionalImpl> {
 public:
  using Function = std::function<Tensor(Tensor)>;
  FunctionalImpl(Function function) : function_(std::move(function)) {}
  template <class F, class... Args, std::enable_if_t<(sizeof...(Args) > 0), int> = 0>
  FunctionalImpl(F function, Args&&... args)
      : function_(std::bind(function, std::placeholders::_1, std::forward<Args>(args)...)) {}
  Tensor forward(Tensor input) { return function_(std::move(input)); }
  Tensor operator()(Tensor input) { return forward(std::move(input)); }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  bool is_serializable() const override { return false; }

 private:
  Function function_;
};
RL_MODULE(Functional);

}  // namespace torch::nn
