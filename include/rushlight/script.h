// Programs of TorchScript: modules that archives hold, which run without Python.
#pragma once

#include <iosfwd>
#include <unordered_map>

#include <rushlight/ivalue.h>

namespace rushlight {
struct Object;
struct ClassType;
namespace graph {
class CompilationUnit;
class Function;
}  // namespace graph
namespace script_types {
struct Type;
struct TensorType;
struct ClassType;
}  // namespace script_types
}  // namespace rushlight
namespace c10 {
using rushlight::script_types::TensorType;
using rushlight::script_types::Type;
}  // namespace c10

namespace rushlight::jit {

using rushlight::IValue;
using Kwargs = std::unordered_map<std::string, IValue>;
// Records beside the module, by name; a file of that name is filled in or written.
using ExtraFilesMap = std::unordered_map<std::string, std::string>;

class Module;
using graph::Function;

struct NamedTensor {
  std::string name;  // "layer.weight"
  Tensor value;
};
struct NamedValue {
  std::string name;
  IValue value;
};
struct NamedModule;

// "module.Class", by its parts.
class QualifiedName {
 public:
  QualifiedName(std::string name) : name_(std::move(name)) {}
  QualifiedName(const char* name) : name_(name) {}
  QualifiedName(const QualifiedName& prefix, const std::string& name)
      : name_(prefix.name_ + "." + name) {}
  const std::string& qualifiedName() const { return name_; }
  std::string name() const { return name_.substr(name_.rfind('.') + 1); }
  std::string prefix() const {
    const size_t end = name_.rfind('.');
    return end == std::string::npos ? std::string() : name_.substr(0, end);
  }
  bool operator==(const QualifiedName& o) const { return name_ == o.name_; }

 private:
  std::string name_;
};

// The object of a class of programs that a value or a module is, as what it points to is used.
class TracedGraph;
struct RL_API UnitRef {
  graph::CompilationUnit* unit;
  std::string class_name;  // whose methods are made
  const UnitRef* operator->() const { return this; }
  // A function that is the graph of a trace (tracer.h), which the trace gives away.
  graph::Function* create_function(const std::string& name,
                                   const std::shared_ptr<TracedGraph>& graph) const;
};
class RL_API ObjectRef {
 public:
  explicit ObjectRef(const IValue& value);  // RuntimeError where it is none
  const ObjectRef* operator->() const { return this; }
  std::shared_ptr<script_types::ClassType> type() const;
  IValue getAttr(const std::string& name) const;  // RuntimeError where there is none
  void setAttr(const std::string& name, IValue value) const;
  UnitRef compilation_unit() const;

 private:
  intrusive_ptr<CustomClassHolder> object_;
};

// A method of one object.
class RL_API Method {
 public:
  Method(intrusive_ptr<Object> object, graph::Function& function);
  // Any number of threads may call it. RuntimeError where arguments do not fit, or where it fails;
  // the message shows the lines of the program.
  IValue operator()(std::vector<IValue> arguments, const Kwargs& by_name = {}) const;
  graph::Function& function() const { return *function_; }
  std::string name() const;
  size_t num_inputs() const;  // with the object itself

 private:
  intrusive_ptr<CustomClassHolder> object_;
  graph::Function* function_;
};

// An object whose class is a module's. Copies of a Module are the same object.
class RL_API Module {
 public:
  Module() = default;  // none: whatever it is asked raises
  explicit Module(intrusive_ptr<Object> object);
  // A new one of a class of its own, with `training` alone.
  explicit Module(const std::string& class_name);

  // More attributes, for a module that is made here; RuntimeError where it has one of that name.
  void register_parameter(const std::string& name, Tensor value, bool is_buffer);
  void register_buffer(const std::string& name, Tensor value);
  void register_module(const std::string& name, const Module& module);
  void register_attribute(const std::string& name, const Type& type, IValue value,
                          bool is_parameter = false, bool is_buffer = false);
  // Compiles the methods of a text: "def scaled(self, x, by: float = 2.0): return x * by".
  void define(const std::string& source);

  IValue forward(std::vector<IValue> arguments, const Kwargs& by_name = {}) const {
    return get_method("forward")(std::move(arguments), by_name);
  }
  // `forward`, with the hooks that the module has.
  IValue operator()(std::vector<IValue> arguments) const;
  template <class... A>
  IValue run_method(const std::string& name, A&&... arguments) const {
    return get_method(name)({IValue(std::forward<A>(arguments))...});
  }
  Method get_method(const std::string& name) const;  // RuntimeError where there is none
  std::optional<Method> find_method(const std::string& name) const;
  std::vector<Method> get_methods() const;

  IValue attr(const std::string& name) const;  // RuntimeError where there is none
  IValue attr(const std::string& name, IValue otherwise) const;
  bool hasattr(const std::string& name) const;
  // RuntimeError where there is none, or where it is of another type.
  void setattr(const std::string& name, IValue value) const;

  std::vector<Tensor> parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  std::vector<NamedTensor> named_parameters(bool recurse = true) const;
  std::vector<NamedTensor> named_buffers(bool recurse = true) const;
  std::vector<NamedValue> named_attributes(bool recurse = true) const;
  std::vector<Module> children() const;
  std::vector<Module> modules() const;  // with itself, depth first, each once
  std::vector<NamedModule> named_children() const;
  std::vector<NamedModule> named_modules() const;

