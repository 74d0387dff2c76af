// Binding of Python arguments to signatures, and the errors when none fits. What calls do with
// them: arguments.cpp.
#include "python/parser.h"

#include <set>
#include <string>

#include "python/torch_function.h"

namespace rushlight::python {

namespace {

PyObject varargs_marker_object = {};
PyObject* const varargs_marker = &varargs_marker_object;

const char* kind_text(Kind kind) {
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
Py_ssize_t first_not_accepted(Items items, F accepts) {
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
  refused = first_not_accepted(items, accepts);
  return refused < 0;
}

bool is_optional_tensor(PyObject* o) { return o == Py_None || is_tensor(o); }
// An item of a list of ints is also a tensor of one integer with any number of dimensions, as
// __index__ takes it.
bool takes_int(PyObject* o) {
  if (is_int(o)) {
    return true;
  }
  return is_tensor(o) && unwrap(o).numel() == 1 && is_integral(unwrap(o).dtype());
}
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

// What reads any object as data asks only modes, and the tensor whose method it is.
bool takes_data(const Signature& s) {
  return std::any_of(s.params, s.params + s.count,
                     [](const Param& p) { return p.kind == Kind::Object; });
}

bool is_visible(const Param& p, Form form) { return !p.out || form == FunctionForm; }
// "self" is called "input" in functions.
std::string_view shown_name(const Param& p) { return p.name == "self" ? "input" : p.name; }

struct OtherName {
  std::string_view name;
  std::string_view other;
};
// numpy's names, taken everywhere.
constexpr OtherName other_names[] = {
    {"dim", "axis"}, {"keepdim", "keepdims"}, {"self", "x"},
    {"self", "a"},   {"self", "x1"},          {"other", "x2"},
    {"input", "x"},  {"self", "tensor"},      {"split_size", "split_size_or_sections"}};

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
  Py_ssize_t keyword_count() const { return kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0; }
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
  out += str(" must be ", kind_text(p.kind));
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

// Says `why`, where somebody asks.
template <class... T>
bool fail(std::string* why, const T&... parts) {
  if (why != nullptr) {
    *why = str(parts...);
  }
  return false;
}
bool fail_refused(std::string* why, const Call& call, const Param& param, PyObject* o,
                  Py_ssize_t place, Py_ssize_t refused) {
  return why != nullptr ? fail(why, refusal(call, param, o, place, refused)) : false;
}

bool fail_too_many(const Signature& s, const Call& call, std::string* why) {
  const bool bound = is_method(call.form);
  const int most = max_positional(s, call.form);
  int least = 0;
  for (int i = 0; i < s.count; i++) {
    const Param& param = s.params[i];
    least += param.shown == nullptr && !param.keyword_only && !param.out && !(bound && i == s.self);
  }
  const char* were = call.nargs == 1 ? " was given" : " were given";
  if (least == most) {
    return fail(why, call.name(), "() takes ", most, " positional argument", most == 1 ? "" : "s",
                " but ", static_cast<int64_t>(call.nargs), were);
  }
  return fail(why, call.name(), "() takes from ", least, " to ", most, " positional arguments but ",
              static_cast<int64_t>(call.nargs), were);
}

bool bind_positional(const Signature& s, const Call& call, Binding& b, std::string* why) {
  const bool bound = is_method(call.form);
  Py_ssize_t a = 0;
  for (int p = 0; p < s.count && a < call.nargs; p++) {
    const Param& param = s.params[p];
    if (bound && p == s.self) {
      continue;
    }
    if (param.keyword_only || param.out) {
      break;
    }
    PyObject* o = call.args[a];
    Py_ssize_t refused = -1;
    const bool tensors = param.kind == Kind::TensorList;
    // `zeros(2, 3)` and `x.permute(1, 0)`, but `permute(x, (1, 0))`.
    const bool spread = s.varargs && (tensors || bound || p == 0);
    if (spread && (tensors ? is_tensor(o) : param.kind == Kind::IntList && takes_int(o))) {
      const Items rest = {const_cast<PyObject**>(call.args + a), call.nargs - a};
      refused = first_not_accepted(rest, tensors ? takes_tensor : takes_int);
      if (refused >= 0) {
        return fail(why, call.name(), "(): argument '", shown_name(param), "' must be ",
                    kind_text(param.kind), ", but found element of type ",
                    type_name(rest.data[refused]), " at pos ", refused);
      }
      b.varargs = call.args + a;
      b.varargs_count = rest.size;
      b.slots[p] = varargs_marker;
      a = call.nargs;
      continue;
    }
    if (!accepts(param, o, refused)) {
      return fail_refused(why, call, param, o, a + 1, refused);
    }
    b.slots[p] = o;
    a++;
  }
  return a == call.nargs || fail_too_many(s, call, why);
}

// The parameter that a keyword means; -1: none.
int parameter_named(const Signature& s, const Call& call, std::string_view name) {
  for (const bool exactly : {true, false}) {
    for (int i = 0; i < s.count; i++) {
      const Param& param = s.params[i];
      if (is_visible(param, call.form) && !(is_method(call.form) && i == s.self) &&
          (exactly ? shown_name(param) == name : is_called(param, name))) {
        return i;
      }
    }
  }
  return -1;
}

bool bind_named(const Signature& s, const Call& call, Binding& b, std::string* why) {
  for (Py_ssize_t k = 0; k < call.keyword_count(); k++) {
    const std::string_view name = keyword(PyTuple_GET_ITEM(call.kwnames, k));
    PyObject* o = call.args[call.nargs + k];
    const int found = parameter_named(s, call, name);
    if (found < 0) {
      return fail(why, call.name(), "() got an unexpected keyword argument '", name, "'");
    }
    if (b.slots[found] != nullptr) {
      return fail(why, call.name(), "() got multiple values for argument '", name, "'");
    }
    Py_ssize_t refused = -1;
    if (!accepts(s.params[found], o, refused)) {
      return fail_refused(why, call, s.params[found], o, 0, refused);
    }
    b.slots[found] = o;
  }
  return true;
}

bool has_required(const Signature& s, const Call& call, Binding& b, std::string* why) {
  for (int i = 0; i < s.count; i++) {
    if (b.slots[i] != nullptr || s.params[i].shown != nullptr || s.params[i].out) {
      continue;
    }
    if (s.varargs && s.params[i].kind == Kind::TensorList) {  // block_diag(): no tensors
      b.slots[i] = varargs_marker;
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

// Binds a call to a signature. `why`, when not null, gets the error.
bool bind(const Signature& s, const Call& call, Binding& b, std::string* why) {
  for (int i = 0; i < s.count; i++) {
    b.slots[i] = nullptr;
  }
  if (is_method(call.form)) {
    b.slots[s.self] = call.self;
  }
  return bind_positional(s, call, b, why) && bind_named(s, call, b, why) &&
         has_required(s, call, b, why);
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
    if (!is_visible(p, form) || (is_method(form) && i == s.self)) {
      continue;
    }
    out += first ? "" : ", ";
    first = false;
    if ((p.keyword_only || p.out) && !star) {
      out += "*, ";
      star = true;
    }
    out += str(kind_text(p.kind), " ", shown_name(p));
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
  const int64_t given = call.nargs + call.keyword_count();
  for (int i = 0; i < parser.count; i++) {
    const Signature& s = parser.signatures[i];
    if ((s.forms & call.form) == 0 || s.deprecated) {
      continue;
    }
    candidates++;
    only = &s;
    int most = 0;
    for (int j = 0; j < s.count; j++) {
      most += is_visible(s.params[j], call.form) && !(is_method(call.form) && j == s.self);
    }
    if (given >= min_positional(s, call.form) && (given <= most || s.varargs)) {
      plausible = &s;
      plausible_count++;
    }
  }
  PyObject* slots[max_params];
  Binding b{slots};
  std::string why;
  if (candidates == 1 || plausible_count == 1) {
    bind(candidates == 1 ? *only : *plausible, call, b, &why);
    raise(PyExc_TypeError, why);
  }
  why = str(call.name(), "() received an invalid combination of arguments - got (");
  for (Py_ssize_t i = 0; i < call.nargs + call.keyword_count(); i++) {
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

Items Arguments::items(int i) const {
  if (slots_[i] == varargs_marker) {
    return {const_cast<PyObject**>(varargs_), varargs_count_};
  }
  return items_of(slots_[i]);
}

PyObject* Parser::call(Form form, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                       PyObject* kwnames) const {
  return translate_errors([&]() -> PyObject* {
    const Call c = {name, form, self, args, nargs, kwnames};
    if (RL_UNLIKELY(wants_torch_function(self, args, nargs, kwnames)) &&
        (is_method(form) || owner != nullptr)) {
      const Offered offered = takes_data(signatures[0]) ? Offered::ToSelf : Offered::ToAll;
      if (offered == Offered::ToAll || wants_torch_function(self, nullptr, 0, nullptr)) {
        PyObject* of = is_method(form) ? reinterpret_cast<PyObject*>(tensor_class) : *owner;
        const Object function = Object::check(PyObject_GetAttrString(of, c.name().c_str()));
        return call_torch_function(function.get(), self, args, nargs, kwnames, offered);
      }
    }
    Arguments bound;
    bound.name_ = name;
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

}  // namespace rushlight::python
