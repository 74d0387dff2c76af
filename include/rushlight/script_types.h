// Types of programs by libtorch's names: shared objects of a class for each kind, which say what
// rushlight::Type (type.h) says.
#pragma once

#include <rushlight/dtype.h>
#include <rushlight/type.h>

namespace rushlight {

class FunctionSchema;
namespace graph {
class Function;
}  // namespace graph

namespace script_types {

#define C10_FORALL_TYPES(_)                                                                        \
  _(AnyType)                                                                                       \
  _(TensorType)                                                                                    \
  _(IntType)                                                                                       \
  _(FloatType) _(ComplexType) _(BoolType) _(NumberType) _(StringType) _(ScalarTypeType)            \
      _(LayoutType) _(MemoryFormatType) _(DeviceObjType) _(GeneratorType) _(NoneType)              \
          _(StorageType) _(StreamObjType) _(FunctionType) _(ListType) _(OptionalType) _(TupleType) \
              _(DictType) _(UnionType) _(FutureType) _(AwaitType) _(RRefType) _(ClassType)         \
                  _(InterfaceType) _(EnumType) _(VarType)
enum class TypeKind {
#define RL_KIND(name) name,
  C10_FORALL_TYPES(RL_KIND)
#undef RL_KIND
};
RL_API const char* typeKindToString(TypeKind kind);

struct Type;
using TypePtr = std::shared_ptr<Type>;
// The object for a type, of the class for its kind.
RL_API TypePtr type_object(const rushlight::Type& type);
RL_API TypePtr plain_object(TypeKind kind);  // of those that are of no others: the only one

struct RL_API Type : std::enable_shared_from_this<Type> {
  Type(TypeKind kind, rushlight::Type type) : type_(std::move(type)), kind_(kind) {}
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;
  virtual ~Type();
  TypeKind kind() const { return kind_; }
  const rushlight::Type& type() const { return type_; }
  std::string str() const { return type_.str(); }
  std::string annotation_str() const { return type_.annotation(); }
  std::string repr_str() const { return annotation_str(); }
  std::vector<TypePtr> containedTypes() const;
  TypePtr containedType(size_t i) const { return containedTypes().at(i); }
  bool is_module() const;
  bool isSubtypeOf(const Type& other) const { return type_.is_subtype_of(other.type_); }
  bool isSubtypeOf(const TypePtr& other) const { return isSubtypeOf(*other); }
  bool operator==(const Type& other) const { return type_ == other.type_; }
  bool operator!=(const Type& other) const { return !(*this == other); }
  // Null where it is of another kind.
  template <class T>
  std::shared_ptr<T> cast() {
    return std::dynamic_pointer_cast<T>(shared_from_this());
  }
  template <class T>
  T* castRaw() {
    return dynamic_cast<T*>(this);
  }
  // RuntimeError instead.
  template <class T>
  std::shared_ptr<T> expect() {
    auto out = cast<T>();
    RL_CHECK(out != nullptr, "expected a ", typeKindToString(T::Kind), ", got ", str());
    return out;
  }