  void train(bool on = true) const;
  void eval() const { train(false); }
  bool is_training() const;
  // Parameters and buffers change in place; a dtype changes those of floating-point numbers.
  void to(Device device, ScalarType dtype, bool non_blocking = false) const;
  void to(ScalarType dtype, bool non_blocking = false) const;
  void to(Device device, bool non_blocking = false) const;
  // By the name of the device. A template, so that literals are devices.
  template <class Text, std::enable_if_t<std::is_same_v<Text, std::string>, int> = 0>
  void to(const Text& device, bool non_blocking = false) const {
    to(Device(device), non_blocking);
  }

  // New objects for it and its submodules: with copies of all else, or with the same values.
  Module clone(bool same_values = false) const;
  Module copy() const;      // a new object of the same values, submodules too
  Module deepcopy() const;  // a copy of everything
  // An archive, which PyTorch reads as well; RuntimeError where it holds what archives cannot.
  void save(const std::string& path, const ExtraFilesMap& extra_files = {}) const;
  void save(std::ostream& stream, const ExtraFilesMap& extra_files = {}) const;

  intrusive_ptr<Object> object() const;  // RuntimeError where there is none
  ObjectRef _ivalue() const;
  // An object of a class of the module's archive, made by its __init__; RuntimeError where there
  // is none.
  IValue create_class(const QualifiedName& name, std::vector<IValue> arguments) const;
  ClassType& class_type() const;
  std::shared_ptr<script_types::ClassType> type() const;
  bool operator==(const Module& o) const { return object_.get() == o.object_.get(); }

 private:
  void change_tensors(std::optional<Device> device, std::optional<ScalarType> dtype) const;
  intrusive_ptr<CustomClassHolder> object_;
};
using script_module = Module;
struct NamedModule {
  std::string name;  // "layers.0"
  Module value;
};

// What a list of slots holds. Such lists are vectors here.
namespace detail {
struct ParameterPolicy {
  using value_type = Tensor;
};
struct BufferPolicy {
  using value_type = Tensor;
};
struct ModulePolicy {
  using value_type = Module;
};
struct AttributePolicy {
  using value_type = IValue;
};
template <class Policy>
struct NamedPolicy {
  using value_type =
      std::conditional_t<std::is_same_v<typename Policy::value_type, Tensor>, NamedTensor,
                         std::conditional_t<std::is_same_v<typename Policy::value_type, Module>,
                                            NamedModule, NamedValue>>;
};
}  // namespace detail
template <class Policy>
using slot_list_impl = std::vector<typename Policy::value_type>;
template <class Policy>
using slot_iterator_impl = typename slot_list_impl<Policy>::const_iterator;
using parameter_list = slot_list_impl<detail::ParameterPolicy>;
using buffer_list = slot_list_impl<detail::BufferPolicy>;
using module_list = slot_list_impl<detail::ModulePolicy>;
using named_parameter_list = slot_list_impl<detail::NamedPolicy<detail::ParameterPolicy>>;
using named_buffer_list = slot_list_impl<detail::NamedPolicy<detail::BufferPolicy>>;
using named_module_list = slot_list_impl<detail::NamedPolicy<detail::ModulePolicy>>;
using named_attribute_list = slot_list_impl<detail::NamedPolicy<detail::AttributePolicy>>;

// Functions that are compiled from text, which may call each other, and ops as torch.NAME.
class RL_API CompilationUnit {
 public:
  CompilationUnit();
  void define(const std::string& source);
  graph::Function* find_function(const std::string& name) const;  // null where there is none
  graph::Function& get_function(const std::string& name) const;   // RuntimeError instead
  std::vector<graph::Function*> get_functions() const;
  IValue call(const std::string& name, std::vector<IValue> arguments) const;
  template <class... A>
  IValue run_method(const std::string& name, A&&... arguments) const {
    return call(name, {IValue(std::forward<A>(arguments))...});
  }

 private:
  std::shared_ptr<graph::CompilationUnit> unit_;
};
RL_API std::shared_ptr<CompilationUnit> compile(const std::string& source);

// A module from an archive, on `device` or where it was saved. Nothing in a file runs before a
// method is called. RuntimeError where it is no archive, is damaged, or needs what the language
// lacks. `extra_files`: names to look for, which get their contents.
RL_API Module load(const std::string& path, std::optional<Device> device,
                   ExtraFilesMap& extra_files);
RL_API Module load(std::istream& stream, std::optional<Device> device, ExtraFilesMap& extra_files);
RL_API Module load(const std::string& path, std::optional<Device> device = {},
                   bool load_debug_files = true);
RL_API Module load(std::istream& stream, std::optional<Device> device = {},
                   bool load_debug_files = true);

// A module whose attributes have become constants of its methods, which call nothing: `forward`
// and those that `preserved_attrs` names, beside attributes that stay. `optimize_numerics`: batch
// norms become part of the convolutions before them. RuntimeError in training mode.
RL_API Module freeze(const Module& module, const std::vector<std::string>& preserved_attrs = {},
                     bool optimize_numerics = true);
RL_API Module optimize_for_inference(const Module& module,
                                     const std::vector<std::string>& other_methods = {});

namespace script {
using jit::Method;
using jit::Module;
}  // namespace script

}  // namespace rushlight::jit
namespace c10 {
using rushlight::jit::QualifiedName;
}  // namespace c10
namespace torch {
using rushlight::jit::CompilationUnit;
}  // namespace torch
