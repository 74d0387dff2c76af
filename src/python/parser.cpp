// Binding of Python arguments to signatures, and the errors when none fits.
#include "python/parser.h"

#include <structmember.h>

#include <set>
#include <string>

#include "python/torch_function.h"

namespace rushlight::python {

namespace {

PyObject varargs_marker_object = {};
PyObject* const varargs_marker = &varargs_marker_object;

const char* expected(Kind kind) {
  switch (kind) {
    case Kind::Tensor:
    case Kind::TensorOrNumber:
      return "Tensor";
    case Kind::TensorList:
    case Kind::OptionalTensorList:
      return "tuple of Tensors";
    case Kind::Scalar:
      return "Number";
    case Kind::ScalarList:
      return "tuple of Scalars";
    case Kind::Int:
      return "int";
    case Kind::IntList:
      return "tuple of ints";
    case Kind::Float:
      return "float";
    case Kind::FloatList:
      return "tuple of floats";
    case Kind::Bool:
      return "bool";
    case Kind::String:
      return "str";
    case Kind::Dtype:
      return "torch.dtype";
    case Kind::Device:
      return "torch.device";
    case Kind::Layout:
      return "torch.layout";
    case Kind::MemoryFormat:
      return "torch.memory_format";
    case Kind::Generator:
      return "torch.Generator";
    case Kind::Object:
      return "object";
  }
  return "object";
}

// The position of the first item that `f` refuses; -1: all are taken.
template <class F>
Py_ssize_t first_refused(Items items, F accepts) {
  for (Py_ssize_t i = 0; i < items.size; i++) {
    if (!accepts(items.data[i])) {
      return i;
    }
  }
  return -1;
}

bool is_list_of(PyObject* o, bool (*accepts)(PyObject*), Py_ssize_t& refused) {
  const Items items = items_of(o);
  if (!items.is_sequence()) {
    return false;
  }
  refused = first_refused(items, accepts);
  return refused < 0;
}

bool is_optional_tensor(PyObject* o) { return o == Py_None || is_tensor(o); }
bool takes_int(PyObject* o) { return is_int(o); }
bool takes_float(PyObject* o) { return is_float(o); }
bool takes_tensor(PyObject* o) { return is_tensor(o); }

// `refused` is the place of the item that does not fit, where the list itself would.
bool accepts(const Param& p, PyObject* o, Py_ssize_t& refused) {
  if (o == Py_None) {
    return p.none || p.kind == Kind::Object;
  }
  switch (p.kind) {
    case Kind::Tensor:
      return is_tensor(o);
    case Kind::TensorOrNumber:
      return is_tensor(o) || is_number(o);
    case Kind::TensorList:
      return is_list_of(o, takes_tensor, refused);
    case Kind::OptionalTensorList:
      return is_list_of(o, is_optional_tensor, refused);
    case Kind::Scalar:
      return is_scalar(o);
    case Kind::ScalarList:
      return is_list_of(o, is_scalar, refused);
    case Kind::Int:
      return is_int(o);
    case Kind::IntList:
      return is_int(o) || is_list_of(o, takes_int, refused);
    case Kind::Float:
      return is_float(o);
    case Kind::FloatList:
      return is_float(o) || is_list_of(o, takes_float, refused);
    case Kind::Bool:
      return is_bool(o);
    case Kind::String:
      return PyUnicode_Check(o);
    case Kind::Dtype:
      return as_dtype(o).has_value();
    case Kind::Device:
      return is_device(o);
    case Kind::Layout:
      return as_layout(o).has_value();
    case Kind::MemoryFormat:
      return as_memory_format(o).has_value();
    case Kind::Generator:
      return is_generator(o);
    case Kind::Object:
      return true;
  }
  return false;
}

bool visible(const Param& p, Form form) { return !p.out || form == FunctionForm; }
// "self" is called "input" in functions.
std::string_view shown_name(const Param& p) { return p.name == "self" ? "input" : p.name; }

struct OtherName {
  std::string_view name;
  std::string_view other;
};
// numpy's names, taken everywhere.
constexpr OtherName other_names[] = {{"dim", "axis"}, {"keepdim", "keepdims"}, {"self", "x"},
                                     {"self", "a"},   {"self", "x1"},          {"other", "x2"},
                                     {"input", "x"}};

bool is_called(const Param& p, std::string_view name) {
  if (shown_name(p) == name) {
    return true;
  }
  for (const OtherName& o : other_names) {
    if (o.other == name && o.name == p.name) {
      return true;
    }
  }
  return p.name == name;
}

std::string_view keyword(PyObject* name) {
  if (PyUnicode_IS_COMPACT_ASCII(name)) {
    return {reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(name)),
            static_cast<size_t>(PyUnicode_GET_LENGTH(name))};
  }
  return text_view(name);
}

// What a call looks like while it is bound to one signature.
struct Call {
  const char* op;
  Form form;
  PyObject* self;
  PyObject* const* args;
  Py_ssize_t nargs;
  PyObject* kwnames;
  // "add_" for the in-place form of add.
  std::string name() const {
    const std::string_view base = op;
    return is_inplace(form) && !base.ends_with('_') ? str(base, "_") : std::string(base);
  }
  Py_ssize_t named() const { return kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0; }
};

struct Binding {
  PyObject** slots;
  PyObject* const* varargs = nullptr;
  Py_ssize_t varargs_count = 0;
};

std::string refusal(const Call& call, const Param& p, PyObject* o, Py_ssize_t position,
                    Py_ssize_t refused) {
  std::string out = str(call.name(), "(): argument '", shown_name(p), "'");
  if (position > 0) {
    out += str(" (position ", position, ")");
  }
  out += str(" must be ", expected(p.kind));
  if (refused >= 0) {
    return out + str(", but found element of type ", type_name(items_of(o).data[refused]),
                     " at pos ", refused);
  }
  return out + str(", not ", type_name(o));
}

int max_positional(const Signature& s, Form form) {
  int n = 0;
  for (int i = 0; i < s.count; i++) {
    n += !s.params[i].keyword_only && !s.params[i].out && !(is_method(form) && i == s.self);
  }
  return n;
}

int min_positional(const Signature& s, Form form) {
  int n = 0;
  for (int i = 0; i < s.count; i++) {
    n += s.params[i].shown == nullptr && !s.params[i].out && !(is_method(form) && i == s.self);
  }
  return n;
}

// Binds a call to a signature. `why`, when not null, gets the error.
bool bind(const Signature& s, const Call& call, Binding& b, std::string* why) {
  const auto fail = [&](auto&&... parts) {
    if (why != nullptr) {
      *why = str(parts...);
    }
    return false;
  };
  for (int i = 0; i < s.count; i++) {
    b.slots[i] = nullptr;
  }
  const bool bound = is_method(call.form);
  if (bound) {
    b.slots[s.self] = call.self;
  }
  // Positional arguments.
  Py_ssize_t a = 0;
  int p = 0;
  for (; p < s.count && a < call.nargs; p++) {
    const Param& param = s.params[p];
    if (bound && p == s.self) {
      continue;
    }
    if (param.keyword_only || param.out) {
      break;
    }
    PyObject* o = call.args[a];
    Py_ssize_t refused = -1;
    if (s.varargs && param.kind == Kind::IntList && is_int(o)) {
      const Items rest = {const_cast<PyObject**>(call.args + a), call.nargs - a};
      refused = first_refused(rest, takes_int);
      if (refused >= 0) {
        return fail(call.name(), "(): argument '", shown_name(param),
                    "' must be tuple of ints, but found element of type ",
                    type_name(rest.data[refused]), " at pos ", refused);
      }
      b.varargs = call.args + a;
      b.varargs_count = rest.size;
      b.slots[p] = varargs_marker;
      a = call.nargs;
      continue;
    }
    if (!accepts(param, o, refused)) {
      return why != nullptr ? fail(refusal(call, param, o, a + 1, refused)) : false;
    }
    b.slots[p] = o;
    a++;
  }
  if (a < call.nargs) {
    const int most = max_positional(s, call.form);
    int least = 0;
    for (int i = 0; i < s.count; i++) {
      const Param& param = s.params[i];
      least +=
          param.shown == nullptr && !param.keyword_only && !param.out && !(bound && i == s.self);
    }
    const char* were = call.nargs == 1 ? " was given" : " were given";
    if (least == most) {
      return fail(call.name(), "() takes ", most, " positional argument", most == 1 ? "" : "s",
                  " but ", static_cast<int64_t>(call.nargs), were);
    }
    return fail(call.name(), "() takes from ", least, " to ", most, " positional arguments but ",
                static_cast<int64_t>(call.nargs), were);
  }
  // Named ones.
  for (Py_ssize_t k = 0; k < call.named(); k++) {
    const std::string_view name = keyword(PyTuple_GET_ITEM(call.kwnames, k));
    PyObject* o = call.args[call.nargs + k];
    int found = -1;
    for (int i = 0; i < s.count && found < 0; i++) {
      if (visible(s.params[i], call.form) && !(bound && i == s.self) &&
          is_called(s.params[i], name)) {
        found = i;
      }
    }
    if (found < 0) {
      return fail(call.name(), "() got an unexpected keyword argument '", name, "'");
    }
    if (b.slots[found] != nullptr) {
      return fail(call.name(), "() got multiple values for argument '", name, "'");
    }
    Py_ssize_t refused = -1;
    if (!accepts(s.params[found], o, refused)) {
      return why != nullptr ? fail(refusal(call, s.params[found], o, 0, refused)) : false;
    }
    b.slots[found] = o;
  }
  // Required ones.
  for (int i = 0; i < s.count; i++) {
    if (b.slots[i] != nullptr || s.params[i].shown != nullptr || s.params[i].out) {
      continue;
    }
    if (why != nullptr) {
      int missing = 0;
      std::string names;
      for (int j = i; j < s.count; j++) {
        if (b.slots[j] == nullptr && s.params[j].shown == nullptr && !s.params[j].out) {
          missing++;
          names += str(names.empty() ? "" : ", ", "\"", shown_name(s.params[j]), "\"");
        }
      }
      *why = str(call.name(), "() missing ", missing, " required positional arguments: ", names);
    }
    return false;
  }
  return true;
}

// ---- the final error ----

std::string describe(PyObject* o) {
  const Items items = items_of(o);
  if (!items.is_sequence() || (!PyTuple_CheckExact(o) && !PyList_CheckExact(o))) {
    return type_name(o);
  }
  const bool tuple = PyTuple_Check(o);
  std::string out = tuple ? "tuple of (" : "list of [";
  constexpr Py_ssize_t most = 10;
  for (Py_ssize_t i = 0; i < items.size && i < most; i++) {
    out += str(i != 0 ? ", " : "", type_name(items.data[i]));
  }
  out += items.size > most ? ", ..." : items.size == 1 && tuple ? "," : "";
  return out + (tuple ? ')' : ']');
}

std::string describe(const Signature& s, Form form) {
  std::string out = "(";
  bool star = false;
  bool first = true;
  for (int i = 0; i < s.count; i++) {
    const Param& p = s.params[i];
    if (!visible(p, form) || (is_method(form) && i == s.self)) {
      continue;
    }
    out += first ? "" : ", ";
    first = false;
    if ((p.keyword_only || p.out) && !star) {
      out += "*, ";
      star = true;
    }
    out += str(expected(p.kind), " ", shown_name(p));
    if (p.shown != nullptr) {
      out += str(" = ", p.shown);
    } else if (p.out) {
      out += " = None";
    }
  }
  return out + ")";
}

// Once for each signature.
void warn_of_deprecated(const Parser& parser, const Signature& s, const Call& call) {
  static std::set<const Signature*> warned;
  if (!warned.insert(&s).second && !is_warn_always()) {
    return;
  }
  const std::string name = call.name();
  std::string message =
      str("This overload of ", name, " is deprecated:\n\t", name, describe(s, call.form),
          "\nConsider using one of the following signatures instead:");
  for (int i = 0; i < parser.count; i++) {
    const Signature& other = parser.signatures[i];
    if ((other.forms & call.form) != 0 && !other.deprecated) {
      message += str("\n\t", name, describe(other, call.form));
    }
  }
  warn(message);
}

[[noreturn]] void raise_no_match(const Parser& parser, const Call& call) {
  const Signature* plausible = nullptr;
  int plausible_count = 0;
  int candidates = 0;
  const Signature* only = nullptr;
  const int64_t given = call.nargs + call.named();
  for (int i = 0; i < parser.count; i++) {
    const Signature& s = parser.signatures[i];
    if ((s.forms & call.form) == 0 || s.deprecated) {
      continue;
    }
    candidates++;
    only = &s;
    int most = 0;
    for (int j = 0; j < s.count; j++) {
      most += visible(s.params[j], call.form) && !(is_method(call.form) && j == s.self);
    }
    if (given >= min_positional(s, call.form) && (given <= most || s.varargs)) {
      plausible = &s;
      plausible_count++;
    }
  }
  PyObject* slots[Arguments::max_params];
  Binding b{slots};
  std::string why;
  if (candidates == 1 || plausible_count == 1) {
    bind(candidates == 1 ? *only : *plausible, call, b, &why);
    raise(PyExc_TypeError, why);
  }
  why = str(call.name(), "() received an invalid combination of arguments - got (");
  for (Py_ssize_t i = 0; i < call.nargs + call.named(); i++) {
    why += i != 0 ? ", " : "";
    if (i >= call.nargs) {
      why += str(keyword(PyTuple_GET_ITEM(call.kwnames, i - call.nargs)), "=");
    }
    why += describe(call.args[i]);
  }
  why += "), but expected one of:\n";
  for (int i = 0; i < parser.count; i++) {
    if ((parser.signatures[i].forms & call.form) != 0 && !parser.signatures[i].deprecated) {
      why += str(" * ", describe(parser.signatures[i], call.form), "\n");
    }
  }
  raise(PyExc_TypeError, why);
}

}  // namespace

