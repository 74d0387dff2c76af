// The objects of an archive: what its pickles would build, built of data alone.
#include <rushlight/custom_class.h>

#include "script/archive_code.h"
#include "script/import.h"
#include "serialize/pickled_tensors.h"

namespace rushlight::script {

using namespace serialize;
using Kind = PickleNode::Kind;

namespace {

class Objects {
 public:
  Objects(CheckpointReader& reader, const Pickle& pickle, const std::string& folder,
          ArchiveCode& code, graph::CompilationUnit& unit, std::optional<Device> device)
      : pickle_(pickle),
        tensors_(reader, pickle, folder),
        code_(code),
        unit_(unit),
        device_(device),
        values_(pickle.nodes.size()) {}

  ArchiveObjects run() {
    const auto make = [&](uint32_t id) { values_[id] = make_value(tensors_.node(id)); };
    pickle_.replay(make, [&](const PickleStep& step) {
      switch (step.kind) {
        case PickleStep::Kind::Append:
          append(step);
          break;
        case PickleStep::Kind::SetItems:
          set_items(step);
          break;
        case PickleStep::Kind::Build:
          build(step);
          break;
        case PickleStep::Kind::Add:
          throw UnpicklingError("an archive holds no sets");
      }
    });
    out_.root = values_[pickle_.root];
    return std::move(out_);
  }

 private:
  const IValue& item(uint32_t first, uint32_t i) const { return values_[pickle_.items[first + i]]; }

  IValue make_value(const PickleNode& n) {
    switch (n.kind) {
      case Kind::Bool:
        return n.value.i != 0;
      case Kind::Int:
        return n.value.i;
      case Kind::Float:
        return n.value.d;
      case Kind::String:
      case Kind::OldString:
        return std::string(n.bytes());
      case Kind::List:
        return IValue::list(IValue::Items());
      case Kind::Dict:
        return IValue::dict(make_intrusive<ivalue::DictItems>());
      case Kind::Tuple: {
        IValue::Items items;
        for (uint32_t i = 0; i < n.value.items.count; i++) {
          items.push_back(item(n.value.items.first, i));
        }
        return IValue::tuple(std::move(items));
      }
      case Kind::Call:
        return function_name(n);
      case Kind::New:
        return bound_class(n) != nullptr ? IValue()  // `build` makes it
                                         : created(class_of(tensors_.function_name(n)));
      case Kind::None:
      case Kind::Global:      // mentioned by what calls it
      case Kind::Persistent:  // the same
        return {};
      default:
        throw UnpicklingError("an archive holds what is no value of TorchScript");
    }
  }

  // Each attribute of an object is named where the object gets its state, so that a file has as
  // many bytes for it.
  IValue created(ClassType& type) {
    slots_ += type.attributes.size();
    if (slots_ > pickle_.end + slots_anyway) {
      throw UnpicklingError("an archive makes more objects than it has values for");
    }
    return unit_.create(type)->value();
  }

  // The C++ class of which an object is made; null of classes of the archive.
  const library::ClassRecord* bound_class(const PickleNode& n) const {
    std::string name(tensors_.function_name(n));
    name[name.find('\n')] = '.';
    return name.starts_with("__torch__.torch.classes.") ? library::find_class(name) : nullptr;
  }

  static IValue restored(const library::ClassRecord& type, const IValue& state) {
    for (const std::shared_ptr<const library::Method>& method : type.methods) {
      if (method->name == "__setstate__") {
        Stack stack = {state};
        (*method->kernel.function)(nullptr, stack);
        return stack.at(0);
      }
    }
    throw UnpicklingError(str("an archive holds an object of ", type.name,
                              ", which cannot be restored: it has no __setstate__"));
  }

  // "module\nname" as a class of the archive.
  ClassType& class_of(std::string_view global) {
    std::string name(global);
    name[name.find('\n')] = '.';
    if (!name.starts_with("__torch__.")) {
      throw UnpicklingError(
          str("an archive holds an object of ", name, ", which is no class of it"));
    }
    return code_.class_named(name);
  }

  IValue function_name(const PickleNode& n) {
    const std::string_view function = tensors_.function_name(n);
    if (function.starts_with("torch._utils\n_rebuild_")) {
      Tensor tensor = function.ends_with("_rebuild_qtensor") ? quantized(n) : tensors_.tensor(n);
      if (!device_) {
        return tensor;
      }
      const bool wants_gradient = tensor.requires_grad();
      Tensor moved = tensor.detach().to(*device_);
      return wants_gradient ? moved.requires_grad_() : moved;
    }
    if (function == "collections\nOrderedDict") {
      return IValue::dict(make_intrusive<ivalue::DictItems>());
    }
    if (function.starts_with("__torch__")) {
      return make_of_class(n, class_of(function));
    }
    const PickleNode& arguments = tensors_.item(n, 1);
    tensors_.item(arguments, 0);  // it has one
    const IValue& first = item(arguments.value.items.first, 0);
    if (function.starts_with("torch.jit._pickle\n")) {  // a list or dict with its type
      return first;
    }
    if (function == "torch\ndevice") {
      return Device(first.toStringRef());
    }
    if (function == "builtins\ncomplex" && arguments.value.items.count == 2) {
      const IValue& imaginary = item(arguments.value.items.first, 1);
      return Scalar(complex<double>(first.toDouble(), imaginary.toDouble()));
    }
    std::string name(function);
    name[name.find('\n')] = '.';
    throw UnpicklingError(str("an archive calls ", name, ", which is not known"));
  }

