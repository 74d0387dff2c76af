// dtype, device, layout, memory_format and Size as Python types; Generator is in
// generator_type.cpp.
#include "core/sparse.h"
#include "python/types.h"

#include <cstddef>

#include "core/op_support.h"
#include "python/convert.h"
#include "python/tensor_type.h"
#include "python/trace.h"

namespace rushlight::python {

namespace {

PyObject* module_name(PyObject*, void*) { return PyUnicode_InternFromString("rushlight"); }

// ---- dtype ----

enum class Sign : uint8_t { No, Yes, Unknown };

struct DtypeObject {
  PyObject_HEAD ScalarType value;  // Undefined: a name of which no tensor is made
  const DtypeInfo* info;
  Sign sign;
};
PyObject* dtypes[dtype_rows];

// Dtypes that programs list and compare with; what would make a tensor of one refuses.
struct NameOnly {
  DtypeInfo info;
  Sign sign;
};
constexpr NameOnly named(const char* name, const char* enum_name, Sign sign, int8_t itemsize = 1,
                         bool is_floating = false) {
  DtypeInfo info = dtype_info(ScalarType::Undefined);
  info.name = info.alias = name;
  info.enum_name = enum_name;
  info.itemsize = itemsize;
  info.is_floating = is_floating;
  info.is_signed = sign == Sign::Yes;
  return {info, sign};
}
constexpr NameOnly names_only[] = {
    // of quantised tensors
    named("qint8", "QInt8", Sign::Unknown),
    named("quint8", "QUInt8", Sign::Unknown),
    named("qint32", "QInt32", Sign::Unknown, 4),
    named("quint4x2", "QUInt4x2", Sign::Unknown),
    named("quint2x4", "QUInt2x4", Sign::Unknown),
    // integers of a few bits
    named("uint1", "UInt1", Sign::No),
    named("uint2", "UInt2", Sign::No),
    named("uint3", "UInt3", Sign::No),
    named("uint4", "UInt4", Sign::No),
    named("uint5", "UInt5", Sign::No),
    named("uint6", "UInt6", Sign::No),
    named("uint7", "UInt7", Sign::No),
    named("int1", "Int1", Sign::Yes),
    named("int2", "Int2", Sign::Yes),
    named("int3", "Int3", Sign::Yes),
    named("int4", "Int4", Sign::Yes),
    named("int5", "Int5", Sign::Yes),
    named("int6", "Int6", Sign::Yes),
    named("int7", "Int7", Sign::Yes),
    // scales of blocks, and two floats of four bits
    named("float8_e8m0fnu", "Float8_e8m0fnu", Sign::No, 1, true),
    named("float4_e2m1fn_x2", "Float4_e2m1fn_x2", Sign::Yes, 1, true),
    // bits without a meaning
    named("bits1x8", "Bits1x8", Sign::Unknown),
    named("bits2x4", "Bits2x4", Sign::Unknown),
    named("bits4x2", "Bits4x2", Sign::Unknown),
    named("bits8", "Bits8", Sign::Unknown),
    named("bits16", "Bits16", Sign::Unknown, 2),
};

ScalarType dtype_of(PyObject* o) { return reinterpret_cast<DtypeObject*>(o)->value; }
const DtypeInfo& info_of(PyObject* o) { return *reinterpret_cast<DtypeObject*>(o)->info; }
bool is_name_only(PyObject* o) { return dtype_of(o) == ScalarType::Undefined; }
PyObject* make_dtype(ScalarType value, const DtypeInfo& info, Sign sign) {
  PyObject* o = check(dtype_type.tp_alloc(&dtype_type, 0));
  reinterpret_cast<DtypeObject*>(o)->value = value;
  reinterpret_cast<DtypeObject*>(o)->info = &info;
  reinterpret_cast<DtypeObject*>(o)->sign = sign;
  return o;
}

PyObject* dtype_repr(PyObject* self) {
  return PyUnicode_FromFormat("torch.%s", info_of(self).name);
}
// Pickle and copy look the name up in the package.
PyObject* dtype_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(info_of(self).name);
}
PyObject* dtype_is_floating(PyObject* self, void*) {
  return PyBool_FromLong(info_of(self).is_floating);
}
PyObject* dtype_is_complex(PyObject* self, void*) {
  return PyBool_FromLong(info_of(self).is_complex);
}
PyObject* dtype_is_signed(PyObject* self, void*) {
  const Sign sign = reinterpret_cast<DtypeObject*>(self)->sign;
  if (sign == Sign::Unknown) {
    PyErr_Format(PyExc_RuntimeError,
                 "isSignedType not supported for quantized types and bits: torch.%s",
                 info_of(self).name);
    return nullptr;
  }
  return PyBool_FromLong(sign == Sign::Yes);
}
// What the package builds names and limits from.
PyObject* dtype_kind(PyObject* self, void*) {
  return PyUnicode_FromString(info_of(self).enum_name);
}
PyObject* dtype_computes(PyObject* self, void*) {
  return PyBool_FromLong(!is_name_only(self) && contains(set_all, dtype_of(self)));
}
PyObject* dtype_limits(PyObject* self, void*) {
  return translate_errors([&]() -> PyObject* {
    const FloatLimits limits = float_limits(*as_dtype(self));
    return Py_BuildValue("ddd", limits.eps, limits.max, limits.smallest_normal);
  });
}
PyObject* dtype_itemsize(PyObject* self, void*) { return PyLong_FromLong(info_of(self).itemsize); }
PyObject* dtype_to_real(PyObject* self, PyObject*) {
  return is_name_only(self) ? Py_NewRef(self) : wrap(to_real(dtype_of(self)));
}
PyObject* dtype_to_complex(PyObject* self, PyObject*) {
  return translate_errors([&] { return wrap(to_complex(*as_dtype(self))); });
}

PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
    {"to_real", dtype_to_real, METH_NOARGS, "The dtype of the real part."},
    {"to_complex", dtype_to_complex, METH_NOARGS, "The complex dtype with parts of this dtype."},
    {},
};
PyGetSetDef dtype_getset[] = {
    {"is_floating_point", dtype_is_floating, nullptr,
     "Whether it holds real floating-point numbers.", nullptr},
    {"is_complex", dtype_is_complex, nullptr, "Whether it holds complex numbers.", nullptr},
    {"is_signed", dtype_is_signed, nullptr, "Whether it holds negative numbers.", nullptr},
    {"itemsize", dtype_itemsize, nullptr, "Bytes of an element.", nullptr},
    {"_kind", dtype_kind, nullptr, nullptr, nullptr},
    {"_computes", dtype_computes, nullptr, nullptr, nullptr},
    {"_limits", dtype_limits, nullptr, nullptr, nullptr},
    {"__module__", module_name, nullptr, nullptr, nullptr},
    {},
};