PyObject* Parser::call(Form form, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                       PyObject* kwnames) const {
  return guarded([&]() -> PyObject* {
    const Call c = {name, form, self, args, nargs, kwnames};
    if (RL_UNLIKELY(wants_torch_function(self, args, nargs, kwnames))) {
      PyObject* owner_object = is_method(form) ? reinterpret_cast<PyObject*>(tensor_class) : *owner;
      const Object function = Object::check(PyObject_GetAttrString(owner_object, c.name().c_str()));
      return call_torch_function(function.get(), self, args, nargs, kwnames);
    }
    Arguments bound;
    bound.form_ = form;
    for (int i = 0; i < count; i++) {
      if ((signatures[i].forms & form) == 0) {
        continue;
      }
      Binding b{bound.slots_};
      if (bind(signatures[i], c, b, nullptr)) {
        if (RL_UNLIKELY(signatures[i].deprecated)) {
          warn_of_deprecated(*this, signatures[i], c);
        }
        bound.table_ = &signatures[i];
        bound.signature_ = i;
        bound.varargs_ = b.varargs;
        bound.varargs_count_ = b.varargs_count;
        return run(bound);
      }
    }
    raise_no_match(*this, c);
  });
}

// ---- conversion of what was bound ----

const Tensor Arguments::undefined_tensor;
const Generator Arguments::no_generator;

