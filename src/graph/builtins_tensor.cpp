// What programs ask of tensors, tensors made of numbers, and functions of the whole program.
#include <rushlight/autocast.h>
#include <rushlight/autograd.h>
#include <rushlight/libtorch.h>
#include <rushlight/ops.h>

#include "graph/builtins.h"

namespace rushlight::graph {

namespace {

// Of tensors by identity, of tuples by their items, of other values by their text.
int64_t hash_of(const IValue& value) {
  RL_CHECK_TYPE(!value.isList() && !value.isGenericDict(), "unhashable type: '",
                value.isList() ? "list" : "dict", "'");
  if (value.isTensor()) {
    return static_cast<int64_t>(std::hash<const void*>()(value.toTensor().impl()) >> 1);
  }
  if (value.isTuple()) {
    uint64_t out = items_of(value).size();
    for (const IValue& item : items_of(value)) {
      out = out * 1000003 + static_cast<uint64_t>(hash_of(item));
    }
    return static_cast<int64_t>(out >> 1);
  }
  return static_cast<int64_t>(std::hash<std::string>()(type_of(value).str() + text_of(value)) >> 1);
}

IValue sizes_value(IntArrayRef sizes) {
  IValue::Items out;
  for (const int64_t size : sizes) {
    out.push_back(IValue(size));
  }
  return list_value(std::move(out));
}

// ---- numbers of tensors ----

template <class T>
T number_in(Tensor t) {
  RL_CHECK(t.numel() == 1, "a Tensor with ", t.numel(),
           " elements cannot be converted to a number");
  return t.item().as<T>();
}
Scalar scalar_in(Tensor t) { return t.item(); }
Scalar complex_in(Tensor real, Scalar imaginary) {
  return complex<double>(number_in<double>(real), imaginary.as<double>());
}
Scalar complex_beside(Scalar real, Tensor imaginary) {
  return complex<double>(real.as<double>(), number_in<double>(imaginary));
}
// Where a program takes a tensor for a number without saying so.
template <class T>
T implicit(Tensor t) {
  RL_CHECK(t.dim() == 0, "a tensor with ", t.dim(), " dimensions was used as a number; it needs 0");
  RL_CHECK(!t.requires_grad(), "a tensor that requires a gradient was used as a number");
  return t.item().as<T>();
}
Scalar implicit_scalar(Tensor t) {
  implicit<double>(t);
  return t.item();
}
bool holds(const IValue& number) {
  return number.isBool() ? number.toBool() : number.toScalar().to<double>() != 0;
}
Tensor number_to_tensor(Scalar number) { return scalar_tensor(number, number.dtype()); }

// ---- tensors of numbers ----

// The numbers of nested lists, with the sizes that they agree on.
struct Nested {
  DimVector sizes;
  std::vector<Scalar> numbers;

  void add(const IValue& value, size_t depth) {
    if (!value.isList()) {
      RL_CHECK_VALUE(depth == sizes.size(), "expected a list at depth ", depth);
      numbers.push_back(value.isTensor() ? value.toTensor().item() : value.toScalar());
      return;
    }
    const IValue::Items items = value.toListRef();
    const auto n = static_cast<int64_t>(items.size());
    if (depth == sizes.size()) {
      RL_CHECK_VALUE(numbers.empty(), "expected a number, got a list");
      sizes.push_back(n);
    }
    RL_CHECK_VALUE(sizes[depth] == n, "expected a list of ", sizes[depth], " items at depth ",
                   depth, ", got ", n);
    for (const IValue& item : items) {
      add(item, depth + 1);
    }
  }

  ScalarType dtype() const {
    ScalarType out = numbers.empty() ? get_default_dtype() : kBool;
    for (const Scalar& number : numbers) {
      const ScalarType one =
          number.is_floating_point() ? get_default_dtype()
          : number.is_complex() ? (get_default_dtype() == kFloat64 ? kComplexDouble : kComplexFloat)
                                : number.dtype();
      out = promote_types(out, one);
    }
    return out;
  }

