// What the ops are called and take, as data: the generator writes it for every overload of aten's,
// and a library makes it for the ops that it defines (library.h). Whoever needs to know an op's
// arguments (printing, boxed calls, modes, graphs, Python) reads this.
#pragma once

#include <rushlight/value.h>

namespace rushlight {

struct Type;

enum class BaseType : uint8_t {
  Tensor,
  Scalar,
  Int,
  Float,
  Bool,
  String,
  ScalarType,
  Device,
  Layout,
  MemoryFormat,
  Generator,
  Options,  // of C++ functions; overloads have dtype, layout, device and pin_memory instead
  Other,    // of libraries' ops: what TypeInfo::of says
};

// What a value is for, where rules have to know it.
enum class Meaning : uint8_t {
  Any,
  Dim,    // an integer that counts dimensions
  Size,   // an integer that is a size of a tensor
  Count,  // a tensor that counts steps
};

struct TypeInfo {
  BaseType base = BaseType::Tensor;
  bool is_list = false;
  bool optional = false;
  bool element_optional = false;  // Tensor?[]
  bool number = false;            // of C++ functions: a tensor or a number on its way into one
  bool written = false;           // Tensor(a!)
  char alias = 0;                 // 'a' of Tensor(a) and Tensor(a!); 0: shares no memory
  uint8_t size = 0;               // of int[2], where one int stands for equal ones; 0: any
  Meaning meaning = Meaning::Any;
  const Type* of = nullptr;  // of Other: the whole type
};

struct DefaultInfo {
  enum Kind : uint8_t { Required, None, Bool, Int, Float, String, List, Boxed };
  Kind kind = Required;
  uint8_t count = 0;     // of a list
  int64_t ints[2] = {};  // an integer, a bool, an enumerator; the items of a list
  double number = 0;
  const char* text = nullptr;
  const Value* value = nullptr;  // of Boxed
};

struct ResultInfo {
  const char* name;  // may be ""
  TypeInfo type = {};
};

struct ArgInfo {
  const char* name;
  TypeInfo type = {};
  DefaultInfo fallback = {};  // where it is not passed
  bool keyword_only = false;
};

struct OpInfo;

// What autocast does with floating-point arguments of an op, but for float64 (autocast.h).
namespace autocast {
enum class Rule : uint8_t {
  None,     // takes them as they are
  Lower,    // casts them to the dtype of the autocast
  Float32,  // casts them to float32
  Promote,  // casts them to the widest among them
  Refused,  // raises
};
struct Rules {
  Rule cpu = Rule::None;
  Rule accelerator = Rule::None;
};
}  // namespace autocast

// How vmap carries out an op whose arguments have a batch dimension (docs/adding-an-op.md says what
// the words mean, src/ops/batching.cpp carries them out).
namespace batching {
enum class Kind : uint8_t {
  View,
  Aligned,
  Leading,
  Dims,
  Fold,
  Random,
  RandomLike,
  Formula,
  Slices,
  Refused,
  Matrices
};
// The compiled expression of a rule. Tensors have a batch dimension in front, of size 1 where they
// lack one, and dimensions are counted behind it; so have results.
using Formula = std::vector<Value> (*)(const std::vector<Value>& arguments, int64_t batch);
struct Rule {
  Kind kind;
  uint64_t covers;  // a bit for each argument of the function that may have a batch
  Formula formula = nullptr;
  const char* reason = nullptr;  // of a refusal
};
}  // namespace batching

// What a function does with sparse tensors: `call` takes the arguments of its functional form, with
// modes and recording, and returns its results.
struct SparseRule {
  // Where sparse tensors are looked for: below autograd; above it where a gradient is recorded, for
  // the rule is written over other ops and records itself; or above it always (composites).
  enum class Where : uint8_t { Below, Recorded, Above };
  std::vector<Value> (*call)(const std::vector<Value>& arguments) = nullptr;
  Where where = Where::Below;
  bool on_values = false;  // called with the values in the place of the sparse tensor
};

// What a function does where arguments have tangents (forward.h): `call` is the function itself,
// with tangents, for those that may matter, a bit each.
struct TangentRule {
  std::vector<Value> (*call)(const std::vector<Value>& arguments) = nullptr;
  uint64_t carriers = 0;
};

// What runs: a generated C++ function, or what a library has registered. It may stand for several
// overloads, which name some of its arguments and leave the rest at their defaults.
struct OpFunction {
  // Through modes, autograd, all. `self` is this function.
  std::vector<Value> (*run)(const OpFunction& self, const std::vector<Value>& arguments);
  ArrayRef<OpInfo> overloads;  // at least one
  autocast::Rules autocast = {};
  ArrayRef<batching::Rule> batch = {};     // the first that covers what has a batch holds
  const OpFunction* functional = nullptr;  // of a form that writes to given tensors
  SparseRule sparse = {};                  // no call: sparse tensors are refused
  TangentRule tangent = {};                // no call: what it is made of has rules, or it refuses
  // What Python code that looks at ops is shown in its place (`shown=` of entries), below autograd
  // (modes, classes with __torch_dispatch__) and above it (a trace); null: the op itself.
  std::vector<Value> (*parts)(const std::vector<Value>& arguments) = nullptr;
  std::vector<Value> (*traced)(const std::vector<Value>& arguments) = nullptr;
  bool composed = false;  // of other ops, which levels below autograd see in its place

