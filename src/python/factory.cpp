// Tensors from Python data: tensor, as_tensor, from_numpy, frombuffer, new_tensor and the
// constructor Tensor(…).
//
// Nested sequences are read in three walks: the shape along the first items, the dtype over all,
// the values.
#include <rushlight/ops.h>

#include <algorithm>
#include <cstring>

#include "core/op_support.h"
#include "python/bindings.h"
#include "python/factory.h"
#include "python/numpy.h"
#include "python/parser.h"
#include "python/storage.h"

namespace rushlight::python {

namespace {

constexpr size_t max_dims = 64;

// ---- nested sequences ----

// The items, held.
Object as_sequence(PyObject* o) { return Object::check(PySequence_Fast(o, "not a sequence")); }

DimVector shape_of(PyObject* data) {
  DimVector sizes;
  Object current = Object::borrow(data);
  while (is_nested(current.get())) {
    const Py_ssize_t n = PySequence_Size(current.get());
    if (n < 0) {
      throw PythonError();
    }
    sizes.push_back(n);
    RL_CHECK_VALUE(sizes.size() <= max_dims, "too many dimensions '", type_name(data), "'");
    if (n == 0) {
      return sizes;
    }
    current = Object::check(PySequence_GetItem(current.get(), 0));
  }
  if (PyUnicode_Check(current.get()) || PyBytes_Check(current.get())) {
    const std::string type = type_name(current.get());
    RL_CHECK_TYPE(!sizes.empty(), "new(): invalid data type '", type, "'");
    throw ValueError(str("too many dimensions '", type, "'"));
  }
  return sizes;
}

// The type of the numpy number that was asked for last: a list of numbers is usually of one.
struct {
  const PyTypeObject* type;
  ScalarType dtype;
} last_number = {nullptr, ScalarType::Undefined};

ScalarType named_numpy_dtype(PyObject* o) {
  const Object type = Object::check(PyObject_GetAttrString(o, "dtype"));
  const Object name = Object::check(PyObject_GetAttrString(type.get(), "name"));
  const std::string_view text = text_view(name.get());
  for (const ScalarType t : all_dtypes) {
    if (text == dtype_info(t).name) {
      return t;
    }
  }
  refuse_numpy_type(str("numpy.", text));
}

ScalarType numpy_dtype(PyObject* o) {
  ArrayView view;
  if (view_array(o, view)) {
    return view.dtype != ScalarType::Undefined ? view.dtype : named_numpy_dtype(o);
  }
  if (Py_TYPE(o) != last_number.type) {
    const ScalarType t = named_numpy_dtype(o);
    if ((Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0) {
      return t;  // of a subclass, which may come and go
    }
    last_number = {Py_TYPE(o), t};
  }
  return last_number.dtype;
}

ScalarType join(ScalarType a, ScalarType b) {
  return a == ScalarType::Undefined ? b : promote_types(a, b);
}

// The dtype that all values are promoted to. Python's floats count as the default dtype. `depth` is
// that of `o`: a list may hold itself behind its first item, where no shape shows it.
ScalarType infer_dtype(PyObject* o, size_t depth = 0) {
  if (PyFloat_CheckExact(o)) {
    return get_default_dtype();
  }
  if (PyBool_Check(o)) {
    return kBool;
  }
  if (PyLong_CheckExact(o)) {
    return kInt64;
  }
  if (Py_TYPE(o) == last_number.type) {
    return last_number.dtype;
  }
  if (is_tensor(o)) {
    return unwrap(o).dtype();
  }
  if (is_numpy_scalar(o) || is_numpy_array(o)) {
    return numpy_dtype(o);
  }
  if (PyFloat_Check(o)) {
    return get_default_dtype();
  }
  if (PyLong_Check(o)) {
    return kInt64;
  }
  if (PyComplex_Check(o)) {
    return to_complex(get_default_dtype());
  }
  if (PyUnicode_Check(o) || PyBytes_Check(o)) {
    throw TypeError(str("new(): invalid data type '", type_name(o), "'"));
  }
  RL_CHECK(is_nested(o), "Could not infer dtype of ", type_name(o));
  RL_CHECK_TYPE(depth < max_dims, "new(): lists nested deeper than ", max_dims,
                " levels, self-referential ones among them, are no tensors");
  const Object items = as_sequence(o);
  ScalarType all = ScalarType::Undefined;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); i++) {
    const Object item = Object::borrow(PySequence_Fast_GET_ITEM(items.get(), i));
    all = join(all, infer_dtype(item.get(), depth + 1));
  }
  return all == ScalarType::Undefined ? get_default_dtype() : all;
}

// ---- values ----

int64_t integer_value(PyObject* o) {
  if (PyFloat_Check(o) || (is_numpy_scalar(o) && !PyIndex_Check(o))) {
    const double value = PyFloat_AsDouble(o);
    if (value == -1.0 && PyErr_Occurred()) {
      throw PythonError();
    }
    return Scalar(value).to<int64_t>();
  }
  const Object index = Object::check(PyNumber_Index(o));
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  RL_CHECK_VALUE(overflow == 0, "Overflow when unpacking long long");
  return value;
}

uint64_t unsigned_value(PyObject* o) {
  if (!PyIndex_Check(o)) {
    return convert<uint64_t>(PyFloat_AsDouble(o));
  }
  const Object index = Object::check(PyNumber_Index(o));
  const uint64_t value = PyLong_AsUnsignedLongLong(index.get());
  if (PyErr_Occurred()) {
    throw PythonError();
  }
  return value;
}

double float_value(PyObject* o) {
  const double value = PyFloat_AsDouble(o);
  if (value == -1.0 && PyErr_Occurred()) {
    throw PythonError();
  }
  return value;
}

template <class T>
T value_of(PyObject* o) {
  if (Py_TYPE(o) == last_number.type && last_number.dtype == dtype_of_v<T>) {
    T value;  // numpy's numbers hold theirs behind the object's head
    std::memcpy(&value, reinterpret_cast<const char*>(o) + sizeof(PyObject), sizeof(T));
    return value;
  }
  if constexpr (is_complex_v<T>) {
    const Py_complex z = PyComplex_AsCComplex(o);
    if (PyErr_Occurred()) {
      throw PythonError();
    }
    return T(static_cast<typename T::value_type>(z.real),
             static_cast<typename T::value_type>(z.imag));
  } else if constexpr (std::is_same_v<T, bool>) {
    return check(PyObject_IsTrue(o)) != 0;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return unsigned_value(o);
  } else if constexpr (is_integer_v<T>) {
    const int64_t value = integer_value(o);
    // Negative numbers wrap around in unsigned dtypes.
    const bool fits =
        sizeof(T) == 8 || (value >= -(int64_t{1} << (8 * sizeof(T) - 1)) &&
                           value < int64_t{1} << (8 * sizeof(T) - std::is_signed_v<T>));
    RL_CHECK(fits, "the value does not fit into ", dtype_of_v<T>,
             ": it cannot be converted without overflow");
    return static_cast<T>(value);
  } else {
    return convert<T>(float_value(o));
  }
}

// Copies an array of dtype `t` with the given sizes to `to`; strides in bytes.
void copy_elements(char*& to, const ArrayView& view, size_t size, const char* from, size_t d) {
  if (d == view.sizes.size()) {
    std::memcpy(to, from, size);
    to += size;
    return;
  }
  const int64_t n = view.sizes[d];
  const int64_t step = view.strides[d];
  if (d + 1 == view.sizes.size() && step == static_cast<int64_t>(size)) {
    std::memcpy(to, from, static_cast<size_t>(n) * size);
    to += static_cast<size_t>(n) * size;
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    copy_elements(to, view, size, from + i * step, d + 1);
  }
}

// An array inside a sequence, copied as a whole; false where its items must be looked at one by
// one, to convert them or to say what is wrong.
bool fill_from_array(char*& to, ScalarType t, PyObject* data, IntArrayRef sizes) {
  ArrayView view;
  if (!view_array(data, view) || view.dtype == ScalarType::Undefined || view.sizes != sizes) {
    return false;
  }
  const auto size = static_cast<size_t>(itemsize(t));
  if (view.dtype == t && view.is_contiguous) {
    const auto bytes = static_cast<size_t>(product(sizes)) * size;
    std::memcpy(to, view.data, bytes);
    to += bytes;
    return true;
  }
  if (view.dtype == t) {
    copy_elements(to, view, size, view.data, 0);
    return true;
  }
  if (promote_types(view.dtype, t) != t) {
    return false;
  }
  const Tensor source = from_numpy(data);
  const auto bytes = static_cast<size_t>(source.numel()) * size;
  auto impl = TensorImpl::make(StorageImpl::borrow(to, bytes, kCPU, nullptr, nullptr), t, kCPU);
  impl->set_sizes_contiguous(sizes);
  copy_raw(Tensor(std::move(impl)), source);
  to += bytes;
  return true;
}

template <class T>
void fill(T*& to, PyObject* data, IntArrayRef sizes, size_t d) {
  if (d == sizes.size()) {
    *to++ = value_of<T>(data);
    return;
  }
  if (!PyList_CheckExact(data) && !PyTuple_CheckExact(data)) {
    auto* bytes = reinterpret_cast<char*>(to);
    if (fill_from_array(bytes, dtype_of_v<T>, data, sizes.slice(d, sizes.size() - d))) {
      to = reinterpret_cast<T*>(bytes);
      return;
    }
    if (!is_nested(data)) {
      raise(PyExc_TypeError, "not a sequence");
    }
  }
  const Object items = as_sequence(data);
  for (Py_ssize_t i = 0; i < sizes[d]; i++) {
    // The length is looked at each time: a conversion may run code that changes the list.
    const int64_t n = PySequence_Fast_GET_SIZE(items.get());
    RL_CHECK_VALUE(n == sizes[d], "expected sequence of length ", sizes[d], " at dim ", d, " (got ",
                   n, "): torch.tensor takes rows of one length");
    const Object item = Object::borrow(PySequence_Fast_GET_ITEM(items.get(), i));
    fill(to, item.get(), sizes, d + 1);
  }
  const int64_t n = PySequence_Fast_GET_SIZE(items.get());
  RL_CHECK_VALUE(n == sizes[d], "expected sequence of length ", sizes[d], " at dim ", d, " (got ",
                 n, "): torch.tensor takes rows of one length");
}

}  // namespace