// ---- layout and memory format ----

struct EnumObject {
  PyObject_HEAD int value;
  const char* name;
};
PyObject* layouts[num_layouts];
PyObject* memory_formats[4];
constexpr const char* memory_format_names[] = {"contiguous_format", "preserve_format",
                                               "channels_last", "channels_last_3d"};

PyObject* enum_repr(PyObject* self) {
  return PyUnicode_FromFormat("torch.%s", reinterpret_cast<EnumObject*>(self)->name);
}
PyObject* enum_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(reinterpret_cast<EnumObject*>(self)->name);
}
PyMethodDef enum_methods[] = {{"__reduce__", enum_reduce, METH_NOARGS, nullptr}, {}};
PyGetSetDef enum_getset[] = {{"__module__", module_name, nullptr, nullptr, nullptr}, {}};

PyObject* make_enum(PyTypeObject& type, int value, const char* name) {
  auto* o = check(type.tp_alloc(&type, 0));
  reinterpret_cast<EnumObject*>(o)->value = value;
  reinterpret_cast<EnumObject*>(o)->name = name;
  return o;
}

// ---- device ----

struct DeviceObject {
  PyObject_HEAD Device value;
};
PyObject* cpu;  // the one that nearly every tensor has
thread_local std::optional<Device> default_device_;

