// Methods of Tensor that are no ops: sizes, conversion to Python and to numpy, identity. Those with
// arguments go through the parser as ops do, so that their errors and __torch_function__ are the
// same.
#include <rushlight/batching.h>
#include <rushlight/ops.h>

#include "core/backend.h"
#include "core/op_support.h"
#include "core/recording.h"
#include "core/refusals.h"
#include "core/sparse.h"
#include "python/bindings.h"
#include "python/numpy.h"
#include "python/parser.h"
#include "python/storage.h"
#include "python/torch_function.h"
#include "python/trace.h"

namespace rushlight::python {

namespace {

// ---- without arguments ----

template <PyObject* (*read)(const Tensor&)>
PyObject* call_reader(PyObject* self, const char* name) {
  return translate_errors([&]() -> PyObject* {
    if (RL_UNLIKELY(mode_active() || overrides(self))) {
      return call_torch_function_method(name, {self});
    }
    return read(unwrap(self));
  });
}

PyObject* dim(const Tensor& t) {
  return ask_class_or(t, Asked::Sizes, "aten::dim", [&] { return PyLong_FromLongLong(t.dim()); });
}
PyObject* numel(const Tensor& t) {
  return ask_class_or(t, Asked::Sizes, "aten::sym_numel",
                      [&] { return PyLong_FromLongLong(t.numel()); });
}
PyObject* element_size(const Tensor& t) { return PyLong_FromLongLong(t.element_size()); }
PyObject* storage_offset(const Tensor& t) {
  return ask_class_or(t, Asked::Sizes, "aten::sym_storage_offset",
                      [&] { return PyLong_FromLongLong(t.storage_offset()); });
}
PyObject* data_ptr(const Tensor& t) {
  if (t.is_meta() || t.numel() == 0) {
    return PyLong_FromLong(0);
  }
  refuse_in_recording("takes the address of a tensor");
  void* const address = t.data_ptr();
  t.storage()->expose();
  return PyLong_FromVoidPtr(address);
}
PyObject* item(const Tensor& t) { return wrap_number(t.item()); }
PyObject* is_floating_point(const Tensor& t) { return PyBool_FromLong(t.is_floating_point()); }
PyObject* is_complex(const Tensor& t) { return PyBool_FromLong(t.is_complex()); }
PyObject* is_signed(const Tensor& t) { return PyBool_FromLong(t.is_signed()); }
PyObject* is_inference(const Tensor& t) { return PyBool_FromLong(t.impl()->is_inference()); }
PyObject* return_false(const Tensor&) { Py_RETURN_FALSE; }
PyObject* get_device(const Tensor& t) {
  return PyLong_FromLong(t.is_cuda() ? t.device().index() : -1);
}
PyObject* untyped_storage(const Tensor& t) {
  RL_CHECK_NOT_IMPLEMENTED(
      batching::level_of(t) == 0,
      "Cannot access storage of a tensor that vmap goes through, for it stands for many: clone() "
      "copies it, and copies, pickles and files are made outside of vmap");
  return wrap_storage(t.storage());
}

template <class T>
PyObject* element(const char* data) {
  if constexpr (std::is_same_v<T, bool>) {
    return PyBool_FromLong(*data);
  } else {
    return wrap_number(Scalar(*reinterpret_cast<const T*>(data)));
  }
}

// Nested lists of a dimension and those inside it.
template <class T>
PyObject* list_of(const char* data, IntArrayRef sizes, IntArrayRef strides, size_t d) {
  if (d == sizes.size()) {
    return element<T>(data);
  }
  Object list = Object::check(PyList_New(sizes[d]));
  for (int64_t i = 0; i < sizes[d]; i++) {
    PyObject* inner =
        list_of<T>(data + i * strides[d] * static_cast<int64_t>(sizeof(T)), sizes, strides, d + 1);
    PyList_SET_ITEM(list.get(), i, check(inner));
  }
  return list.release();
}

PyObject* tolist(const Tensor& t) {
  refuse_in_recording("reads a tensor by tolist()");
  RL_CHECK(!t.is_meta(), "Cannot copy out of meta tensor; no data!");
  const Tensor here = t.is_cpu() ? t : rushlight::to(t.detach(), std::optional<Device>(kCPU));
  return visit_dtype<set_stored>("tolist", here.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return list_of<T>(static_cast<const char*>(here.data_ptr()), here.sizes(), here.strides(), 0);
  });
}

#define PLAIN(method)                                    \
  PyObject* method##_method(PyObject* self, PyObject*) { \
    return call_reader<method>(self, #method);           \
  }
PLAIN(dim)
PLAIN(numel)
PLAIN(element_size)
PLAIN(storage_offset)
PLAIN(data_ptr)
PLAIN(item)
PLAIN(is_floating_point)
PLAIN(is_complex)
PLAIN(is_signed)
PLAIN(is_inference)
PLAIN(get_device)
PLAIN(untyped_storage)
PLAIN(tolist)
#undef PLAIN
PyObject* has_names(PyObject* self, PyObject*) {
  return call_reader<return_false>(self, "has_names");
}
PyObject* pinned_attribute(const Tensor& t) { return PyBool_FromLong(is_pinned(t)); }
PyObject* is_pinned_method(PyObject* self, PyObject*) {
  return call_reader<pinned_attribute>(self, "is_pinned");
}
PyObject* is_shared(PyObject* self, PyObject*) {
  return call_reader<return_false>(self, "is_shared");
}

// ---- with arguments: a table of parameters and what runs on them ----

RL_METHOD(size, Param{"dim", Kind::Int, true, false, false, "None"}) {
  const Tensor& t = a.tensor(0);
  if (RL_UNLIKELY(is_special(t))) {
    if (const Object sizes = ask_class(t, Asked::Sizes, "aten::sym_size")) {
      return a.is_given(1) ? check(PyObject_GetItem(sizes.get(), a.object(1)))
                           : size_of(sizes.get());
    }
  }
  return a.is_given(1) ? PyLong_FromLongLong(t.size(a.integer(1))) : wrap_size(t.sizes());
}

RL_METHOD(stride, Param{"dim", Kind::Int, true, false, false, "None"}) {
  const Tensor& t = a.tensor(0);
  if (RL_UNLIKELY(is_special(t))) {
    if (Object strides = ask_class(t, Asked::Strides, "aten::sym_stride")) {
      return a.is_given(1) ? check(PyObject_GetItem(strides.get(), a.object(1)))
                           : strides.release();
    }
  }
  return a.is_given(1) ? PyLong_FromLongLong(t.stride(a.integer(1))) : wrap_ints(t.strides());
}

RL_METHOD(is_contiguous, Param{"memory_format", Kind::MemoryFormat, false, true, false,
                               "torch.contiguous_format"}) {
  const MemoryFormat format = a.memory_format(1, MemoryFormat::Contiguous);
  RL_CHECK(format != MemoryFormat::Preserve,
           "preserve memory format is unsupported by the contiguous operator");
  if (RL_UNLIKELY(is_special(a.tensor(0)))) {
    if (is_sparse(a.tensor(0))) {
      return PyBool_FromLong(sparse_is_contiguous(a.tensor(0)));
    }
    PyObject* const more = format == MemoryFormat::Contiguous ? nullptr : a.object(1);
    if (const Object answer = ask_class(a.tensor(0), Asked::Strides, "aten::is_contiguous", more)) {
      return PyBool_FromLong(check(PyObject_IsTrue(answer.get())));
    }
  }
  return PyBool_FromLong(a.tensor(0).is_contiguous(format));
}

RL_METHOD(requires_grad_, Param{"requires_grad", Kind::Bool, false, false, false, "True"}) {
  a.tensor(0).requires_grad_(a.boolean(1, true));
  return Py_NewRef(a.object(0));
}

RL_METHOD(is_set_to, Param{"tensor", Kind::Tensor}) {
  const Tensor& x = a.tensor(0);
  const Tensor& y = a.tensor(1);
  return PyBool_FromLong(x.storage() == y.storage() && x.storage_offset() == y.storage_offset() &&
                         x.sizes() == y.sizes() && x.strides() == y.strides());
}

RL_METHOD(numpy, Param{"force", Kind::Bool, false, true, false, "False"}) {
  const Tensor& t = a.tensor(0);
  if (a.boolean(1, false)) {
    return to_numpy(rushlight::to(t.detach(), std::optional<Device>(kCPU)));
  }
  constexpr const char* call = "numpy()";
  RL_CHECK(!t.requires_grad() || !tls.grad_mode, "Can't call ", call,
           " on Tensor that requires grad. Use tensor.detach().", call,
           ": what becomes of an array is not recorded.");
  return to_numpy(t);
}

RL_METHOD(cpu,
          Param{"memory_format", Kind::MemoryFormat, true, true, false, "torch.preserve_format"}) {
  return finish(a, [&] {
    return rushlight::to(a.tensor(0), std::optional<Device>(kCPU), std::nullopt, false, false,
                         a.optional_memory_format(1));
  });
}

RL_METHOD(cuda, Param{"device", Kind::Device, true, false, false, "None"},
          Param{"non_blocking", Kind::Bool, false, false, false, "False"},
          Param{"memory_format", Kind::MemoryFormat, true, true, false, "torch.preserve_format"}) {
  const Device device = a.is_given(1) ? a.device(1) : Device(kCUDA);
  RL_CHECK(device.is_cuda(), "Invalid device, must be cuda device");
  return finish(a, [&] {
    return rushlight::to(a.tensor(0), std::optional<Device>(device), std::nullopt,
                         a.boolean(2, false), false, a.optional_memory_format(3));
  });
}

#define CONVERSION(name, text, dtype)                                                           \
  RL_METHOD_CALLED(                                                                             \
      name, text,                                                                               \
      Param{"memory_format", Kind::MemoryFormat, true, true, false, "torch.preserve_format"}) { \
    return finish(a, [&] {                                                                      \
      return rushlight::to(a.tensor(0), dtype, false, false, a.optional_memory_format(1));      \
    });                                                                                         \
  }
CONVERSION(float_, "float", kFloat32)
CONVERSION(double_, "double", kFloat64)
CONVERSION(short_, "short", kInt16)
CONVERSION(int_, "int", kInt32)
CONVERSION(long_, "long", kInt64)
CONVERSION(char_, "char", kInt8)
CONVERSION(bool_, "bool", kBool)
CONVERSION(half, "half", kFloat16)
CONVERSION(bfloat16, "bfloat16", kBFloat16)
CONVERSION(byte, "byte", kUInt8)
CONVERSION(chalf, "chalf", kComplexHalf)
CONVERSION(cfloat, "cfloat", kComplexFloat)
CONVERSION(cdouble, "cdouble", kComplexDouble)
#undef CONVERSION

// ---- classes ----

// A tensor of class `cls` on the memory of `t`.
PyObject* as_class(PyObject* cls, Tensor t) {
  if (!PyType_Check(cls) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), &tensor_base_type)) {
    raise(PyExc_TypeError, "cls must be a type derived from Tensor");
  }
  return wrap_as(reinterpret_cast<PyTypeObject*>(cls), std::move(t));
}