bool is_nested(PyObject* o) {
  if (PyList_Check(o) || PyTuple_Check(o)) {
    return true;
  }
  if (PyFloat_Check(o) || PyLong_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) ||
      PyDict_Check(o) || is_tensor(o) || is_numpy_scalar(o)) {
    return false;
  }
  if (!PySequence_Check(o)) {
    return false;
  }
  if (is_numpy_array(o)) {
    const Object dims = Object::check(PyObject_GetAttrString(o, "ndim"));
    return PyLong_AsLong(dims.get()) != 0;
  }
  return true;
}

Tensor of_sequences(PyObject* data, std::optional<ScalarType> dtype) {
  const DimVector sizes = shape_of(data);
  const ScalarType t = dtype.has_value() ? *dtype : infer_dtype(data);
  Tensor out = make_empty(sizes, t, kCPU);
  visit_dtype<set_stored>("tensor", t, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.data<T>();
    fill(to, data, sizes, 0);
  });
  return out;
}

namespace {

// ---- all kinds of data ----

Tensor convert_tensor(const Tensor& t, std::optional<ScalarType> dtype,
                      std::optional<Device> device, bool copy) {
  const bool same = (!dtype || *dtype == t.dtype()) && (!device || *device == t.device());
  if (same && !copy) {
    return t;
  }
  return rushlight::to(t, device, dtype, false, copy);
}

// A tensor on the memory of an array or a tensor; undefined for other data.
Tensor share_memory_of(PyObject* data, bool warns) {
  if (is_tensor(data)) {
    return unwrap(data);
  }
  return is_numpy_array(data) ? from_numpy(data, warns) : Tensor();
}

Tensor real_from_data(PyObject* data, std::optional<ScalarType> dtype, std::optional<Device> device,
                      bool copy) {
  if (!device.has_value() && !is_tensor(data)) {
    device = default_device();
  }
  const Tensor shared = share_memory_of(data, !copy);
  if (shared.defined()) {
    return convert_tensor(shared, dtype, device, copy);
  }
  if (is_any_storage(data)) {
    const Tensor elements = elements_of_storage(data, dtype.value_or(get_default_dtype()));
    return convert_tensor(elements, std::nullopt, device, copy);
  }
  return convert_tensor(of_sequences(data, dtype), std::nullopt, device, false);
}

// What the program wrote down is a real tensor, of which modes are told when it is made.
Tensor lift(const Tensor& made) { return tls.lower() == nullptr ? made : lift_fresh(made); }

// Makes one while the modes below autograd are hidden.
template <class F>
Tensor make_without_modes(const F& make) {
  if (tls.lower() == nullptr) {
    return make();
  }
  struct HiddenModes {
    Mode* modes = tls.exchange_lower(nullptr);
    ~HiddenModes() { tls.exchange_lower(modes); }
  };
  Tensor made;
  {
    const HiddenModes hidden;
    made = make();
  }
  return lift_fresh(made);
}

Tensor from_data(PyObject* data, std::optional<ScalarType> dtype, std::optional<Device> device,
                 bool copy) {
  const auto make = [&] { return real_from_data(data, dtype, device, copy); };
  return is_tensor(data) ? make() : make_without_modes(make);
}

void warn_of_copy(const char* call) {
  warn(str(
      "To copy construct from a tensor, call its detach().clone(), and requires_grad_() where it ",
      "gets a gradient, rather than ", call, "()."));
}

#define DATA_PARAM \
  Param { "data", Kind::Object }
#define DTYPE_PARAM(keyword_only) Param{"dtype", Kind::Dtype, true, keyword_only, false, "None"}
#define DEVICE_PARAM(keyword_only) Param{"device", Kind::Device, true, keyword_only, false, "None"}
#define REQUIRES_GRAD_PARAM Param{"requires_grad", Kind::Bool, false, true, false, "False"}
#define PIN_MEMORY_PARAM Param{"pin_memory", Kind::Bool, false, true, false, "False"}

RL_FUNCTION(tensor, DATA_PARAM, DTYPE_PARAM(true), DEVICE_PARAM(true), REQUIRES_GRAD_PARAM,
            PIN_MEMORY_PARAM) {
  PyObject* data = a.object(0);
  RL_CHECK(!a.boolean(4, false),
           "Cannot access accelerator device when none is available: pin_memory=True");
  if (is_tensor(data)) {
    warn_of_copy("torch.tensor");
  }
  const NoGradGuard no_grad;
  const Tensor made = from_data(data, a.optional_dtype(1), a.optional_device(2), true);
  return wrap(as_leaf(is_tensor(data) ? lift(made) : made, a.boolean(3, false)));
}

RL_FUNCTION(as_tensor, DATA_PARAM, DTYPE_PARAM(false), DEVICE_PARAM(false)) {
  return wrap(from_data(a.object(0), a.optional_dtype(1), a.optional_device(2), false));
}

// A tensor in the memory of a tensor, an array, a DLPack capsule or a buffer; undefined for others.
Tensor tensor_in_memory_of(PyObject* data, std::optional<ScalarType> dtype) {
  if (PyCapsule_CheckExact(data)) {
    const Object module = Object::check(PyImport_ImportModule("rushlight._C"));
    return unwrap(
        Object::check(PyObject_CallMethod(module.get(), "_from_dlpack", "Oi", data, 1)).get());
  }
  const Tensor shared = share_memory_of(data, true);
  // Numbers of NumPy's are buffers, too.
  if (shared.defined() || !PyObject_CheckBuffer(data) || PyObject_HasAttrString(data, "dtype")) {
    return shared;
  }
  return of_buffer(data, dtype.value_or(get_default_dtype()), -1, 0);
}

RL_FUNCTION(asarray, Param{"obj", Kind::Object}, DTYPE_PARAM(true), DEVICE_PARAM(true),
            Param{"copy", Kind::Bool, true, true, false, "None"}, REQUIRES_GRAD_PARAM) {
  PyObject* data = a.object(0);
  const std::optional<ScalarType> dtype = a.optional_dtype(1);
  const std::optional<Device> device = a.optional_device(2);
  const bool alias = a.is_given(3) && !a.boolean(3, false);
  const bool leaf = a.boolean(4, false);
  Tensor t = tensor_in_memory_of(data, dtype);
  if (!t.defined()) {
    RL_CHECK_VALUE(!alias, "can't alias arbitrary sequence into a tensor.");
    return wrap(as_leaf(from_data(data, dtype, device, false), leaf));
  }
  RL_CHECK_VALUE(!alias || t.device() == device.value_or(t.device()), "can't alias tensor from ",
                 t.device(), " to another device");
  RL_CHECK_VALUE(!alias || t.dtype() == dtype.value_or(t.dtype()), "can't alias tensor with dtype ",
                 t.dtype(), " into one of dtype ", dtype.value_or(t.dtype()));
  const auto make = [&] { return convert_tensor(t, dtype, device, a.boolean(3, false)); };
  return wrap(as_leaf(is_tensor(data) ? make() : make_without_modes(make), leaf));
}

PyObject* from_numpy_function(PyObject*, PyObject* array) {
  return translate_errors([&] { return wrap(lift(from_numpy(array, true))); });
}

RL_FUNCTION(frombuffer, Param{"buffer", Kind::Object}, Param{"dtype", Kind::Dtype, false, true},
            Param{"count", Kind::Int, false, true, false, "-1"},
            Param{"offset", Kind::Int, false, true, false, "0"}, REQUIRES_GRAD_PARAM) {
  const Tensor t = of_buffer(a.object(0), a.dtype(1), a.integer(2, -1), a.integer(3, 0));
  return wrap(as_leaf(t, a.boolean(4, false)));
}

RL_METHOD(new_tensor, DATA_PARAM, DTYPE_PARAM(true), DEVICE_PARAM(true), REQUIRES_GRAD_PARAM,
          PIN_MEMORY_PARAM) {
  const Tensor& self = a.tensor(0);
  const ScalarType t = a.optional_dtype(2).value_or(self.dtype());
  const Device device = a.optional_device(3).value_or(self.device());
  if (is_tensor(a.object(1))) {
    warn_of_copy("tensor.new_tensor");
  }
  const NoGradGuard no_grad;
  return wrap(as_leaf(from_data(a.object(1), t, device, true), a.boolean(4, false)));
}

// ---- Tensor(…): sizes, data or another tensor ----

Tensor of_size(IntArrayRef sizes, ScalarType t, Device device) {
  return tls.lower() == nullptr ? mark_unwritten_if_asked(make_empty(sizes, t, device))
                                : rushlight::empty(sizes, TensorOptions().dtype(t).device(device));
}

// Tensor(), Tensor(2, 3), Tensor(torch.Size([2, 3])), Tensor([1, 2]), Tensor(array),
// Tensor(tensor).
Tensor legacy(PyObject* args, std::optional<ScalarType> dtype, Device device) {
  const ScalarType t = dtype.value_or(get_default_dtype());
  const Items items = items_of(args);
  if (items.size == 0) {
    return of_size({0}, t, device);
  }
  bool sizes = true;
  for (Py_ssize_t i = 0; i < items.size; i++) {
    sizes = sizes && !is_tensor(items.data[i]) && is_int(items.data[i]);
  }
  if (sizes) {
    DimVector list;
    for (Py_ssize_t i = 0; i < items.size; i++) {
      list.push_back(to_int(items.data[i]));
    }
    return of_size(list, t, device);
  }
  PyObject* data = items.data[0];
  if (items.size > 1) {
    std::string got;
    for (Py_ssize_t i = 0; i < items.size; i++) {
      got += str(i != 0 ? ", " : "", type_name(items.data[i]));
    }
    raise(PyExc_TypeError,
          str("new() received an invalid combination of arguments - got (", got,
              "), but expected one of:\n * (*, torch.device device = None)\n * (Tensor other)\n"
              " * (tuple of ints size, *, torch.device device = None)\n"
              " * (object data, *, torch.device device = None)\n"));
  }
  if (Py_TYPE(data) == &size_type) {
    DimVector list;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(data); i++) {
      list.push_back(to_int(PyTuple_GET_ITEM(data, i)));
    }
    return of_size(list, t, device);
  }
  if (is_tensor(data)) {
    const Tensor& other = unwrap(data);
    RL_CHECK_TYPE(!dtype.has_value() || other.dtype() == t, "expected a tensor of dtype torch.", t,
                  ", but got torch.", other.dtype());
    return rushlight::alias(other);
  }
  if (PyUnicode_Check(data) || PyBytes_Check(data)) {
    throw TypeError(str("new(): invalid data type '", type_name(data), "'"));
  }
  if (ArrayView view; !is_nested(data) && !view_array(data, view)) {
    throw TypeError(str("new(): data must be a sequence (got ", type_name(data), ")"));
  }
  const NoGradGuard no_grad;
  return from_data(data, t, device, true);
}

