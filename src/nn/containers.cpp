// Containers of modules.
#include <rushlight/nn/containers.h>

#include <ostream>

namespace torch::nn {

template class Cloneable<SequentialImpl>;
template class Cloneable<ModuleListImpl>;
template class Cloneable<ModuleDictImpl>;
template class Cloneable<ParameterListImpl>;
template class Cloneable<ParameterDictImpl>;
template class Cloneable<FunctionalImpl>;

SequentialImpl::SequentialImpl(OrderedDict<std::string, AnyModule>&& modules) {
  for (auto& item : modules) {
    push_back(item.key(), std::move(item.value()));
  }
}
SequentialImpl::SequentialImpl(std::initializer_list<NamedAnyModule> modules) {
  for (const NamedAnyModule& m : modules) {
    push_back(m.name(), m.module());
  }
}

Sequential::Sequential(std::initializer_list<NamedAnyModule> modules)
    : ModuleHolder(std::make_shared<SequentialImpl>(modules)) {}

AnyValue SequentialImpl::run(std::vector<AnyValue>& given) {
  RL_CHECK(!is_empty(), "Cannot call forward() on an empty Sequential");
  AnyValue value = modules_.front().call(given);
  std::vector<AnyValue> next(1);
  for (size_t i = 1; i < modules_.size(); i++) {
    next[0] = std::move(value);
    value = modules_[i].call(next);
  }
  return value;
}

void SequentialImpl::push_back(std::string name, AnyModule module) {
  register_module(std::move(name), module.ptr());
  modules_.push_back(std::move(module));
}

std::shared_ptr<Module> SequentialImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<SequentialImpl>();
  size_t i = 0;
  for (const auto& child : children_) {
    copy->push_back(child.key(), modules_[i++].clone(device));
  }
  copy->train(is_training());
  return copy;
}
void SequentialImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::Sequential"; }

void ModuleListImpl::insert(size_t i, std::shared_ptr<Module> module) {
  RL_CHECK(i <= size(), "Index out of range");
  modules_.insert(modules_.begin() + static_cast<std::ptrdiff_t>(i), std::move(module));
  for (size_t k = i; k < modules_.size(); k++) {
    const std::string name = std::to_string(k);
    if (children_.contains(name)) {
      replace_module(name, modules_[k]);
    } else {
      register_module(name, modules_[k]);
    }
  }
}
std::shared_ptr<Module> ModuleListImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleListImpl>();
  for (const auto& module : modules_) {
    copy->push_back(module->clone(device));
  }
  copy->train(is_training());
  return copy;
}
void ModuleListImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::ModuleList"; }

ModuleDictImpl::ModuleDictImpl(
    const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& list) {
  update(list);
}
ModuleDictImpl::ModuleDictImpl(const Modules& modules) { update(modules); }
std::vector<std::string> ModuleDictImpl::keys() const { return children_.keys(); }
std::vector<std::shared_ptr<Module>> ModuleDictImpl::values() const { return children_.values(); }
std::vector<std::pair<std::string, std::shared_ptr<Module>>> ModuleDictImpl::items() const {
  return children_.pairs();
}
void ModuleDictImpl::insert(const std::string& name, std::shared_ptr<Module> module) {
  if (children_.contains(name)) {
    replace_module(name, std::move(module));
  } else {
    register_module(name, std::move(module));
  }
}
void ModuleDictImpl::update(
    const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& list) {
  for (const auto& [name, module] : list) {
    insert(name, module);
  }
}
void ModuleDictImpl::update(const Modules& modules) {
  for (const auto& item : modules) {
    insert(item.key(), item.value());
  }
}
std::shared_ptr<Module> ModuleDictImpl::pop(const std::string& name) {
  std::shared_ptr<Module> module = children_[name];
  unregister_module(name);
  return module;
}
std::shared_ptr<Module> ModuleDictImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleDictImpl>();
  for (const auto& child : children_) {
    copy->insert(child.key(), child.value()->clone(device));
  }
  copy->train(is_training());
  return copy;
}
void ModuleDictImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::ModuleDict"; }

namespace {
void print_parameters(std::ostream& stream, const OrderedDict<std::string, Tensor>& parameters) {
  stream << "(\n";
  for (const auto& p : parameters) {
    stream << '(' << p.key() << "): Parameter containing: [" << enum_name(p.value().dtype())
           << " of size " << str(p.value().sizes()) << "]\n";
  }
  stream << ')';
}
}  // namespace
void ParameterListImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::ParameterList";
  print_parameters(stream, parameters_);
}
ParameterDictImpl::ParameterDictImpl(const OrderedDict<std::string, Tensor>& tensors) {
  for (const auto& item : tensors) {
    insert(item.key(), item.value());
  }
}
void ParameterDictImpl::update(const OrderedDict<std::string, Tensor>& tensors) {
  for (const auto& item : tensors) {
    parameters_[item.key()] = item.value();
  }
}
std::vector<std::string> ParameterDictImpl::keys() const { return parameters_.keys(); }
std::vector<Tensor> ParameterDictImpl::values() const { return parameters_.values(); }
void ParameterDictImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::ParameterDict";
  print_parameters(stream, parameters_);
}
Tensor ParameterDictImpl::pop(const std::string& name) {
  Tensor t = parameters_[name];
  parameters_.erase(name);
  return t;
}
void FunctionalImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::Functional()";
}

}  // namespace torch::nn