PyObject* as_subclass(PyObject* self, PyObject* cls) {
  return translate_errors([&] { return as_class(cls, rushlight::alias(unwrap(self))); });
}

PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  return translate_errors([&] {
    static const char* const names[] = {"cls",
                                        "data",
                                        "require_grad",
                                        "dispatch_sizes_strides_policy",
                                        "dispatch_device",
                                        "dispatch_layout",
                                        nullptr};
    PyObject *cls, *data;
    int requires_grad = 0;
    int device = 0;
    int layout = 0;
    const char* policy = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|p$zpp:_make_subclass",
                                     const_cast<char**>(names), &cls, &data, &requires_grad,
                                     &policy, &device, &layout)) {
      throw PythonError();
    }
    const uint8_t asked =
        question_bits(policy != nullptr ? std::optional<std::string_view>(policy) : std::nullopt,
                      device != 0, layout != 0);
    // The dtype is checked before the object exists.
    Tensor t = expect_tensor(data, "_make_subclass(): argument 'data'").variable_data();
    if (requires_grad != 0) {
      t.requires_grad_(true);
    }
    PyObject* made = as_class(cls, t);
    set_class_questions(t, asked);
    return made;
  });
}

// ---- sequences ----

Py_ssize_t length(PyObject* self) {
  Py_ssize_t n = -1;
  translate_errors_to_status([&] {
    if (RL_UNLIKELY(mode_active() || overrides(self))) {
      const Object value = Object::check(call_torch_function_method("__len__", {self}));
      n = PyNumber_AsSsize_t(value.get(), PyExc_OverflowError);
      return;
    }
    const Tensor& t = unwrap(self);
    if (RL_UNLIKELY(is_special(t))) {
      if (const Object sizes = ask_class(t, Asked::Sizes, "aten::sym_size")) {
        const Object first = Object::check(PySequence_GetItem(sizes.get(), 0));
        n = PyNumber_AsSsize_t(first.get(), PyExc_OverflowError);
        return;
      }
    }
    RL_CHECK_TYPE(t.dim() != 0, "len() of a 0-d tensor");
    n = t.sizes()[0];
  });
  return n;
}