Device device_argument(PyObject* kwargs) {
  if (kwargs == nullptr || PyDict_GET_SIZE(kwargs) == 0) {
    return default_device().value_or(Device(kCPU));
  }
  PyObject *key, *value;
  Py_ssize_t position = 0;
  Device device = kCPU;
  while (PyDict_Next(kwargs, &position, &key, &value)) {
    const std::string_view name = text_view(key);
    RL_CHECK_TYPE(name == "device", "new() got an unexpected keyword argument '", name, "'");
    if (value != Py_None) {
      RL_CHECK_TYPE(is_device(value), "new(): argument 'device' must be torch.device, not ",
                    type_name(value));
      device = as_device(value);
    }
  }
  return device;
}

PyObject* construct(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return translate_errors([&]() -> PyObject* {
    if (type == &tensor_base_type) {
      raise(PyExc_TypeError, "Cannot create a TensorBase directly; call Tensor");
    }
    const Tensor made = legacy(args, std::nullopt, device_argument(kwargs));
    return type == tensor_class ? wrap(made) : wrap_as(type, made);
  });
}

// _C._legacy_tensor(dtype, args, kwargs): what FloatTensor(…) and tensor.new(…) make.
PyObject* legacy_tensor(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject *dtype, *arguments, *kwargs = nullptr;
    if (!PyArg_ParseTuple(args, "OO!|O!:_legacy_tensor", &dtype, &PyTuple_Type, &arguments,
                          &PyDict_Type, &kwargs)) {
      throw PythonError();
    }
    const std::optional<ScalarType> t = as_dtype(dtype);
    RL_CHECK_TYPE(t.has_value(), "_legacy_tensor(): expected a dtype");
    return wrap(legacy(arguments, t, device_argument(kwargs)));
  });
}