Device device_of(PyObject* o) { return reinterpret_cast<DeviceObject*>(o)->value; }

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return translate_errors([&]() -> PyObject* {
    static const char* const names[] = {"type", "index", nullptr};
    PyObject* first = nullptr;
    PyObject* index = nullptr;
    // `device(device=…)` is the other spelling.
    Object renamed;
    if (kwargs != nullptr && PyDict_GetItemString(kwargs, "device") != nullptr) {
      renamed = Object::check(PyDict_Copy(kwargs));
      check(PyDict_SetItemString(renamed.get(), "type", PyDict_GetItemString(kwargs, "device")));
      check(PyDict_DelItemString(renamed.get(), "device"));
      kwargs = renamed.get();
    }
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &first,
                                     &index)) {
      throw PythonError();
    }
    if (!is_device(first)) {
      raise(PyExc_TypeError,
            str("device(): argument 'type' must be str or int, not ", type_name(first)));
    }
    const Device d = as_device(first);
    if (index == nullptr || index == Py_None) {
      return wrap(d);
    }
    if (!PyUnicode_Check(first) || d.has_index()) {
      raise(PyExc_RuntimeError,
            str("device: type (string) must not include an index where index is given as well: ",
                PyUnicode_Check(first) ? text_view(first) : std::string_view(d.str())));
    }
    const int64_t i = to_int(index);
    if (i < 0 || i > 127) {
      raise(PyExc_RuntimeError, str("Device index must be between 0 and 127, but got ", i));
    }
    return wrap(Device(d.type(), static_cast<int8_t>(i)));
  });
}
PyObject* device_repr(PyObject* self) {
  const Device d = device_of(self);
  const std::string type = Device(d.type()).str();
  if (d.has_index()) {
    return PyUnicode_FromFormat("device(type='%s', index=%d)", type.c_str(), d.index());
  }
  return PyUnicode_FromFormat("device(type='%s')", type.c_str());
}
PyObject* device_str(PyObject* self) {
  return translate_errors([&] { return text(device_of(self).str()).release(); });
}
PyObject* device_type_name(PyObject* self, void*) {
  return PyUnicode_InternFromString(Device(device_of(self).type()).str().c_str());
}
PyObject* device_index(PyObject* self, void*) {
  const Device d = device_of(self);
  if (!d.has_index()) {
    Py_RETURN_NONE;
  }
  return PyLong_FromLong(d.index());
}
Py_hash_t device_hash(PyObject* self) {
  const Device d = device_of(self);
  return (static_cast<Py_hash_t>(d.type()) << 8) + d.index() + 1;
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != &device_type || Py_TYPE(b) != &device_type || (op != Py_EQ && op != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return PyBool_FromLong((device_of(a) == device_of(b)) == (op == Py_EQ));
}
PyObject* device_reduce(PyObject* self, PyObject*) {
  const Device d = device_of(self);
  const std::string type = Device(d.type()).str();
  auto* cls = reinterpret_cast<PyObject*>(&device_type);
  return d.has_index() ? Py_BuildValue("O(si)", cls, type.c_str(), d.index())
                       : Py_BuildValue("O(s)", cls, type.c_str());
}

// `with torch.device("meta"):` makes it the default inside.
thread_local std::vector<std::optional<Device>> outer_defaults;
PyObject* device_enter(PyObject* self, PyObject*) {
  outer_defaults.push_back(default_device_);
  default_device_ = device_of(self);
  return Py_NewRef(self);
}
PyObject* device_exit(PyObject*, PyObject*) {
  if (outer_defaults.empty()) {
    PyErr_SetString(PyExc_RuntimeError, "device.__exit__() was called without __enter__()");
    return nullptr;
  }
  default_device_ = outer_defaults.back();
  outer_defaults.pop_back();
  Py_RETURN_NONE;
}
PyObject* set_default_device(PyObject*, PyObject* device) {
  return translate_errors([&]() -> PyObject* {
    if (device == Py_None) {
      default_device_.reset();
    } else if (is_device(device)) {
      default_device_ = as_device(device);
    } else {
      raise(PyExc_TypeError,
            str("set_default_device(): argument 'device' must be torch.device, not ",
                type_name(device)));
    }
    Py_RETURN_NONE;
  });
}
PyObject* get_default_device(PyObject*, PyObject*) {
  return wrap(default_device_.value_or(Device(kCPU)));
}

PyMethodDef device_methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, nullptr},
    {"__enter__", device_enter, METH_NOARGS, "Makes this the default device."},
    {"__exit__", device_exit, METH_VARARGS, "Restores the default device."},
    {},
};
PyGetSetDef device_getset[] = {
    {"type", device_type_name, nullptr, "Its kind: \"cpu\", \"cuda\", \"meta\" ...", nullptr},
    {"index", device_index, nullptr, "Its number, or None.", nullptr},
    {},
};