Items Arguments::items(int i) const {
  if (slots_[i] == varargs_marker) {
    return {const_cast<PyObject**>(varargs_), varargs_count_};
  }
  return items_of(slots_[i]);
}

Tensor Arguments::tensor_or_number(int i) const {
  if (!given(i)) {
    return Tensor();
  }
  return is_tensor(slots_[i]) ? unwrap(slots_[i]) : make_number(to_scalar(slots_[i]));
}

std::vector<Tensor> Arguments::tensors(int i) const {
  std::vector<Tensor> out;
  if (given(i)) {
    out.reserve(static_cast<size_t>(items(i).size));
    for (Py_ssize_t k = 0; k < items(i).size; k++) {
      out.push_back(expect_tensor(items(i).data[k], "an item of the list"));
    }
  }
  return out;
}

std::vector<Tensor> Arguments::out_tensors(int i, size_t n, const char* op) const {
  std::vector<Tensor> out = tensors(i);
  RL_CHECK_TYPE(out.size() == n, op, "(): argument 'out' must be a tuple of ", n,
                " Tensors, but it has ", out.size());
  return out;
}

std::vector<std::optional<Tensor>> Arguments::optional_tensors(int i) const {
  std::vector<std::optional<Tensor>> out;
  if (given(i)) {
    for (Py_ssize_t k = 0; k < items(i).size; k++) {
      PyObject* o = items(i).data[k];
      out.push_back(o == Py_None ? std::nullopt
                                 : std::optional(expect_tensor(o, "an item of the list")));
    }
  }
  return out;
}