PyMethodDef functions[] = {
    RL_FAST_ROW(
        "tensor", tensor_function,
        "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n--\n\n"
        "A new tensor with a copy of the data: nested sequences of numbers, an array or a "
        "tensor.\n\n"
        "Args:\n"
        "    data: numbers, nested sequences of them, an array, or a tensor.\n"
        "    dtype: the dtype of the elements; by default what the data have: bool, int64, the "
        "default dtype.\n"
        "    device: where the tensor lies; the default device if None.\n"
        "    requires_grad: whether autograd records what is done with it.\n"
        "    pin_memory: whether memory is locked for copies to an accelerator.\n\n"
        "Raises:\n"
        "    ValueError: sequences on one level have different lengths.\n"
        "    TypeError: an element is no number.\n\n"
        "Example:\n"
        "    >>> torch.tensor([[1, 2], [3, 4]])\n"
        "    tensor([[1, 2],\n"
        "            [3, 4]])\n"
        "    >>> torch.tensor([1, 2], dtype=torch.float64)\n"
        "    tensor([1., 2.], dtype=torch.float64)\n\n"
        "See also: as_tensor and from_numpy, which share memory."),
    RL_FAST_ROW("as_tensor", as_tensor_function,
                "as_tensor(data, dtype=None, device=None)\n--\n\n"
                "The data as a tensor, shared with arrays and tensors.\n\n"
                "Args:\n"
                "    data: numbers, nested sequences of them, an array, or a tensor.\n"
                "    dtype: the dtype of the elements; another one than the data's makes a copy.\n"
                "    device: where the tensor lies; another one than the data's makes a copy.\n\n"
                "Example:\n"
                "    >>> x = torch.zeros(2)\n"
                "    >>> torch.as_tensor(x) is x\n"
                "    True"),
    RL_FAST_ROW(
        "asarray", asarray_function,
        "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False)\n--\n\n"
        "A tensor of the data, shared where it can be.\n\n"
        "Args:\n"
        "    obj: a tensor, an array, an object with a buffer or `__dlpack__`, or numbers.\n"
        "    dtype: the dtype of the elements.\n"
        "    device: where the tensor lies.\n"
        "    copy: True copies, False raises ValueError where one would be needed.\n"
        "    requires_grad: whether autograd records what is done with it.\n\n"
        "Example:\n"
        "    >>> torch.asarray([1, 2])\n"
        "    tensor([1, 2])"),
    {"from_numpy", from_numpy_function, METH_O,
     "from_numpy(ndarray, /)\n--\n\n"
     "A tensor on the memory of a numpy array.\n\n"
     "Args:\n"
     "    ndarray: the array, whose elements are numbers or bool; its strides are not negative.\n\n"
     "Raises:\n"
     "    TypeError: it is no array, or no tensor has such elements.\n\n"
     "Example:\n"
     "    >>> import numpy\n"
     "    >>> a = numpy.zeros(2)\n"
     "    >>> torch.from_numpy(a)[0] = 7\n"
     "    >>> float(a[0])\n"
     "    7.0"},
    RL_FAST_ROW("frombuffer", frombuffer_function,
                "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n--\n\n"
                "A 1-d tensor on a buffer.\n\n"
                "Args:\n"
                "    buffer: bytes, a bytearray, or what else has the buffer protocol.\n"
                "    dtype: the dtype of the elements.\n"
                "    count: how many elements; -1 for as many as there are.\n"
                "    offset: where the first element lies, in bytes.\n"
                "    requires_grad: whether autograd records what is done with it.\n\n"
                "Raises:\n"
                "    ValueError: the buffer is too short.\n\n"
                "Example:\n"
                "    >>> torch.frombuffer(bytearray(b\"abc\"), dtype=torch.uint8)\n"
                "    tensor([97, 98, 99], dtype=torch.uint8)"),
    {},
};
PyMethodDef module_functions[] = {
    {"_legacy_tensor", legacy_tensor, METH_VARARGS, nullptr},
    {},
};
PyMethodDef methods[] = {
    RL_FAST_ROW("new_tensor", new_tensor_method,
                "new_tensor($self, data, *, dtype=None, device=None, requires_grad=False)\n--\n\n"
                "A copy of the data in this dtype.\n\n"
                "Args:\n"
                "    data: numbers, nested sequences of them, an array, or a tensor.\n"
                "    dtype: another dtype than this tensor's.\n"
                "    device: another device than this tensor's.\n"
                "    requires_grad: whether autograd records what is done with it.\n\n"
                "Example:\n"
                "    >>> torch.zeros(2, dtype=torch.float64).new_tensor([1, 2])\n"
                "    tensor([1., 2.], dtype=torch.float64)"),
    {},
};

}  // namespace

void add_constructor() {
  tensor_base_type.tp_new = construct;
  add_methods(methods);
}

void init_factories(PyObject* module) {
  check(PyModule_AddFunctions(ops_owner, functions));
  check(PyModule_AddFunctions(module, module_functions));
}

}  // namespace rushlight::python