// ---- Size ----

PyObject* size_of_tuple(PyObject* tuple) {
  const Object arguments = Object::check(PyTuple_Pack(1, tuple));
  return PyTuple_Type.tp_new(&size_type, arguments.get(), nullptr);
}
// What a method of tuple returned: a tuple becomes a Size.
PyObject* as_size(PyObject* result) {
  if (result == nullptr || result == Py_NotImplemented || !PyTuple_CheckExact(result)) {
    return result;
  }
  PyObject* size = size_of_tuple(result);
  Py_DECREF(result);
  return size;
}
// Whether it is a size that is no number: a rushlight.SymInt, as that of a ragged dimension, or a
// tensor, as sizes are in a trace.
bool is_symbol(PyObject* item) {
  if (current_trace != nullptr && is_tensor(item)) {
    return true;
  }
  if (PyIndex_Check(item) != 0 || PyUnicode_Check(item)) {
    return false;
  }
  static PyObject* kind = nullptr;
  const int found = PyObject_IsInstance(item, import_attribute(kind, "rushlight._sym", "SymInt"));
  if (found < 0) {
    throw PythonError();
  }
  return found != 0;
}
PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return translate_errors([&] {
    Object self = Object::check(PyTuple_Type.tp_new(type, args, kwargs));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self.get()); i++) {
      PyObject* item = PyTuple_GET_ITEM(self.get(), i);
      if (PyLong_CheckExact(item) || is_symbol(item)) {
        continue;
      }
      if (PyBool_Check(item) || !is_int(item)) {
        raise(PyExc_TypeError, str("torch.Size() takes an iterable of 'int' (item ", i, " is '",
                                   type_name(item), "')"));
      }
      PyTuple_SET_ITEM(self.get(), i, check(PyLong_FromLongLong(to_int(item))));
      Py_DECREF(item);
    }
    return self.release();
  });
}
PyObject* size_repr(PyObject* self) {
  return translate_errors([&] {
    std::string out = "torch.Size([";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); i++) {
      out += i != 0 ? ", " : "";
      const Object item = Object::check(PyObject_Repr(PyTuple_GET_ITEM(self, i)));
      const char* const shown = PyUnicode_AsUTF8(item.get());
      if (shown == nullptr) {
        throw PythonError();
      }
      out += shown;
    }
    return text(out + "])").release();
  });
}
PyObject* size_subscript(PyObject* self, PyObject* key) {
  return translate_errors(
      [&] { return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(self, key)); });
}
PyObject* size_concat(PyObject* a, PyObject* b) {
  return translate_errors([&] {
    if (PyTuple_Check(b) && Py_TYPE(b) != &PyTuple_Type && Py_TYPE(b) != &size_type) {
      // another subclass of tuple decides for itself
      return PyTuple_Type.tp_as_sequence->sq_concat(a, b);
    }
    return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
  });
}
// tuple + Size: Python asks the left operand's sequence slot last, so the number slot catches it.
PyObject* size_add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return size_concat(a, b);
}
PyObject* size_repeat(PyObject* self, Py_ssize_t n) {
  return translate_errors([&]() -> PyObject* {
    PyObject* repeated = PyTuple_Type.tp_as_sequence->sq_repeat(self, n);
    if (repeated != nullptr && Py_TYPE(repeated) == &size_type) {
      return repeated;
    }
    return as_size(repeated);
  });
}
// Of sizes that are tensors.
PyObject* product(PyObject* sizes) {
  return translate_errors([&] {
    Object out = Object::check(PyLong_FromLong(1));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sizes); i++) {
      out = Object::check(PyNumber_Multiply(out.get(), PyTuple_GET_ITEM(sizes, i)));
    }
    return out.release();
  });
}
PyObject* size_numel(PyObject* self, PyObject*) {
  long long n = 1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); i++) {
    if (current_trace != nullptr && is_tensor(PyTuple_GET_ITEM(self, i))) {
      return product(self);
    }
    const long long size = PyLong_AsLongLong(PyTuple_GET_ITEM(self, i));
    if (size == -1 && PyErr_Occurred() != nullptr) {  // a symbol
      return nullptr;
    }
    if (__builtin_mul_overflow(n, size, &n)) {
      PyErr_SetString(PyExc_OverflowError, "the number of elements does not fit into 64 bits");
      return nullptr;
    }
  }
  return PyLong_FromLongLong(n);
}
PyObject* size_reduce(PyObject* self, PyObject*) {
  return translate_errors([&] {
    const Object tuple = Object::check(PySequence_Tuple(self));
    const Object plain = Object::check(PyTuple_GetSlice(self, 0, PyTuple_GET_SIZE(self)));
    return check(Py_BuildValue("O(O)", &size_type, plain.get()));
  });
}
PyNumberMethods size_number = {.nb_add = size_add};
PySequenceMethods size_sequence = {
    .sq_length = nullptr, .sq_concat = size_concat, .sq_repeat = size_repeat};