PyObject* iterate(PyObject* self) {
  return translate_errors([&] {
    const Tensor& t = unwrap(self);
    RL_CHECK_TYPE(t.dim() != 0, "iteration over a 0-d tensor");
    if (RL_UNLIKELY(current_trace != nullptr)) {
      tell_trace_of_iteration(self);
    }
    const Object slices = Object::check(PyObject_CallMethod(self, "unbind", "i", 0));
    RL_CHECK_TYPE(!is_tensor(slices.get()),
                  "iteration over a tensor: its unbind() gave a tensor, not a list of them");
    return check(PyObject_GetIter(slices.get()));
  });
}

int contains(PyObject* self, PyObject* value) {
  int found = -1;
  translate_errors_to_status([&] {
    if (RL_UNLIKELY(mode_active() || overrides(self))) {
      const Object result =
          Object::check(call_torch_function_method("__contains__", {self, value}));
      found = check(PyObject_IsTrue(result.get()));
      return;
    }
    if (!is_tensor(value) && !is_number(value)) {
      const Object type = Object::check(PyObject_Str(reinterpret_cast<PyObject*>(Py_TYPE(value))));
      raise(PyExc_RuntimeError,
            str("Tensor.__contains__ only supports Tensor or scalar, not ", text_view(type.get())));
    }
    const Object equal = Object::check(PyObject_RichCompare(self, value, Py_EQ));
    const Object any = Object::check(PyObject_CallMethod(equal.get(), "any", nullptr));
    found = check(PyObject_IsTrue(any.get()));
  });
  return found;
}