  std::vector<Value> call(const std::vector<Value>& arguments) const {
    return run(*this, arguments);
  }
  inline ArrayRef<ArgInfo> arguments() const;  // its own, in its own order
};

// What is true of an op, by PyTorch's names (torch.Tag); an overload has a set of them.
enum class Tag : uint8_t {
  core,
  cudagraph_unsafe,
  data_dependent_output,
  dynamic_output_shape,
  flexible_layout,
  generated,
  inplace,
  inplace_view,
  maybe_aliasing_or_mutating,
  needs_contiguous_strides,
  needs_exact_strides,
  needs_fixed_stride_order,
  nondeterministic_bitwise,
  nondeterministic_seeded,
  out,
  out_variant,
  pointwise,
  pt2_compliant_tag,
  reduction,
  view_copy,
};
constexpr uint32_t bit_of(Tag tag) { return uint32_t{1} << static_cast<int>(tag); }

// An overload: a row of the registry.
struct OpInfo {
  const char* space;     // "aten", or "rushlight" for what aten lacks
  const char* name;      // "add", "add_"
  const char* overload;  // "Tensor", or ""
  ArrayRef<ArgInfo> arguments;
  ArrayRef<ResultInfo> results;
  const OpFunction* function;
  ArrayRef<ArgInfo> of_function;  // the arguments of the function
  // Which of the function's arguments each is: several are one of type Options, and -1 is one that
  // the function lacks, which may only say what holds anyway. Null: the same ones in their order.
  const int8_t* places;
  uint32_t tags;               // bit_of each
  const char* text = nullptr;  // of a library's op: the schema as it was written

  bool has_tag(Tag tag) const { return (tags & bit_of(tag)) != 0; }
  bool is_view() const;     // a result shares memory with an argument that is not written
  bool is_mutable() const;  // an argument is written
};
ArrayRef<ArgInfo> OpFunction::arguments() const { return overloads[0].of_function; }

// Those of the table, by name; overloads in order of preference.
RL_API ArrayRef<const OpInfo*> all_ops();
// Of the table; null where there is none; without `overload` the first.
RL_API const OpInfo* find_op(std::string_view name, std::optional<std::string_view> overload = {});
// All overloads of a name of the table, in order of preference.
RL_API ArrayRef<const OpInfo*> find_overloads(std::string_view name);

// The table's ops and those of libraries, by whole names: "aten::add.Tensor", "mine::op"; null
// where there is none.
RL_API const OpInfo* find_op_named(std::string_view full_name);
// All overloads of "space::name", in order of preference.
RL_API std::vector<const OpInfo*> overloads_named(std::string_view qualified_name);
RL_API std::vector<std::string> names_of_library_ops();  // "space::name"
// Ops by number: first those of the table. A number stays that op's.
RL_API size_t number_of_op(const OpInfo& op);
RL_API const OpInfo* op_of_number(size_t number);  // null where there is none
// What a library defines, and takes back: it is not found any more, and stays where it is.
RL_API void add_op(const OpInfo& op);
RL_API void remove_op(const OpInfo& op);

RL_API std::string type_text(const TypeInfo& type);
RL_API std::string schema_text(const OpInfo& op);  // "aten::add.Tensor(Tensor self, …) -> Tensor"
// The value of an argument that is not passed; RuntimeError where it must be.
RL_API Value default_value(const ArgInfo& argument);
// Whether a value is that of the default.
RL_API bool is_default(const ArgInfo& argument, const Value& value);

// Checks the number of arguments, then calls.
RL_API std::vector<Value> call(const OpInfo& op, const std::vector<Value>& arguments);
// Of the overloads of a function, the first that can say a call of it; its arguments.
RL_API const OpInfo& overload_of(const OpFunction& function, const std::vector<Value>& arguments);
RL_API std::vector<Value> arguments_of(const OpInfo& op, std::vector<Value> of_function);

}  // namespace rushlight