PyMappingMethods size_mapping = {.mp_length = nullptr, .mp_subscript = size_subscript};
PyMethodDef size_methods[] = {
    {"numel", size_numel, METH_NOARGS, "The number of elements of a tensor of this size."},
    {"__reduce__", size_reduce, METH_NOARGS, nullptr},
    {},
};

PyMethodDef module_functions[] = {
    {"_set_default_device", set_default_device, METH_O, nullptr},
    {"get_default_device", get_default_device, METH_NOARGS,
     "get_default_device()\n--\n\n"
     "The device on which factories make tensors."
     "\n"
     "\n"
     "Example:\n"
     "    >>> torch.get_default_device()\n"
     "    device(type='cpu')"},
    {},
};

}  // namespace

PyTypeObject dtype_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight.dtype",
    .tp_basicsize = sizeof(DtypeObject),
    .tp_repr = dtype_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "The type of a tensor's elements.\n\n"
        "Example:\n"
        "    >>> torch.zeros(2).dtype\n"
        "    torch.float32\n"
        "    >>> torch.float16.itemsize, torch.int8.is_floating_point\n"
        "    (2, False)",
    .tp_methods = dtype_methods,
    .tp_getset = dtype_getset,
};
PyTypeObject layout_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight.layout",
    .tp_basicsize = sizeof(EnumObject),
    .tp_repr = enum_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "How a tensor lies in memory.\n"
        "\n"
        "Example:\n"
        "    >>> torch.eye(2).layout, torch.eye(2).to_sparse().layout\n"
        "    (torch.strided, torch.sparse_coo)",
    .tp_methods = enum_methods,
    .tp_getset = enum_getset,
};
PyTypeObject memory_format_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight.memory_format",
    .tp_basicsize = sizeof(EnumObject),
    .tp_repr = enum_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "The order of dimensions in memory.\n"
        "\n"
        "Example:\n"
        "    >>> x = torch.zeros(1, 3, 4, 5).contiguous(memory_format=torch.channels_last)\n"
        "    >>> x.stride()\n"
        "    (60, 1, 15, 3)",
    .tp_methods = enum_methods,
    .tp_getset = enum_getset,
};
PyTypeObject device_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight.device",
    .tp_basicsize = sizeof(DeviceObject),
    .tp_repr = device_repr,
    .tp_hash = device_hash,
    .tp_str = device_str,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "device(type, index=None)\n--\n\nWhere tensors lie and ops run: cpu, cuda:N or meta.\n\n"
        "As a context manager it is where tensors are made.\n\n"
        "Args:\n"
        "    type: the name, such as \"cpu\" or \"cuda:1\", a device, or an index.\n"
        "    index: which of several.\n\n"
        "Example:\n"
        "    >>> torch.device(\"cuda:1\").index\n"
        "    1\n"
        "    >>> with torch.device(\"meta\"):\n"
        "    ...     torch.zeros(2).device\n"
        "    device(type='meta')",
    .tp_richcompare = device_compare,
    .tp_methods = device_methods,
    .tp_getset = device_getset,
    .tp_new = device_new,
};
PyTypeObject size_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight.Size",
    .tp_repr = size_repr,
    .tp_as_number = &size_number,
    .tp_as_sequence = &size_sequence,
    .tp_as_mapping = &size_mapping,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "The sizes of a tensor: a tuple of ints.\n\n"
        "Args:\n"
        "    iterable: the sizes.\n\n"
        "Example:\n"
        "    >>> torch.zeros(2, 3).shape\n"
        "    torch.Size([2, 3])\n"
        "    >>> torch.zeros(2, 3).shape.numel()\n"
        "    6",
    .tp_methods = size_methods,
    .tp_base = &PyTuple_Type,
    .tp_new = size_new,
};
// ---- conversions ----