  // Codes and what they mean: (scheme, scale, zero point), and of channels the dimension. A library
  // has the ops that make such tensors.
  Tensor quantized(const PickleNode& n) {
    const PickleNode& means = tensors_.item(tensors_.item(n, 1), 4);
    std::vector<rushlight::Value> arguments = {rushlight::Value(tensors_.codes(n))};
    tensors_.item(means, 2);  // it has three parts
    for (uint32_t i = 1; i < means.value.items.count; i++) {
      arguments.push_back(item(means.value.items.first, i));
    }
    const OpInfo* const op =
        find_op_named(arguments.size() == 3 ? "aten::_make_per_tensor_quantized_tensor"
                                            : "aten::_make_per_channel_quantized_tensor");
    RL_CHECK_NOT_IMPLEMENTED(op != nullptr, "quantized tensors are loaded by Python alone");
    if (arguments.size() != op->arguments.size()) {
      throw UnpicklingError("a quantized tensor has other parts than its kind");
    }
    return call(*op, arguments).at(0).get<Tensor>();
  }

  // A member of an enum by its value, a named tuple by its parts.
  IValue make_of_class(const PickleNode& n, ClassType& type) {
    const IValue& given = item(n.value.items.first, 1);
    if (type.form == ClassType::Form::NamedTuple && given.isTuple()) {
      return given;
    }
    if (type.form == ClassType::Form::Enum) {
      for (const ClassType::Named& member : type.constants) {
        if (equal(object_of(member.second)->slots.at(1), given)) {
          return member.second;
        }
      }
    }
    throw UnpicklingError(str("an archive makes an object of ", type.name, " in no known way"));
  }

  static bool equal(const IValue& a, const IValue& b) {
    if (a.isString() || b.isString()) {
      return a.isString() && b.isString() && a.toStringRef() == b.toStringRef();
    }
    if (!a.isScalar() || !b.isScalar()) {
      return false;
    }
    return a.toScalar().to<double>() == b.toScalar().to<double>();
  }

  void append(const PickleStep& step) {
    IValue::Items& items = values_[step.node].items();
    for (uint32_t i = 0; i < step.count; i++) {
      items.push_back(item(step.first, i));
    }
  }

  void set_items(const PickleStep& step) {
    const auto& items = values_[step.node].dict_items();
    for (uint32_t i = 0; i + 1 < step.count; i += 2) {
      items->insert(item(step.first, i), item(step.first, i + 1), true);
    }
  }

  void build(const PickleStep& step) {
    const PickleNode& node = tensors_.node(step.node);
    if (node.kind == Kind::New) {
      if (const library::ClassRecord* const type = bound_class(node)) {
        values_[step.node] = restored(*type, item(step.first, 0));
        return;
      }
    }
    Object* const object = object_of(values_[step.node]);
    if (object == nullptr) {
      return;  // of an OrderedDict: its attributes
    }
    const IValue& state = item(step.first, 0);
    if (object->type->find_method("__setstate__") != nullptr) {
      out_.restore.emplace_back(intrusive_ptr<Object>(object), state);
      return;
    }
    for (const auto& [name, value] : state.dict_items()->pairs) {
      const std::string& attribute = name.toStringRef();
      const size_t place = object->type->find_attribute(attribute);
      if (place == ClassType::npos) {
        throw UnpicklingError(str("an object of ", object->type->name, " has a value for '",
                                  attribute, "', which its class lacks"));
      }
      const Type& type = object->type->attributes[place].type;
      if (!shallow_fits(value, type)) {
        throw UnpicklingError(str("the attribute '", attribute, "' of ", object->type->name,
                                  " is a ", type.annotation(), ", and the file holds another"));
      }
      object->slots[place] = value;
    }
  }

  // Whether the outermost layer of a value is of a type: what is in lists and dicts may be filled
  // later.
  static bool shallow_fits(const IValue& value, const Type& type) {
    switch (type.kind) {
      case Type::Kind::List:
        return value.isList();
      case Type::Kind::Dict:
        return value.isGenericDict();
      case Type::Kind::Tuple:
      case Type::Kind::NamedTuple:
        return value.isTuple() && value.items().size() == type.of.size();
      case Type::Kind::Optional:
      case Type::Kind::Union:
        for (const Type& member : type.members()) {
          if (shallow_fits(value, member)) {
            return true;
          }
        }
        return false;
      case Type::Kind::Interface:
        return object_of(value) != nullptr;
      case Type::Kind::Tensor:
        return value.isTensor() || value.isNone();
      default:
        return is_of(value, type);
    }
  }

  static constexpr size_t slots_anyway = 10000;

  const Pickle& pickle_;
  size_t slots_ = 0;  // of all objects that have been made
  PickledTensors tensors_;
  ArchiveCode& code_;
  graph::CompilationUnit& unit_;
  std::optional<Device> device_;
  std::vector<IValue> values_;
  ArchiveObjects out_;
};

}  // namespace

ArchiveObjects read_objects(CheckpointReader& reader, const std::string& record,
                            const std::string& folder, ArchiveCode& code,
                            graph::CompilationUnit& unit, std::optional<Device> device) {
  const std::string bytes = reader.record(record);
  const Pickle pickle = read_pickle(bytes);
  return Objects(reader, pickle, folder, code, unit, device).run();
}

}  // namespace rushlight::script
