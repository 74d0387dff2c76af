// Types of programs by libtorch's names, and what values say of theirs.
#include <rushlight/script_types.h>

#include <array>

#include <rushlight/graph_function.h>

namespace rushlight {
namespace script_types {
namespace {

using Plain = rushlight::Type;
struct Row {
  TypeKind kind;
  const char* name;
  Plain::Kind of;
  TypePtr (*make)(const Plain& type);
};

template <class T>
TypePtr make_plain(const Plain& type) {
  static const auto& only = *new TypePtr(std::make_shared<T>(T::Kind, type));
  return only;
}
template <class T>
TypePtr make_compound(const Plain& type) {
  return std::make_shared<T>(type);
}
#define RL_PLAIN(name, of) {TypeKind::name, #name, Plain::Kind::of, make_plain<name>}
#define RL_COMPOUND(name, of) {TypeKind::name, #name, Plain::Kind::of, make_compound<name>}
#define RL_OTHER(name, of) \
  {TypeKind::name, #name, Plain::Kind::of, make_compound<CompoundType<TypeKind::name>>}
// In the order of TypeKind.
constexpr std::array rows = {
    Row RL_PLAIN(AnyType, Any),
    Row RL_PLAIN(TensorType, Tensor),
    Row RL_PLAIN(IntType, Int),
    Row RL_PLAIN(FloatType, Float),
    Row RL_PLAIN(ComplexType, Complex),
    Row RL_PLAIN(BoolType, Bool),
    Row RL_PLAIN(NumberType, Scalar),
    Row RL_PLAIN(StringType, String),
    Row RL_PLAIN(ScalarTypeType, ScalarType),
    Row RL_PLAIN(LayoutType, Layout),
    Row RL_PLAIN(MemoryFormatType, MemoryFormat),
    Row RL_PLAIN(DeviceObjType, Device),
    Row RL_PLAIN(GeneratorType, Generator),
    Row RL_PLAIN(NoneType, None),
    Row RL_PLAIN(StorageType, Storage),
    Row RL_PLAIN(StreamObjType, Stream),
    Row RL_PLAIN(FunctionType, Function),
    Row RL_COMPOUND(ListType, List),
    Row RL_COMPOUND(OptionalType, Optional),
    Row RL_COMPOUND(TupleType, Tuple),
    Row RL_COMPOUND(DictType, Dict),
    Row RL_OTHER(UnionType, Union),
    Row RL_OTHER(FutureType, Future),
    Row RL_OTHER(AwaitType, Await),
    Row RL_OTHER(RRefType, RRef),
    Row RL_COMPOUND(ClassType, Class),
    Row RL_OTHER(InterfaceType, Interface),
    Row RL_OTHER(EnumType, Enum),
    Row RL_OTHER(VarType, Variable),
};
#undef RL_PLAIN
#undef RL_COMPOUND
#undef RL_OTHER

std::vector<Plain> plain_types(const std::vector<TypePtr>& types) {
  std::vector<Plain> out;
  for (const TypePtr& type : types) {
    out.push_back(type->type());
  }
  return out;
}

}  // namespace

const char* typeKindToString(TypeKind kind) { return rows[static_cast<size_t>(kind)].name; }
TypePtr plain_object(TypeKind kind) {
  const Row& row = rows[static_cast<size_t>(kind)];
  return row.make({row.of});
}

TypePtr type_object(const rushlight::Type& type) {
  // A tuple with names is a tuple; an object of a class of C++ is one of a class.
  const Plain::Kind kind = type.kind == Plain::Kind::NamedTuple ? Plain::Kind::Tuple
                           : type.kind == Plain::Kind::Object   ? Plain::Kind::Class
                                                                : type.kind;
  for (const Row& row : rows) {
    if (row.of == kind) {
      return row.make(type);
    }
  }
  return AnyType::get();
}

Type::~Type() = default;
std::vector<TypePtr> Type::containedTypes() const {
  std::vector<TypePtr> out;
  for (const Plain& type : type_.of) {
    out.push_back(type_object(type));
  }
  return out;
}
bool Type::is_module() const {
  return type_.definition != nullptr &&
         type_.definition->form == rushlight::ClassType::Form::Module;
}

std::shared_ptr<ListType> ListType::create(const TypePtr& item) {
  return std::make_shared<ListType>(Plain::list(item->type()));
}
std::shared_ptr<OptionalType> OptionalType::create(const TypePtr& item) {
  return std::make_shared<OptionalType>(Plain::optional(item->type()));
}
std::shared_ptr<TupleType> TupleType::create(const std::vector<TypePtr>& items) {
  return std::make_shared<TupleType>(Plain::tuple(plain_types(items)));
}
std::shared_ptr<DictType> DictType::create(const TypePtr& key, const TypePtr& value) {
  return std::make_shared<DictType>(Plain::dict(key->type(), value->type()));
}

namespace {
const rushlight::ClassType& definition_of(const ClassType& type) {
  RL_CHECK(type.type().definition != nullptr, type.str(),
           " is a class of C++: nothing more is known of it");
  return *type.type().definition;
}
}  // namespace

std::string ClassType::qualified_name() const {
  return type().definition != nullptr ? type().definition->name : type().name;
}
size_t ClassType::numAttributes() const { return definition_of(*this).attributes.size(); }
bool ClassType::hasAttribute(const std::string& name) const {
  return definition_of(*this).find_attribute(name) != rushlight::ClassType::npos;
}
TypePtr ClassType::getAttribute(const std::string& name) const {
  const rushlight::ClassType& definition = definition_of(*this);
  const size_t place = definition.find_attribute(name);
  RL_CHECK(place != rushlight::ClassType::npos, definition.name, " has no attribute '", name, "'");
  return type_object(definition.attributes[place].type);
}
graph::Function* ClassType::findMethod(const std::string& name) const {
  return definition_of(*this).find_method(name);
}
graph::Function& ClassType::getMethod(const std::string& name) const {
  graph::Function* const found = findMethod(name);
  RL_CHECK(found != nullptr, "Couldn't find method: '", name, "' on class: ", str());
  return *found;
}
const std::vector<graph::Function*>& ClassType::methods() const {
  return definition_of(*this).methods;
}
void ClassType::addMethod(graph::Function* method) const {
  RL_CHECK(method != nullptr, "addMethod: expected a function, got null");
  RL_CHECK(findMethod(method->base_name()) == nullptr, str(), " has a method '",
           method->base_name(), "' already");
  type().definition->add_method(*method);
}

}  // namespace script_types

std::shared_ptr<script_types::Type> Value::type() const {
  return script_types::type_object(type_of(*this));
}
bool Value::isModule() const {
  const Object* const object = object_of(*this);
  return object != nullptr && object->type->form == ClassType::Form::Module;
}
bool Value::isEnum() const {
  const Object* const object = object_of(*this);
  return object != nullptr && object->type->form == ClassType::Form::Enum;
}

}  // namespace rushlight
