// The tree of modules: walking it, changing its tensors, printing it, its state.
#include <rushlight/nn/module.h>

#include <map>
#include <ostream>
#include <utility>

#include <rushlight/archive.h>
#include <rushlight/nn/options.h>

namespace rushlight {

std::ostream& print_sizes(std::ostream& out, ArrayRef<std::optional<int64_t>> sizes) {
  const auto item = [&](std::optional<int64_t> n) {
    return n ? std::to_string(*n) : std::string("None");
  };
  if (sizes.size() == 1) {
    return out << item(sizes[0]);
  }
  for (size_t i = 0; i < sizes.size(); i++) {
    out << (i == 0 ? "[" : ", ") << item(sizes[i]);
  }
  return out << ']';
}

std::string constant_of(const Keyword& word) {
#define RL_WORD(name, text) {#name, text},
  constexpr std::pair<const char*, const char*> words[] = {RL_FOR_EACH_WORD(RL_WORD)};
#undef RL_WORD
  for (const auto& [name, text] : words) {
    if (word == std::string_view(text)) {
      return name;
    }
  }
  return word.text();
}

int64_t reduction_of(std::string_view word) {
  const std::string_view words[] = {"none", "mean", "sum"};
  for (int64_t i = 0; i < 3; i++) {
    if (word == words[i]) {
      return i;
    }
  }
  throw ValueError(str(word, " is not a valid value for reduction"));
}

template class OrderedDict<std::string, Tensor>;
template class OrderedDict<std::string, std::shared_ptr<nn::Module>>;

}  // namespace rushlight