PySequenceMethods sequence_slots = {.sq_length = length, .sq_contains = contains};

#define PLAIN_ROW(name, doc) {#name, name##_method, METH_NOARGS, #name "($self)\n--\n\n" doc}
PyMethodDef methods[] = {
    PLAIN_ROW(dim, "The number of dimensions."),
    {"ndimension", dim_method, METH_NOARGS,
     "ndimension($self)\n--\n\n"
     "The number of dimensions."},
    PLAIN_ROW(numel, "The number of elements."),
    {"nelement", numel_method, METH_NOARGS,
     "nelement($self)\n--\n\n"
     "The number of elements."},
    PLAIN_ROW(element_size, "Bytes of an element."),
    PLAIN_ROW(storage_offset, "Where it begins in its storage, in elements."),
    PLAIN_ROW(data_ptr, "The address of the first element."),
    PLAIN_ROW(item, "The only element as a Python number."),
    PLAIN_ROW(is_floating_point, "Whether it holds real floating-point numbers."),
    PLAIN_ROW(is_complex, "Whether it holds complex numbers."),
    PLAIN_ROW(is_signed, "Whether its dtype has negative numbers."),
    PLAIN_ROW(is_inference, "Whether it was made in inference mode."),
    PLAIN_ROW(get_device, "The number of its GPU; -1 on the CPU."),
    PLAIN_ROW(untyped_storage, "The memory below it."),
    PLAIN_ROW(tolist, "Nested lists of Python numbers."),
    {"has_names", has_names, METH_NOARGS,
     "has_names($self)\n--\n\n"
     "False."},
    {"is_pinned", is_pinned_method, METH_NOARGS,
     "is_pinned($self)\n--\n\n"
     "Whether a device reads its memory by itself."},
    {"is_shared", is_shared, METH_NOARGS,
     "is_shared($self)\n--\n\n"
     "Whether other processes see its memory."},
    RL_FAST_ROW("size", size_method,
                "size($self, dim=None)\n--\n\n"
                "The sizes, or one of them."),
    RL_FAST_ROW("stride", stride_method,
                "stride($self, dim=None)\n--\n\n"
                "The strides in elements, or one of them."),
    RL_FAST_ROW("is_contiguous", is_contiguous_method,
                "is_contiguous($self, *, memory_format=None)\n--\n\n"
                "Whether the elements lie in order without gaps."),
    RL_FAST_ROW("requires_grad_", requires_grad__method,
                "requires_grad_($self, requires_grad=True)\n--\n\n"
                "Sets in place whether gradients are recorded; returns the tensor."),
    RL_FAST_ROW("is_set_to", is_set_to_method,
                "is_set_to($self, tensor)\n--\n\n"
                "Whether it is the same window on the same storage."),
    RL_FAST_ROW("numpy", numpy_method,
                "numpy($self, *, force=False)\n--\n\n"
                "An array on the same memory."),
    RL_FAST_ROW("cpu", cpu_method,
                "cpu($self, *, memory_format=None)\n--\n\n"
                "Itself, or a copy in main memory."),
    RL_FAST_ROW("cuda", cuda_method,
                "cuda($self, device=None, non_blocking=False, *, memory_format=None)\n--\n\n"
                "Itself, or a copy on a GPU."),
    RL_FAST_ROW("float", float__method,
                "float($self, *, memory_format=None)\n--\n\n"
                "Itself, or a copy in float32."),
    RL_FAST_ROW("double", double__method,
                "double($self, *, memory_format=None)\n--\n\n"
                "Itself, or a copy in float64."),
    RL_FAST_ROW("half", half_method,
                "half($self, *, memory_format=None)\n--\n\n"
                "Itself, or a copy in float16."),
    RL_FAST_ROW("bfloat16", bfloat16_method,
                "bfloat16($self, *, memory_format=None)\n--\n\n"
                "Itself, or a copy in bfloat16."),
    RL_FAST_ROW("short", short__method,
                "short($self, *, memory_format=None)\n--\n\n"
                "Itself, or a copy in int16."),
    RL_FAST_ROW("int", int__method,
                "int($self, *, memory_format=None)\n--\n\n"
                "Itself, or a copy in int32."),
    RL_FAST_ROW("long", long__method,
                "long($self, *, memory_format=None)\n--\n\n"
                "Itself, or a copy in int64."),
    RL_FAST_ROW("char", char__method,
                "char($self, *, memory_format=None)\n--\n\n"
                "Itself, or a copy in int8."),
    RL_FAST_ROW("byte", byte_method,
                "byte($self, *, memory_format=None)\n--\n\n"
                "Itself, or a copy in uint8."),
    RL_FAST_ROW("bool", bool__method,
                "bool($self, *, memory_format=None)\n--\n\n"
                "Itself, or a copy in bool."),
    RL_FAST_ROW("chalf", chalf_method,
                "chalf($self, *, memory_format=None)\n--\n\n"
                "Itself, or a copy in complex32."),
    RL_FAST_ROW("cfloat", cfloat_method,
                "cfloat($self, *, memory_format=None)\n--\n\n"
                "Itself, or a copy in complex64."),
    RL_FAST_ROW("cdouble", cdouble_method,
                "cdouble($self, *, memory_format=None)\n--\n\n"
                "Itself, or a copy in complex128."),
    {"as_subclass", as_subclass, METH_O,
     "as_subclass($self, cls, /)\n--\n\n"
     "The same tensor as an instance of a subclass."},
    {"_make_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "A tensor of a subclass on the memory of another, apart from autograd."},
    {},
};

}  // namespace

void add_tensor_methods() {
  tensor_base_type.tp_as_sequence = &sequence_slots;
  tensor_base_type.tp_iter = iterate;
  add_methods(methods);
}

}  // namespace rushlight::python