// Items are read afresh at each step and held: a conversion may run Python code, which may change
// the list.
template <class T, class F>
T Arguments::convert_list(int i, F convert) const {
  T out;
  if (!items(i).is_sequence()) {
    out.push_back(convert(slots_[i]));
    return out;
  }
  for (Py_ssize_t k = 0; k < items(i).size; k++) {
    const Object item = Object::borrow(items(i).data[k]);
    out.push_back(convert(item.get()));
  }
  return out;
}

DimVector Arguments::ints(int i) const { return convert_list<DimVector>(i, to_int); }
std::vector<double> Arguments::numbers(int i) const {
  return convert_list<std::vector<double>>(i, to_float);
}
std::vector<Scalar> Arguments::scalars(int i) const {
  return convert_list<std::vector<Scalar>>(i, to_scalar);
}

ScalarType Arguments::dtype_of(PyObject* o) { return *as_dtype(o); }

TensorOptions Arguments::options(int i) const {
  TensorOptions out;
  if (given(i)) {
    out = out.dtype(dtype(i));
  }
  if (given(i + 2)) {
    out = out.device(device(i + 2));
  } else if (i == 0 || table_->params[0].kind != Kind::Tensor) {
    // zeros_like and its like go where their argument is; the default is for what has none.
    if (const std::optional<Device> d = default_device()) {
      out = out.device(*d);
    }
  }
  RL_CHECK(!given(i + 3) || !boolean(i + 3),
           "Cannot access accelerator device when none is available: pin_memory=True");
  return given(i + 4) ? out.requires_grad(boolean(i + 4)) : out;
}