namespace torch::nn {

Module::~Module() = default;

OrderedDict<std::string, std::shared_ptr<Module>> Module::named_children() const {
  return children_;
}
void Module::unregister_module(const std::string& name) { children_.erase(name); }

const std::string& Module::name() const noexcept {
  if (name_.empty()) {
    name_ = autograd::type_name_of(typeid(*this).name());
    const std::string own =
        "torch::of_rushlight::";  // the library's modules go by libtorch's names
    if (name_.compare(0, own.size(), own) == 0) {
      name_.replace(0, own.size(), "torch::");
    }
  }
  return name_;
}

std::shared_ptr<Module> Module::clone(const std::optional<Device>&) const {
  throw Error(str("clone() has not been implemented for ", name(),
                  ". Subclass torch::nn::Cloneable<", name(),
                  "> instead of torch::nn::Module to "
                  "inherit the ability to clone."));
}

namespace {
std::string join_name(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + '.' + name;
}
void add_modules(OrderedDict<std::string, std::shared_ptr<Module>>& out, const std::string& prefix,
                 const OrderedDict<std::string, std::shared_ptr<Module>>& children) {
  for (const auto& child : children) {
    const std::string name = join_name(prefix, child.key());
    out.insert(name, child.value());
    add_modules(out, name, child.value()->named_children());
  }
}
}  // namespace

OrderedDict<std::string, Tensor> Module::named_parameters(bool recurse) const {
  OrderedDict<std::string, Tensor> out("Parameter");
  if (!recurse) {
    for (const auto& p : parameters_) {
      if (p.value().defined()) {
        out.insert(p.key(), p.value());
      }
    }
    return out;
  }
  apply([&](const std::string& name, const Module& module) {
    for (const auto& p : module.parameters_) {
      if (p.value().defined()) {
        out.insert(join_name(name, p.key()), p.value());
      }
    }
  });
  return out;
}

OrderedDict<std::string, Tensor> Module::named_buffers(bool recurse) const {
  OrderedDict<std::string, Tensor> out("Buffer");
  const auto add = [&](const std::string& name, const Module& module) {
    for (const auto& b : module.buffers_) {
      if (b.value().defined()) {
        out.insert(join_name(name, b.key()), b.value());
      }
    }
  };
  if (recurse) {
    apply(add);
  } else {
    add("", *this);
  }
  return out;
}

std::vector<Tensor> Module::parameters(bool recurse) const {
  return named_parameters(recurse).values();
}
std::vector<Tensor> Module::buffers(bool recurse) const { return named_buffers(recurse).values(); }
std::vector<std::shared_ptr<Module>> Module::children() const { return children_.values(); }

OrderedDict<std::string, std::shared_ptr<Module>> Module::named_modules(const std::string& prefix,
                                                                        bool include_self) const {
  OrderedDict<std::string, std::shared_ptr<Module>> out("Module");
  if (include_self) {
    const std::shared_ptr<const Module> self = weak_from_this().lock();
    RL_CHECK(self != nullptr,
             "modules() lists the module itself, but it is not stored in a shared_ptr. Make it by "
             "std::make_shared<",
             name(), ">(...), or call modules(/*include_self=*/false).");
    out.insert(prefix, std::const_pointer_cast<Module>(self));
  }
  add_modules(out, prefix, children_);
  return out;
}

std::vector<std::shared_ptr<Module>> Module::modules(bool include_self) const {
  return named_modules("", include_self).values();
}

StateDict Module::state_dict() const {
  StateDict out;
  apply([&](const std::string& name, const Module& module) {
    for (const auto* dict : {&module.parameters_, &module.buffers_}) {
      for (const auto& item : *dict) {
        if (item.value().defined()) {
          out.emplace_back(join_name(name, item.key()), item.value().detach());
        }
      }
    }
  });
  return out;
}

void Module::load_state_dict(const StateDict& state) {
  std::unordered_map<std::string, Tensor> given(state.begin(), state.end());
  const NoGradGuard no_grad;
  const StateDict own = state_dict();
  for (const auto& [name, tensor] : own) {
    const auto found = given.find(name);
    RL_CHECK(found != given.end(), "Error(s) in loading state_dict for ", this->name(),
             ": Missing key(s) in state_dict: \"", name, '"');
    RL_CHECK(found->second.sizes() == tensor.sizes(), "Error(s) in loading state_dict for ",
             this->name(), ": size mismatch for ", name, ": the state has the shape ",
             found->second.sizes(), ", the module ", tensor.sizes(), '.');
  }
  RL_CHECK(given.size() == own.size(), "Error(s) in loading state_dict for ", this->name(),
           ": Unexpected key(s) in state_dict: ", given.size(), " keys, of which ", own.size(),
           " belong to the module");
  for (const auto& [name, tensor] : own) {
    tensor.copy_(given[name]);
  }
}

void Module::train(bool on) {
  for (const auto& child : children_) {
    child.value()->train(on);
  }
  training_ = on;
}

template <class F>
void Module::change_tensors(const F& f) {
  for (auto& child : children_) {
    f(*child.value());
  }
}

namespace {
template <class F>
void change_all(OrderedDict<std::string, Tensor>& dict, const F& f) {
  const NoGradGuard no_grad;
  for (auto& item : dict) {
    if (item.value().defined()) {
      item.value().set_data(f(item.value()));
    }
  }
}
}  // namespace

void Module::to(Device device, ScalarType dtype, bool non_blocking) {
  to(device, non_blocking);
  to(dtype, non_blocking);
}

void Module::to(ScalarType dtype, bool non_blocking) {
  RL_CHECK(is_differentiable(dtype), "Module::to only accepts floating point or complex dtypes");
  change_tensors([&](Module& child) { child.to(dtype, non_blocking); });
  const auto f = [&](const Tensor& t) {
    return is_differentiable(t.dtype()) ? t.to(dtype, non_blocking) : t;
  };
  change_all(parameters_, f);
  change_all(buffers_, f);
}

void Module::to(Device device, bool non_blocking) {
  change_tensors([&](Module& child) { child.to(device, non_blocking); });
  const auto f = [&](const Tensor& t) { return t.to(device, non_blocking); };
  change_all(parameters_, f);
  change_all(buffers_, f);
}

void Module::zero_grad(bool set_to_none) {
  for (auto& child : children_) {
    child.value()->zero_grad(set_to_none);
  }
  for (auto& p : parameters_) {
    if (!p.value().defined()) {
      continue;
    }
    Tensor& grad = p.value().mutable_grad();
    if (grad.defined() && set_to_none) {
      grad.reset();
    } else if (grad.defined()) {
      grad = grad.detach();
      grad.zero_();
    }
  }
}

Tensor& Module::register_parameter(std::string name, Tensor tensor, bool requires_grad) {
  RL_CHECK(!name.empty(), "Parameter name must not be empty");
  RL_CHECK(name.find('.') == std::string::npos, "Parameter name must not contain a dot (got '",
           name, "')");
  if (tensor.defined()) {
    if (is_differentiable(tensor.dtype())) {
      tensor.set_requires_grad(requires_grad);
    } else if (requires_grad) {
      warn("An integral tensor registered as a parameter does not take gradients");
    }
  }
  return parameters_.insert(std::move(name), std::move(tensor));
}

Tensor& Module::register_buffer(std::string name, Tensor tensor) {
  RL_CHECK(!name.empty(), "Buffer name must not be empty");
  RL_CHECK(name.find('.') == std::string::npos, "Buffer name must not contain a dot (got '", name,
           "')");
  return buffers_.insert(std::move(name), std::move(tensor));
}

void Module::add_child(std::string name, std::shared_ptr<Module> module) {
  RL_CHECK(!name.empty(), "Submodule name must not be empty");
  RL_CHECK(name.find('.') == std::string::npos, "Submodule name must not contain a dot (got '",
           name, "')");
  if (module != nullptr) {
    module->name_in_parent_ = name;
  }
  children_.insert(std::move(name), std::move(module));
}

void Module::clone_(Module& other, const std::optional<Device>& device) {
  const auto take = [&](OrderedDict<std::string, Tensor>& to,
                        const OrderedDict<std::string, Tensor>& from) {
    RL_CHECK(to.size() == from.size(), "The cloned module does not have the same number of ",
             "parameters or buffers as the original module after calling reset(). Are you sure ",
             "you called register_parameter() and register_buffer() inside reset() and not the ",
             "constructor?");
    for (const auto& item : from) {
      if (item.value().defined()) {
        const Tensor copy = device && !(item.value().device() == *device) ? item.value().to(*device)
                                                                          : item.value().clone();
        Tensor& own = to[item.key()];
        if (own.defined()) {
          own.set_data(copy.detach());
        } else {
          own = copy.detach();
        }
      }
    }
  };
  take(parameters_, other.parameters_);
  take(buffers_, other.buffers_);
  RL_CHECK(children_.size() == other.children_.size(), "clone(): reset() of ", name(),
           " registers ", children_.size(), " modules, but the original has ",
           other.children_.size(), ". Call register_module() in reset(), not in the constructor.");
  for (const auto& child : other.children_) {
    children_[child.key()]->clone_(*child.value(), device);
  }
  training_ = other.training_;
}

void Module::save(serialize::OutputArchive& archive) const {
  for (const auto& p : parameters_) {
    if (p.value().defined()) {
      archive.write(p.key(), p.value());
    }
  }
  for (const auto& b : buffers_) {
    if (b.value().defined()) {
      archive.write(b.key(), b.value(), true);
    }
  }
  for (const auto& child : children_) {
    if (child.value()->is_serializable()) {
      serialize::OutputArchive below;
      child.value()->save(below);
      archive.write(child.key(), below);
    }
  }
}

namespace {
using Shapes = std::map<std::string, DimVector>;
Shapes shapes_of(const StateDict& state) {
  Shapes out;
  for (const auto& [name, tensor] : state) {
    out.emplace(name, DimVector(tensor.sizes()));
  }
  return out;
}
// The names of the first that the second lacks, after `what`; nothing where there are none.
std::string names_lacking(const char* what, const Shapes& these, const Shapes& in) {
  std::string out;
  for (const auto& [name, shape] : these) {
    if (in.find(name) == in.end()) {
      out += str(out.empty() ? what : ", ", '"', name, '"');
    }
  }
  return out;
}
// What keeps a module from being loaded, a line for each kind of it.
std::string differences(const Shapes& own, const Shapes& given) {
  std::string out = names_lacking("\n\tMissing key(s): ", own, given) +
                    names_lacking("\n\tUnexpected key(s): ", given, own);
  for (const auto& [name, shape] : own) {
    const auto found = given.find(name);
    if (found != given.end() && !(IntArrayRef(found->second) == IntArrayRef(shape))) {
      out += str("\n\tsize mismatch for ", name, ": ", IntArrayRef(found->second),
                 " in the archive, ", IntArrayRef(shape), " in the module");
    }
  }
  return out;
}
thread_local bool is_loading = false;  // modules load their children
struct Loading {
  const bool outermost = !std::exchange(is_loading, true);
  ~Loading() { is_loading = !outermost; }
};
}  // namespace

void Module::load(serialize::InputArchive& archive) try {
  const Loading loading;
  const NoGradGuard no_grad;
  for (auto* dict : {&parameters_, &buffers_}) {
    for (auto& item : *dict) {
      if (item.value().defined()) {
        Tensor loaded;
        archive.read(item.key(), loaded);
        RL_CHECK(loaded.sizes() == item.value().sizes(), "size mismatch for ", item.key(), ": ",
                 loaded.sizes(), " in the archive, ", item.value().sizes(), " in the module");
        item.value().copy_(loaded);
      }
    }
  }
  for (const auto& child : children_) {
    if (child.value()->is_serializable()) {
      serialize::InputArchive below;
      archive.read(child.key(), below);
      child.value()->load(below);
    }
  }
} catch (const Error&) {
  // The module that the program loads says all that differs, by whole names.
  const std::string found =
      is_loading ? "" : differences(shapes_of(state_dict()), shapes_of(archive.state()));
  if (found.empty()) {
    throw;
  }
  const std::string from = archive.path().empty() ? "" : str(" from '", archive.path(), '\'');
  throw Error(str("Error(s) in loading state_dict for ", name(), from, ':', found));
}

void Module::pretty_print(std::ostream& stream) const { stream << name(); }

void Module::print_tree(std::ostream& stream, const std::string& indent) const {
  pretty_print(stream);
  if (children_.is_empty()) {
    return;
  }
  stream << "(\n";
  for (const auto& child : children_) {
    stream << indent << "  (" << child.key() << "): ";
    child.value()->print_tree(stream, indent + "  ");
    stream << '\n';
  }
  stream << indent << ')';
}

std::ostream& operator<<(std::ostream& stream, const Module& module) {
  module.print_tree(stream, "");
  return stream;
}

serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const std::shared_ptr<Module>& module) {
  RL_CHECK(module != nullptr, "Cannot serialize empty module");
  module->save(archive);
  return archive;
}

serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                    const std::shared_ptr<Module>& module) {
  RL_CHECK(module != nullptr, "Cannot deserialize empty module");
  module->load(archive);
  return archive;
}

}  // namespace torch::nn
