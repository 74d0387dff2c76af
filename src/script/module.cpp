// jit::Module: what programs ask an object of a module's class.
#include <functional>
#include <unordered_set>

#include <rushlight/functions.h>
#include <rushlight/graph_function.h>
#include <rushlight/script.h>
#include <rushlight/script_types.h>

#include "core/nesting.h"
#include "script/export.h"

namespace rushlight::jit {

Method::Method(intrusive_ptr<Object> object, graph::Function& function)
    : object_(object), function_(&function) {}
std::string Method::name() const { return function_->base_name(); }
size_t Method::num_inputs() const { return function_->num_inputs(); }

IValue Method::operator()(std::vector<IValue> arguments, const Kwargs& by_name) const {
  arguments.insert(arguments.begin(), static_cast<Object*>(object_.get())->value());
  return (*function_)(std::move(arguments), {by_name.begin(), by_name.end()});
}

Module::Module(intrusive_ptr<Object> object) : object_(object) {
  RL_CHECK(object.defined() && object->type->form == ClassType::Form::Module,
           "the object is no module");
}

IValue Module::operator()(std::vector<IValue> arguments) const {
  for (const std::string& name : class_type().pre_hooks) {
    IValue changed = get_method(name)({IValue::tuple(arguments)});
    if (changed.isTuple()) {
      arguments = changed.items();
    } else if (!changed.isNone()) {
      arguments = {std::move(changed)};
    }
  }
  IValue result = forward(arguments);
  for (const std::string& name : class_type().hooks) {
    IValue changed = get_method(name)({IValue::tuple(arguments), result});
    if (!changed.isNone()) {
      result = std::move(changed);
    }
  }
  return result;
}

intrusive_ptr<Object> Module::object() const {
  RL_CHECK(object_.defined(), "torch::jit::Module: the module is empty: load one");
  return intrusive_ptr<Object>(static_cast<Object*>(object_.get()));
}
ClassType& Module::class_type() const { return *object()->type; }

namespace {
bool is_module(const IValue& value) {
  const Object* const object = object_of(value);
  return object != nullptr && object->type->form == ClassType::Form::Module;
}
std::string join_name(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}
}  // namespace

std::shared_ptr<script_types::ClassType> Module::type() const {
  return std::make_shared<script_types::ClassType>(Type::of_class(class_type()));
}

// ---- methods and attributes ----

std::optional<Method> Module::find_method(const std::string& name) const {
  graph::Function* const function = class_type().find_method(name);
  return function != nullptr ? std::optional(Method(object(), *function)) : std::nullopt;
}

Method Module::get_method(const std::string& name) const {
  const std::optional<Method> found = find_method(name);
  RL_CHECK(found.has_value(), "Method '", name, "' is not defined: the module is a ",
           class_type().name);
  return *found;
}

std::vector<Method> Module::get_methods() const {
  std::vector<Method> out;
  for (graph::Function* const function : class_type().methods) {
    out.emplace_back(object(), *function);
  }
  return out;
}

bool Module::hasattr(const std::string& name) const {
  return class_type().find_attribute(name) != ClassType::npos ||
         class_type().find_constant(name) != nullptr;
}

IValue Module::attr(const std::string& name) const {
  const size_t place = class_type().find_attribute(name);
  if (place != ClassType::npos) {
    return object()->slots[place];
  }
  const IValue* const constant = class_type().find_constant(name);
  RL_CHECK(constant != nullptr, class_type().name, " does not have a field with name '", name, "'");
  return *constant;
}

IValue Module::attr(const std::string& name, IValue otherwise) const {
  return hasattr(name) ? attr(name) : std::move(otherwise);
}

void Module::setattr(const std::string& name, IValue value) const {
  const size_t place = class_type().find_attribute(name);
  RL_CHECK(place != ClassType::npos, class_type().name, " does not have a field with name '", name,
           "' that can be set");
  const Type& wanted = class_type().attributes[place].type;
  RL_CHECK(is_of(value, wanted), "the attribute '", name, "' is of type ", wanted.annotation(),
           ", and the value is of another");
  object()->slots[place] = std::move(value);
}

// ---- submodules and tensors ----

std::vector<NamedModule> Module::named_children() const {
  std::vector<NamedModule> out;
  const ClassType& of = class_type();
  for (size_t i = 0; i < of.attributes.size(); i++) {
    if (is_module(object()->slots[i])) {
      out.push_back(
          {of.attributes[i].name, Module(intrusive_ptr<Object>(object_of(object()->slots[i])))});
    }
  }
  return out;
}

std::vector<NamedModule> Module::named_modules() const {
  std::vector<NamedModule> out;
  std::unordered_set<const Object*> seen;
  const std::function<void(const std::string&, const Module&)> visit = [&](const std::string& name,
                                                                           const Module& module) {
    if (!seen.insert(module.object().get()).second) {
      return;
    }
    const Nesting deeper;
    out.push_back({name, module});
    for (const auto& [child, of] : module.named_children()) {
      visit(join_name(name, child), of);
    }
  };
  visit("", *this);
  return out;
}

std::vector<Module> Module::children() const {
  std::vector<Module> out;
  for (auto& [name, module] : named_children()) {
    out.push_back(module);
  }
  return out;
}

std::vector<Module> Module::modules() const {
  std::vector<Module> out;
  for (auto& [name, module] : named_modules()) {
    out.push_back(module);
  }
  return out;
}

namespace {
// Calls f(name, attribute, value) for what lies in a module, and in all below it.
template <class F>
void for_each_slot(const Module& of, bool recurse, const F& f) {
  const auto visit = [&](const std::string& prefix, const Module& module) {
    const ClassType& type = module.class_type();
    for (size_t i = 0; i < type.attributes.size(); i++) {
      f(join_name(prefix, type.attributes[i].name), type.attributes[i], module.object()->slots[i]);
    }
  };
  if (!recurse) {
    visit("", of);
    return;
  }
  for (const auto& [name, module] : of.named_modules()) {
    visit(name, module);
  }
}

std::vector<NamedTensor> tensors_of(const Module& of, bool recurse,
                                    bool ClassType::Attribute::* which) {
  std::vector<NamedTensor> out;
  std::unordered_set<const TensorImpl*> seen;
  for_each_slot(
      of, recurse,
      [&](const std::string& name, const ClassType::Attribute& attribute, const IValue& value) {
        if (attribute.*which && value.isTensor() && value.toTensor().defined() &&
            seen.insert(value.toTensor().unsafeGetTensorImpl()).second) {
          out.push_back({name, value.toTensor()});
        }
      });
  return out;
}

std::vector<Tensor> without_names(std::vector<NamedTensor> named) {
  std::vector<Tensor> out;
  for (NamedTensor& one : named) {
    out.push_back(std::move(one.value));
  }
  return out;
}
}  // namespace

std::vector<NamedTensor> Module::named_parameters(bool recurse) const {
  return tensors_of(*this, recurse, &ClassType::Attribute::is_parameter);
}
std::vector<NamedTensor> Module::named_buffers(bool recurse) const {
  return tensors_of(*this, recurse, &ClassType::Attribute::is_buffer);
}
std::vector<Tensor> Module::parameters(bool recurse) const {
  return without_names(named_parameters(recurse));
}
std::vector<Tensor> Module::buffers(bool recurse) const {
  return without_names(named_buffers(recurse));
}
std::vector<NamedValue> Module::named_attributes(bool recurse) const {
  std::vector<NamedValue> out;
  for_each_slot(*this, recurse,
                [&](const std::string& name, const ClassType::Attribute&, const IValue& value) {
                  out.push_back({name, value});
                });
  return out;
}

// ---- modes, devices, dtypes ----

void Module::train(bool on) const {
  for (const Module& module : modules()) {
    const size_t place = module.class_type().find_attribute("training");
    if (place != ClassType::npos) {
      module.object()->slots[place] = on;
    }
  }
}

bool Module::is_training() const { return attr("training", true).toBool(); }

void Module::change_tensors(std::optional<Device> device, std::optional<ScalarType> dtype) const {
  const auto change = [&](const std::vector<Tensor>& tensors) {
    for (Tensor tensor : tensors) {
      const bool converts = dtype && (is_floating(tensor.dtype()) || is_complex(tensor.dtype()));
      const Tensor moved = tensor.detach().to(device.value_or(tensor.device()));
      tensor.set_data(converts ? moved.to(*dtype) : moved);
    }
  };
  change(parameters());
  change(buffers());
}

void Module::to(Device device, ScalarType dtype, bool) const { change_tensors(device, dtype); }
void Module::to(ScalarType dtype, bool) const { change_tensors({}, dtype); }
void Module::to(Device device, bool) const { change_tensors(device, {}); }

// ---- copies ----

namespace {
// Copies of values; what is there twice is there twice in the copy.
class Copier {
 public:
  // `all`: lists, dicts and tensors as well as modules.
  explicit Copier(bool all) : all_(all) {}