 private:
  rushlight::Type type_;
  TypeKind kind_;
};

// A type that is of no others: there is one object of it.
template <TypeKind of>
struct PlainType : Type {
  static constexpr TypeKind Kind = of;
  using Type::Type;
  static std::shared_ptr<PlainType> get() {
    return std::static_pointer_cast<PlainType>(plain_object(of));
  }
};
using AnyType = PlainType<TypeKind::AnyType>;
using IntType = PlainType<TypeKind::IntType>;
using FloatType = PlainType<TypeKind::FloatType>;
using ComplexType = PlainType<TypeKind::ComplexType>;
using BoolType = PlainType<TypeKind::BoolType>;
using NumberType = PlainType<TypeKind::NumberType>;
using StringType = PlainType<TypeKind::StringType>;
using ScalarTypeType = PlainType<TypeKind::ScalarTypeType>;
using LayoutType = PlainType<TypeKind::LayoutType>;
using MemoryFormatType = PlainType<TypeKind::MemoryFormatType>;
using DeviceObjType = PlainType<TypeKind::DeviceObjType>;
using GeneratorType = PlainType<TypeKind::GeneratorType>;
using NoneType = PlainType<TypeKind::NoneType>;
using StorageType = PlainType<TypeKind::StorageType>;
using StreamObjType = PlainType<TypeKind::StreamObjType>;
using FunctionType = PlainType<TypeKind::FunctionType>;
// Types of programs say nothing of dtypes and sizes.
struct VaryingShape {
  std::optional<size_t> size() const { return std::nullopt; }
  std::optional<std::vector<int64_t>> concrete_sizes() const { return std::nullopt; }
};
struct TensorType : PlainType<TypeKind::TensorType> {
  using PlainType::PlainType;
  static std::shared_ptr<TensorType> get() {
    return std::static_pointer_cast<TensorType>(plain_object(Kind));
  }
  std::optional<ScalarType> scalarType() const { return std::nullopt; }
  std::optional<size_t> dim() const { return std::nullopt; }
  std::optional<bool> requiresGrad() const { return std::nullopt; }
  VaryingShape sizes() const { return {}; }
  VaryingShape strides() const { return {}; }
};

// A type that is of others, or of a definition.
template <TypeKind of>
struct CompoundType : Type {
  static constexpr TypeKind Kind = of;
  explicit CompoundType(rushlight::Type type) : Type(of, std::move(type)) {}
  TypePtr getElementType() const { return containedType(0); }
  TypePtr getKeyType() const { return containedType(0); }
  TypePtr getValueType() const { return containedType(1); }
  std::vector<TypePtr> elements() const { return containedTypes(); }
};
struct ListType : CompoundType<TypeKind::ListType> {
  using CompoundType::CompoundType;
  RL_API static std::shared_ptr<ListType> create(const TypePtr& item);
  static std::shared_ptr<ListType> ofTensors() { return create(TensorType::get()); }
  static std::shared_ptr<ListType> ofInts() { return create(IntType::get()); }
  static std::shared_ptr<ListType> ofFloats() { return create(FloatType::get()); }
  static std::shared_ptr<ListType> ofBools() { return create(BoolType::get()); }
  static std::shared_ptr<ListType> ofStrings() { return create(StringType::get()); }
};
struct OptionalType : CompoundType<TypeKind::OptionalType> {
  using CompoundType::CompoundType;
  RL_API static std::shared_ptr<OptionalType> create(const TypePtr& item);
};
struct TupleType : CompoundType<TypeKind::TupleType> {
  using CompoundType::CompoundType;
  RL_API static std::shared_ptr<TupleType> create(const std::vector<TypePtr>& items);
};
struct DictType : CompoundType<TypeKind::DictType> {
  using CompoundType::CompoundType;
  RL_API static std::shared_ptr<DictType> create(const TypePtr& key, const TypePtr& value);
};
struct RL_API ClassType : CompoundType<TypeKind::ClassType> {
  using CompoundType::CompoundType;
  std::string qualified_name() const;
  size_t numAttributes() const;
  bool hasAttribute(const std::string& name) const;
  TypePtr getAttribute(const std::string& name) const;  // RuntimeError where there is none
  graph::Function* findMethod(const std::string& name) const;
  graph::Function& getMethod(const std::string& name) const;
  const std::vector<graph::Function*>& methods() const;
  void addMethod(graph::Function* method) const;  // RuntimeError where it has one of that name
};
using TensorTypePtr = std::shared_ptr<TensorType>;
using ListTypePtr = std::shared_ptr<ListType>;
using ClassTypePtr = std::shared_ptr<ClassType>;

}  // namespace script_types
}  // namespace rushlight

// Those that rushlight has no names of its own for are TorchScript's, too.
#define RL_TYPE_NAMES(F)                                                                           \
  F(TypePtr)                                                                                       \
  F(TypeKind)                                                                                      \
  F(typeKindToString)                                                                              \
  F(AnyType) F(TensorType) F(IntType) F(FloatType) F(ComplexType) F(BoolType) F(NumberType)        \
      F(StringType) F(ScalarTypeType) F(LayoutType) F(MemoryFormatType) F(DeviceObjType)           \
          F(GeneratorType) F(NoneType) F(StorageType) F(StreamObjType) F(FunctionType) F(ListType) \
              F(OptionalType) F(TupleType) F(DictType) F(TensorTypePtr) F(ListTypePtr)             \
                  F(ClassTypePtr)
#define RL_USE(name) using rushlight::script_types::name;
namespace c10 {
RL_USE(Type)
RL_USE(ClassType)
RL_TYPE_NAMES(RL_USE)
}  // namespace c10
namespace rushlight::jit {
RL_TYPE_NAMES(RL_USE)
}  // namespace rushlight::jit
#undef RL_USE
#undef RL_TYPE_NAMES