  Tensor tensor(std::optional<ScalarType> wanted) const {
    const ScalarType type = wanted.value_or(dtype());
    Tensor out = empty({static_cast<int64_t>(numbers.size())}, TensorOptions(type));
    auto* const memory = static_cast<char*>(out.data_ptr());
    for (size_t i = 0; i < numbers.size(); i++) {
      store_scalar(memory + static_cast<int64_t>(i) * itemsize(type), type, numbers[i]);
    }
    return out.reshape(sizes);
  }
};

// tensor(data, dtype, device, requires_grad) and as_tensor(data, dtype, device).
void make_tensor(IValue* a, size_t n, IValue* out) {
  std::optional<ScalarType> dtype;
  if (!a[1].isNone()) {
    dtype = dtype_of_number(a[1].toInt());
  }
  Tensor made;
  if (a[0].isTensor()) {
    made = dtype ? a[0].toTensor().to(*dtype) : a[0].toTensor();
  } else {
    Nested data;
    data.add(a[0], 0);
    made = data.tensor(dtype);
  }
  if (!a[2].isNone()) {
    made = made.to(a[2].toDevice());
  }
  if (n > 3 && a[3].toBool()) {
    made.requires_grad_(true);
  }
  out[0] = IValue(made);
}

void append_nested(IValue& out, const Tensor& t, bool as_float) {
  if (t.dim() == 0) {
    const Scalar number = t.item();
    out = IValue(as_float ? Scalar(number.as<double>()) : number);
    return;
  }
  IValue::Items items(static_cast<size_t>(t.size(0)));
  for (size_t i = 0; i < items.size(); i++) {
    append_nested(items[i], t.select(0, static_cast<int64_t>(i)), as_float);
  }
  out = list_value(std::move(items));
}

// ---- facts ----

Tensor data_of(Tensor t) { return t.data(); }
IValue grad_of(const Tensor& t) { return t.grad().defined() ? IValue(t.grad()) : IValue(); }
Tensor reverse_dims(Tensor t) {
  DimVector dims;
  for (int64_t i = t.dim(); i > 0; i--) {
    dims.push_back(i - 1);
  }
  return t.permute(dims);
}
Tensor swap_last_two(Tensor t) {
  RL_CHECK(t.dim() >= 2 || t.dim() == 0, "mT needs at least 2 dimensions, got ", t.dim());
  return t.dim() == 0 ? t : t.transpose(-2, -1);
}
template <DeviceType type>
bool is_on(Tensor t) {
  return t.device().type() == type;
}
bool return_false(Tensor) { return false; }

// to(self, device?, dtype?, non_blocking, copy) in its three spellings.
template <bool has_device, bool has_dtype>
void to(IValue* a, size_t, IValue* out) {
  size_t next = 1;
  TensorOptions options;
  if (has_device && !a[next++].isNone()) {
    options = options.device(a[next - 1].toDevice());
  }
  if (has_dtype && !a[next++].isNone()) {
    options = options.dtype(dtype_of_number(a[next - 1].toInt()));
  }
  out[0] = IValue(a[0].toTensor().to(options, a[next].toBool(), a[next + 1].toBool()));
}

std::vector<std::optional<Tensor>> as_indices(const IValue& list) {
  std::vector<std::optional<Tensor>> out;
  for (const IValue& item : list.toListRef()) {
    out.push_back(item.toTensor());
  }
  return out;
}

void unwrap(IValue* a, size_t, IValue* out) {
  RL_CHECK(!a[0].isNone(), "Unwrapping null optional: a value that is not None was expected");
  out[0] = std::move(a[0]);
}
void return_first(IValue* a, size_t, IValue* out) { out[0] = std::move(a[0]); }

Object& enum_member(const IValue& value) {
  Object* const member = object_of(value);
  RL_CHECK(member != nullptr && member->type->form == ClassType::Form::Enum, "a ",
           type_of(value).annotation(), " was used as a member of an enum");
  return *member;
}

// a &= b and the like, by a tensor and by a number.
#define RL_IN_PLACE(name, function)                                        \
  {"aten::" name ".Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",   \
   call_of<+[](Tensor a, Tensor b) { return function(a, b); }>, false},    \
  {                                                                        \
    "aten::" name ".Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",  \
        call_of<+[](Tensor a, Scalar b) { return function(a, b); }>, false \
  }

const BuiltinRow rows[] = {
    {"aten::Int.Tensor(Tensor a) -> int", call_of<number_in<int64_t>>},
    {"aten::Float.Tensor(Tensor a) -> float", call_of<number_in<double>>},
    {"aten::Bool.Tensor(Tensor a) -> bool", call_of<number_in<bool>>},
    {"aten::IntImplicit(Tensor a) -> int", call_of<implicit<int64_t>>},
    {"aten::FloatImplicit(Tensor a) -> float", call_of<implicit<double>>},
    {"aten::ScalarImplicit(Tensor a) -> Scalar", call_of<implicit_scalar>},
    {"aten::item(Tensor self) -> Scalar", call_of<scalar_in>},
    {"aten::_assert_scalar(Scalar self, str assert_msg) -> ()",
     [](IValue* a, size_t, IValue*) { RL_CHECK(holds(a[0]), a[1].toStringRef()); }, false},
    {"prim::sym_ite(Scalar b, t t, t f) -> t",
     [](IValue* a, size_t, IValue* out) { out[0] = std::move(a[holds(a[0]) ? 1 : 2]); }},
    {"prim::NumToTensor.Scalar(Scalar a) -> Tensor", call_of<number_to_tensor>},
    {"prim::NumToTensor.bool(bool a) -> Tensor", call_of<number_to_tensor>},
    {"aten::tensor(t[] data, *, ScalarType? dtype=None, Device? device=None, bool "
     "requires_grad=False) -> Tensor",
     make_tensor},
    {"aten::as_tensor(Tensor data, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
     make_tensor},
    {"aten::as_tensor.list(t[] data, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
     make_tensor},
    {"prim::tolist(Tensor data, int dim, int type) -> Any",
     [](IValue* a, size_t, IValue* out) {
       const Tensor data = a[0].toTensor();
       RL_CHECK(data.dim() == a[1].toInt(), "the annotation of tolist() says ", a[1].toInt(),
                " dimensions, the tensor has ", data.dim());
       append_nested(out[0], data.detach().cpu(), false);
     }},

    {"aten::size(Tensor self) -> int[]",
     [](IValue* a, size_t, IValue* out) { out[0] = sizes_value(a[0].toTensor().sizes()); }},
    {"aten::size.int(Tensor self, int dim) -> int",
     call_of<+[](Tensor t, int64_t dim) { return t.size(dim); }>},
    {"aten::sym_size(Tensor self) -> int[]",
     [](IValue* a, size_t, IValue* out) { out[0] = sizes_value(a[0].toTensor().sizes()); }},
    {"aten::sym_size.int(Tensor self, int dim) -> int",
     call_of<+[](Tensor t, int64_t dim) { return t.size(dim); }>},
    {"aten::sym_numel(Tensor self) -> int", call_of<+[](Tensor t) { return t.numel(); }>},
    {"aten::stride(Tensor self) -> int[]",
     [](IValue* a, size_t, IValue* out) { out[0] = sizes_value(a[0].toTensor().strides()); }},
    {"aten::stride.int(Tensor self, int dim) -> int",
     call_of<+[](Tensor t, int64_t dim) { return t.stride(dim); }>},
    {"aten::sym_stride.int(Tensor self, int dim) -> int",
     call_of<+[](Tensor t, int64_t dim) { return t.stride(dim); }>},
    {"aten::storage_offset(Tensor self) -> int",
     call_of<+[](Tensor t) { return t.storage_offset(); }>},
    {"aten::sym_storage_offset(Tensor self) -> int",
     call_of<+[](Tensor t) { return t.storage_offset(); }>},
    {"aten::dim(Tensor self) -> int", call_of<+[](Tensor t) { return t.dim(); }>},
    {"aten::numel(Tensor self) -> int", call_of<+[](Tensor t) { return t.numel(); }>},
    {"aten::len.Tensor(Tensor t) -> int", call_of<+[](Tensor t) {
       RL_CHECK_TYPE(t.dim() > 0, "len() of a 0-d tensor");
       return t.size(0);
     }>},
    {"aten::element_size(Tensor self) -> int", call_of<+[](Tensor t) { return t.element_size(); }>},
    {"prim::itemsize(Tensor a) -> int", call_of<+[](Tensor t) { return t.element_size(); }>},
    {"prim::nbytes(Tensor a) -> int", call_of<+[](Tensor t) { return t.nbytes(); }>},
    {"aten::is_floating_point(Tensor self) -> bool",
     call_of<+[](Tensor t) { return t.is_floating_point(); }>},
    {"aten::is_complex(Tensor self) -> bool", call_of<+[](Tensor t) { return t.is_complex(); }>},
    {"aten::is_contiguous(Tensor self) -> bool",
     call_of<+[](Tensor t) { return t.is_contiguous(); }>},
    {"aten::is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool",
     call_of<+[](Tensor t, int64_t format) {
       return t.is_contiguous(memory_format_of_number(format));
     }>},
    {"aten::is_leaf(Tensor self) -> bool", call_of<+[](Tensor t) { return t.is_leaf(); }>},
    {"aten::output_nr(Tensor self) -> int", call_of<+[](Tensor t) { return t.output_nr(); }>},
    {"aten::get_device(Tensor self) -> int", call_of<+[](Tensor t) -> int64_t {
       return t.device().type() == kCPU ? -1 : t.device().index();
     }>},
    {"prim::device(Tensor a) -> Device", call_of<+[](Tensor t) { return t.device(); }>},
    {"prim::dtype(Tensor a) -> int", call_of<+[](Tensor t) { return number_of(t.dtype()); }>},
    {"prim::layout(Tensor a) -> int", call_of<+[](Tensor t) { return number_of(t.layout()); }>},
    {"prim::shape(Tensor a) -> int[]",
     [](IValue* a, size_t, IValue* out) { out[0] = sizes_value(a[0].toTensor().sizes()); }},
    {"prim::requires_grad(Tensor a) -> bool", call_of<+[](Tensor t) { return t.requires_grad(); }>},
    {"prim::data(Tensor(a) a) -> Tensor(a)", call_of<data_of>},
    {"aten::data(Tensor self) -> Tensor", call_of<data_of>},
    {"prim::grad(Tensor a) -> Tensor?",
     [](IValue* a, size_t, IValue* out) { out[0] = grad_of(a[0].toTensor()); }},
    {"prim::name(Tensor a) -> str?", [](IValue*, size_t, IValue* out) { out[0] = IValue(); }},
    {"prim::is_cpu(Tensor a) -> bool", call_of<is_on<kCPU>>},
    {"prim::is_cuda(Tensor a) -> bool", call_of<+[](Tensor t) { return t.is_cuda(); }>},
    {"prim::is_meta(Tensor a) -> bool", call_of<+[](Tensor t) { return t.is_meta(); }>},
    {"prim::is_sparse(Tensor a) -> bool", call_of<+[](Tensor t) { return t.is_sparse(); }>},
    {"prim::is_sparse_csr(Tensor a) -> bool", call_of<+[](Tensor t) { return t.is_sparse_csr(); }>},
    {"prim::is_quantized(Tensor a) -> bool", call_of<+[](Tensor t) { return t.is_quantized(); }>},
    {"aten::numpy_T(Tensor(a) self) -> Tensor(a)", call_of<reverse_dims>},
    {"aten::mT(Tensor(a) self) -> Tensor(a)", call_of<swap_last_two>},
    {"aten::requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)",
     call_of<+[](Tensor t, bool wants) {
       t.requires_grad_(wants);
       return t;
     }>,
     false},
    {"aten::backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, bool "
     "create_graph=False) -> ()",
     call_of<+[](Tensor t, std::optional<Tensor> gradient, std::optional<bool> retain,
                 bool create) { t.backward(gradient.value_or(Tensor()), retain, create); }>,
     false},
    RL_IN_PLACE("__iand__", bitwise_and_),
    RL_IN_PLACE("__ior__", bitwise_or_),
    RL_IN_PLACE("__ixor__", bitwise_xor_),
    RL_IN_PLACE("__ilshift__", bitwise_left_shift_),
    RL_IN_PLACE("__irshift__", bitwise_right_shift_),
    {"aten::copy_.int(Tensor(a!) self, int other) -> Tensor(a!)",
     call_of<+[](Tensor t, Scalar number) { return t.fill_(number); }>, false},
    {"aten::copy_.float(Tensor(a!) self, float other) -> Tensor(a!)",
     call_of<+[](Tensor t, Scalar number) { return t.fill_(number); }>, false},
    {"aten::to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool "
     "non_blocking=False, bool copy=False) -> Tensor(b|a)",
     to<true, true>},
    {"aten::to.prim_dtype(Tensor(a) self, int? dtype=None, bool non_blocking=False, bool "
     "copy=False) -> Tensor(b|a)",
     to<false, true>},
    {"aten::to.prim_other(Tensor(a) self, bool non_blocking=False, bool copy=False) -> "
     "Tensor(b|a)",
     to<false, false>},
    {"aten::cpu(Tensor(a) self) -> Tensor(b|a)", call_of<+[](Tensor t) { return t.cpu(); }>},
    {"aten::cuda(Tensor(a) self) -> Tensor(b|a)",
     call_of<+[](Tensor t) { return t.to(Device("cuda")); }>},
    {"aten::index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor",
     [](IValue* a, size_t, IValue* out) {
       out[0] = IValue(index(a[0].toTensor(), as_indices(a[1])));
     }},
    {"aten::index_put_.hacked_twin(Tensor(a!) self, Tensor[] indices, Tensor values, bool "
     "accumulate=False) -> Tensor(a!)",
     [](IValue* a, size_t, IValue* out) {
       Tensor self = a[0].toTensor();
       out[0] = IValue(index_put_(self, as_indices(a[1]), a[2].toTensor(), a[3].toBool()));
     },
     false},
    {"aten::split(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
     [](IValue* a, size_t, IValue* out) {
       const std::vector<int64_t> sizes = a[1].toIntVector();
       out[0] = shared_list(IValue(split_with_sizes(a[0].toTensor(), sizes, a[2].toInt())));
     }},
    {"aten::result_type.Tensor(Tensor tensor, Tensor other) -> int",
     call_of<+[](Tensor a, Tensor b) {
       const Tensor both[] = {a, b};
       return number_of(result_type(TensorList(both, 2)));
     }>},
    {"aten::promote_types(int type1, int type2) -> int", call_of<+[](int64_t a, int64_t b) {
       return number_of(promote_types(dtype_of_number(a), dtype_of_number(b)));
     }>},
    {"aten::can_cast(int from_, int to) -> bool", call_of<+[](int64_t a, int64_t b) {
       return can_cast(dtype_of_number(a), dtype_of_number(b));
     }>},

    {"aten::device(str a) -> Device", call_of<+[](std::string a) { return Device(a); }>},
    {"aten::device.with_index(str type, int index) -> Device",
     call_of<+[](std::string type, int64_t index) { return Device(str(type, ":", index)); }>},
    {"prim::type(Device self) -> str", call_of<+[](Device d) {
       const std::string text = d.str();
       return text.substr(0, text.find(':'));
     }>},
    {"prim::index(Device self) -> int?", call_of<+[](Device d) {
       return d.str().find(':') == std::string::npos ? std::optional<int64_t>()
                                                     : std::optional<int64_t>(d.index());
     }>},
    {"aten::_unwrap_optional(t? optional) -> t", unwrap},
    {"prim::unchecked_unwrap_optional(t? optional) -> t", return_first},
    {"prim::EnumName(AnyEnumType enum) -> str",
     [](IValue* a, size_t, IValue* out) { out[0] = enum_member(a[0]).at("name"); }},
    {"prim::EnumValue(AnyEnumType enum) -> Any",
     [](IValue* a, size_t, IValue* out) { out[0] = enum_member(a[0]).at("value"); }},
    {"aten::is_grad_enabled() -> bool", call_of<+[]() { return GradMode::is_enabled(); }>, false},
    {"aten::set_grad_enabled(bool val) -> ()", call_of<+[](bool on) { GradMode::set_enabled(on); }>,
     false},
    {"aten::is_autocast_enabled() -> bool", call_of<+[]() { return autocast::is_enabled(kCUDA); }>,
     false},
    {"aten::is_autocast_cpu_enabled() -> bool",
     call_of<+[]() { return autocast::is_enabled(kCPU); }>, false},
    {"aten::manual_seed(int seed) -> ()",
     call_of<+[](int64_t seed) { manual_seed(static_cast<uint64_t>(seed)); }>, false},
    {"aten::warn(str message, int stacklevel=2) -> ()",
     call_of<+[](std::string message, int64_t) { warn(message); }>, false},
    {"aten::is_scripting() -> bool", call_of<+[]() { return true; }>},
    {"aten::_get_tracing_state() -> bool", call_of<+[]() { return false; }>},
    {"aten::has_torch_function(...) -> bool",
     [](IValue*, size_t, IValue* out) { out[0] = IValue(false); }},
    {"aten::hash.generic(t value) -> int",
     [](IValue* a, size_t, IValue* out) { out[0] = IValue(hash_of(a[0])); }},
};

}  // namespace

BuiltinRows tensor_builtins() {
  BuiltinRows out(std::begin(rows), std::end(rows));
  for (const char* const device :
       {"ipu", "maia", "mkldnn", "mps", "mtia", "nested", "vulkan", "xla", "xpu"}) {
    out.push_back({str("prim::is_", device, "(Tensor a) -> bool"), call_of<return_false>});
  }
  for (const char* const number : {"bool", "float", "int"}) {
    out.push_back({str("aten::Complex.Tensor_", number, "(Tensor x, ", number, " y) -> complex"),
                   call_of<complex_in>});
    out.push_back({str("aten::Complex.", number, "_Tensor(", number, " x, Tensor y) -> complex"),
                   call_of<complex_beside>});
  }
  for (const char* const number : {"bool", "float", "int", "complex"}) {
    out.push_back({str("aten::tensor.", number, "(", number,
                       " t, *, ScalarType? dtype=None, Device? device=None, bool "
                       "requires_grad=False) -> Tensor"),
                   make_tensor});
    out.push_back({str("aten::as_tensor.", number, "(", number,
                       " t, *, ScalarType? dtype=None, Device? device=None) -> Tensor"),
                   make_tensor});
  }
  return out;
}

}  // namespace rushlight::graph