  IValue copy(const IValue& value) {
    const Nesting deeper;
    Object* const object = object_of(value);
    if (object != nullptr) {
      const bool keeps = object->type->form == ClassType::Form::Enum ||
                         (!all_ && object->type->form != ClassType::Form::Module);
      return keeps ? value : copy_object(*object)->value();
    }
    if (!all_) {
      return value;
    }
    if (value.isTensor()) {
      return copy_tensor(value.toTensor());
    }
    if (value.isTuple()) {
      return IValue::tuple(copy_items(value.items()));
    }
    if (value.isList()) {
      return IValue::list(copy_items(value.toListRef()));
    }
    if (value.isGenericDict()) {
      auto items = make_intrusive<ivalue::DictItems>();
      for (const auto& [key, item] : value.dict_items()->pairs) {
        items->insert(copy(key), copy(item), true);
      }
      return IValue::dict(std::move(items));
    }
    return value;
  }

  intrusive_ptr<Object> copy_object(Object& object) {
    const auto known = objects_.find(&object);
    if (known != objects_.end()) {
      return known->second;
    }
    auto made = make_intrusive<Object>(*object.type, object.owner);
    objects_[&object] = made;
    for (size_t i = 0; i < object.slots.size(); i++) {
      made->slots[i] = copy(object.slots[i]);
    }
    return made;
  }