PyObject* wrap(ScalarType t) { return Py_NewRef(dtypes[static_cast<int>(t)]); }
PyObject* wrap(Layout l) { return Py_NewRef(layouts[static_cast<int>(l)]); }
PyObject* wrap(MemoryFormat f) { return Py_NewRef(memory_formats[static_cast<int>(f)]); }

PyObject* wrap(Device d) {
  if (cpu != nullptr && d == Device(kCPU)) {
    return Py_NewRef(cpu);
  }
  PyObject* o = check(device_type.tp_alloc(&device_type, 0));
  reinterpret_cast<DeviceObject*>(o)->value = d;
  return o;
}

PyObject* wrap_size(IntArrayRef sizes) {
  PyObject* o = check(PyTuple_Type.tp_alloc(&size_type, static_cast<Py_ssize_t>(sizes.size())));
  for (size_t i = 0; i < sizes.size(); i++) {
    PyTuple_SET_ITEM(o, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(sizes[i]));
  }
  return o;
}

PyObject* size_of(PyObject* ints) {
  return check(PyObject_CallOneArg(reinterpret_cast<PyObject*>(&size_type), ints));
}

PyObject* wrap_ints(IntArrayRef values) {
  PyObject* o = check(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); i++) {
    PyTuple_SET_ITEM(o, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(values[i]));
  }
  return o;
}

PyObject* wrap_number(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool:
      return PyBool_FromLong(s.as<bool>());
    case Scalar::Kind::Int:
      return PyLong_FromLongLong(s.as<int64_t>());
    case Scalar::Kind::UInt:
      return PyLong_FromUnsignedLongLong(s.as<uint64_t>());
    case Scalar::Kind::Float:
      return PyFloat_FromDouble(s.as<double>());
    default: {
      const auto z = s.as<complex<double>>();
      return PyComplex_FromDoubles(z.re, z.im);
    }
  }
}