bool Arguments::heavy() const {
  constexpr int64_t threshold = 16384;
  bool tensors = false;
  int64_t asked = 1;  // of factories: the product of the ints
  for (int i = 0; i < table_->count; i++) {
    const Kind kind = table_->params[i].kind;
    PyObject* o = slots_[i];
    if (o == nullptr || o == Py_None) {
      continue;
    }
    if (kind <= Kind::TensorOrNumber) {
      tensors = true;
      if (is_tensor(o) && unwrap(o).numel() >= threshold) {
        return true;
      }
    } else if (kind <= Kind::OptionalTensorList) {
      tensors = true;
      const Items list = items(i);
      for (Py_ssize_t k = 0; k < list.size; k++) {
        if (is_tensor(list.data[k]) && unwrap(list.data[k]).numel() >= threshold) {
          return true;
        }
      }
    } else if (!tensors && (kind == Kind::IntList || kind == Kind::Int || kind == Kind::Scalar)) {
      const Items one = {&o, 1};
      const Items list = kind == Kind::IntList && items(i).is_sequence() ? items(i) : one;
      for (Py_ssize_t k = 0; k < list.size; k++) {
        int overflow = 0;
        const int64_t n = PyLong_CheckExact(list.data[k])
                              ? PyLong_AsLongLongAndOverflow(list.data[k], &overflow)
                              : 1;
        if (n > 1 && __builtin_mul_overflow(asked, n, &asked)) {
          return true;
        }
      }
    }
  }
  return !tensors && asked >= threshold;
}

// ---- results ----

namespace {

PyObject* return_types;  // module

// torch.return_types.max(
// values=tensor(…),
// indices=tensor(…))
PyObject* named_repr(PyObject* self) {
  return guarded([&] {
    std::string out = str("torch.return_types.", type_name(self), "(\n");
    const PyMemberDef* members = Py_TYPE(self)->tp_members;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); i++) {
      const Object item = Object::check(PyObject_Repr(PyStructSequence_GetItem(self, i)));
      out += str(i != 0 ? ",\n" : "", members[i].name, "=", text_view(item.get()));
    }
    return text(out + ")").release();
  });
}

}  // namespace

PyObject* wrap_result(const std::vector<Tensor>& list) {
  Object out = Object::check(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
  for (size_t i = 0; i < list.size(); i++) {
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), wrap(list[i]));
  }
  return out.release();
}

// Takes over `item`. A named result is a tuple inside.
void set_item(PyObject* tuple, Py_ssize_t i, PyObject* item) {
  PyTuple_SET_ITEM(tuple, i, check(item));
}

PyTypeObject* named_result(PyTypeObject*& cache, const char* name,
                           std::initializer_list<const char*> fields) {
  if (cache != nullptr) {
    return cache;
  }
  // The descriptions live as long as the types: for ever.
  auto* descriptions = new std::vector<PyStructSequence_Field>;
  for (const char* field : fields) {
    descriptions->push_back({field, nullptr});
  }
  descriptions->push_back({nullptr, nullptr});
  auto* full_name = new std::string(str("rushlight.return_types.", name));
  PyStructSequence_Desc description = {full_name->c_str(), nullptr, descriptions->data(),
                                       static_cast<int>(fields.size())};
  PyTypeObject* type = PyStructSequence_NewType(&description);
  if (type == nullptr) {
    throw PythonError();
  }
  type->tp_repr = named_repr;
  PyType_Modified(type);
  add(return_types, name, reinterpret_cast<PyObject*>(type));
  return cache = type;
}

void init_results(PyObject* module) {
  return_types = check(PyModule_New("rushlight.return_types"));
  add(module, "return_types", return_types);
}

}  // namespace rushlight::python