 private:
  IValue::Items copy_items(const IValue::Items& items) {
    IValue::Items out;
    for (const IValue& item : items) {
      out.push_back(copy(item));
    }
    return out;
  }

  Tensor copy_tensor(const Tensor& tensor) {
    if (!tensor.defined()) {
      return tensor;
    }
    const auto [place, fresh] = tensors_.emplace(tensor.unsafeGetTensorImpl(), Tensor());
    if (fresh) {
      place->second = tensor.detach().clone();
      place->second.requires_grad_(tensor.requires_grad());
    }
    return place->second;
  }

  bool all_;
  std::unordered_map<const Object*, intrusive_ptr<Object>> objects_;
  std::unordered_map<const TensorImpl*, Tensor> tensors_;
};
}  // namespace

Module Module::clone(bool same_values) const {
  return Module(Copier(!same_values).copy_object(*object()));
}
Module Module::copy() const { return Module(Copier(false).copy_object(*object())); }
Module Module::deepcopy() const { return Module(Copier(true).copy_object(*object())); }

void Module::save(std::ostream& stream, const ExtraFilesMap& extra_files) const {
  serialize::StreamSink sink(stream);
  rushlight::script::write_module(*this, sink, "archive", extra_files);
}
void Module::save(const std::string& path, const ExtraFilesMap& extra_files) const {
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  serialize::AtomicFile file(path);
  rushlight::script::write_module(*this, file, name.substr(0, name.find('.')), extra_files);
  file.commit();
}

}  // namespace rushlight::jit

namespace rushlight {

jit::Module Value::toModule() const {
  RL_CHECK(isModule(), "expected a module, but got a value of type ", kind_name());
  return jit::Module(intrusive_ptr<Object>(object_of(*this)));
}

}  // namespace rushlight