std::optional<ScalarType> as_dtype(PyObject* o) {
  if (Py_TYPE(o) == &dtype_type) {
    RL_CHECK_AS(NotImplementedError, !is_name_only(o), "rushlight makes no such tensors: torch.",
                info_of(o).name, " is only a name");
    return dtype_of(o);
  }
  const auto is = [&](const PyTypeObject& type) {
    return o == reinterpret_cast<const PyObject*>(&type);
  };
  if (is(PyFloat_Type)) {
    return kFloat64;
  }
  if (is(PyLong_Type)) {
    return kInt64;
  }
  if (is(PyBool_Type)) {
    return kBool;
  }
  if (is(PyComplex_Type)) {
    return kComplexDouble;
  }
  return std::nullopt;
}

std::optional<Layout> as_layout(PyObject* o) {
  if (Py_TYPE(o) != &layout_type) {
    return std::nullopt;
  }
  return static_cast<Layout>(reinterpret_cast<EnumObject*>(o)->value);
}

std::optional<MemoryFormat> as_memory_format(PyObject* o) {
  if (Py_TYPE(o) != &memory_format_type) {
    return std::nullopt;
  }
  return static_cast<MemoryFormat>(reinterpret_cast<EnumObject*>(o)->value);
}

bool is_device(PyObject* o) {
  return Py_TYPE(o) == &device_type || PyUnicode_Check(o) || (is_int(o) && !is_tensor(o));
}

Device as_device(PyObject* o) {
  if (Py_TYPE(o) == &device_type) {
    return device_of(o);
  }
  if (PyUnicode_Check(o)) {
    return Device(text_view(o));
  }
  const int64_t index = to_int(o);
  RL_CHECK(index >= 0, "Device index must not be negative");
  RL_CHECK(index <= 127, "Device index must be between 0 and 127, but got ", index);
  return Device(kCUDA, static_cast<int8_t>(index));
}

std::optional<Device> default_device() { return default_device_; }

void add_type(PyObject* module, PyTypeObject& type) {
  ready(type);
  const std::string_view name = type.tp_name;
  add(module, name.substr(name.rfind('.') + 1).data(), reinterpret_cast<PyObject*>(&type));
}

void init_types(PyObject* module) {
  for (PyTypeObject* type :
       {&dtype_type, &layout_type, &memory_format_type, &device_type, &size_type}) {
    add_type(module, *type);
  }
  const Object all = Object::check(PyTuple_New(std::ssize(all_dtypes)));
  Py_ssize_t place = 0;
  for (const ScalarType t : all_dtypes) {
    PyObject*& made = dtypes[static_cast<int>(t)];
    made = make_dtype(t, dtype_info(t), dtype_info(t).is_signed ? Sign::Yes : Sign::No);
    add(module, dtype_info(t).name, made);
    add(module, dtype_info(t).alias, made);
    PyTuple_SET_ITEM(all.get(), place++, Py_NewRef(made));
  }
  add(module, "_dtypes", all.get());
  for (const NameOnly& name : names_only) {
    add(module, name.info.name, make_dtype(ScalarType::Undefined, name.info, name.sign));
  }
  for (int i = 0; i < num_layouts; i++) {
    const char* const name = layout_name(static_cast<Layout>(i));
    layouts[i] = make_enum(layout_type, i, name);
    add(module, name, layouts[i]);
  }
  for (int i = 0; i < 4; i++) {
    memory_formats[i] = make_enum(memory_format_type, i, memory_format_names[i]);
    add(module, memory_format_names[i], memory_formats[i]);
  }
  cpu = wrap(Device(kCPU));
  init_generator(module);
  check(PyModule_AddFunctions(module, module_functions));
}

}  // namespace rushlight::python
