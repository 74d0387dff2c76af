// Attributes of Tensor that are computed: shape, dtype, grad and their like.
#include <rushlight/autograd.h>
#include <rushlight/ops.h>

#include "core/sparse.h"
#include "python/autograd.h"
#include "python/bindings.h"
#include "python/parser.h"
#include "python/torch_function.h"

namespace rushlight::python {

namespace {

// ---- reading ----

// The callable that __torch_function__ is told of: Tensor.shape.__get__.
Object accessor(const void* name, const char* which) {
  const Object descriptor = Object::check(PyObject_GetAttrString(
      reinterpret_cast<PyObject*>(tensor_class), static_cast<const char*>(name)));
  return Object::check(PyObject_GetAttrString(descriptor.get(), which));
}

template <PyObject* (*read)(const Tensor&)>
PyObject* getter(PyObject* self, void* name) {
  return translate_errors([&]() -> PyObject* {
    if (RL_UNLIKELY(mode_active() || overrides(self))) {
      return call_torch_function(accessor(name, "__get__").get(), nullptr, &self, 1, nullptr);
    }
    return read(unwrap(self));
  });
}

PyObject* boolean(bool value) { return PyBool_FromLong(value); }

PyObject* shape(const Tensor& t) {
  if (RL_UNLIKELY(is_special(t))) {
    if (const Object sizes = ask_class(t, Asked::Sizes, "aten::sym_size")) {
      return size_of(sizes.get());
    }
  }
  return wrap_size(t.sizes());
}
PyObject* dtype(const Tensor& t) { return wrap(t.dtype()); }
PyObject* device(const Tensor& t) {
  return ask_class_or(t, Asked::Device, "prim::device", [&] { return wrap(t.device()); });
}
PyObject* layout(const Tensor& t) {
  return ask_class_or(t, Asked::Layout, "prim::layout", [&] { return wrap(layout_of(t)); });
}
template <Layout is>
PyObject* has_layout(const Tensor& t) {
  return boolean(RL_LIKELY(!is_special(t)) ? is == kStrided
                                           : as_layout(Object::check(layout(t)).get()) == is);
}
PyObject* ndim(const Tensor& t) {
  return ask_class_or(t, Asked::Sizes, "aten::dim", [&] { return PyLong_FromLongLong(t.dim()); });
}
PyObject* nbytes(const Tensor& t) { return PyLong_FromLongLong(t.nbytes()); }
PyObject* itemsize_of(const Tensor& t) { return PyLong_FromLongLong(t.element_size()); }
template <DeviceType is>
PyObject* is_on_device(const Tensor& t) {
  if (RL_LIKELY(!is_special(t))) {
    return boolean(t.device().type() == is);
  }
  return boolean(as_device(Object::check(device(t)).get()).type() == is);
}
PyObject* none(const Tensor&) { Py_RETURN_NONE; }
PyObject* grad_fn(const Tensor& t) { return wrap_node(t.grad_fn()); }
PyObject* return_false(const Tensor&) { return boolean(false); }
PyObject* requires_grad(const Tensor& t) { return boolean(t.requires_grad()); }
PyObject* is_leaf(const Tensor& t) { return boolean(t.is_leaf()); }
PyObject* retains_grad(const Tensor& t) { return boolean(t.retains_grad()); }
PyObject* output_nr(const Tensor& t) { return PyLong_FromLongLong(t.output_nr()); }
PyObject* version(const Tensor& t) {
  RL_CHECK(!t.impl()->is_inference(), "Inference tensors do not track version counter.");
  return PyLong_FromUnsignedLong(t._version());
}
PyObject* identity(const Tensor& t) { return PyLong_FromVoidPtr(t.impl()); }
PyObject* grad(const Tensor& t) { return wrap(t.grad()); }
PyObject* data(const Tensor& t) { return wrap(t.variable_data()); }
PyObject* base(const Tensor& t) { return wrap(t.is_view() ? t._base() : Tensor()); }
PyObject* real_part(const Tensor& t) { return wrap(rushlight::real(t)); }
PyObject* imaginary_part(const Tensor& t) { return wrap(rushlight::imag(t)); }
PyObject* names(const Tensor& t) {
  Object out = Object::check(PyTuple_New(t.dim()));
  for (int64_t i = 0; i < t.dim(); i++) {
    PyTuple_SET_ITEM(out.get(), i, Py_NewRef(Py_None));
  }
  return out.release();
}
PyObject* transpose_all(const Tensor& t) {
  if (t.dim() != 2 && t.dim() != 0) {
    static bool warned = false;
    warn_once(warned,
              "`x.T` on tensors of dimension other than 2 is deprecated. `x.mT` transposes each "
              "matrix of a batch; `x.permute(*range(x.ndim)[::-1])` reverses the dimensions");
  }
  return wrap(t.numpy_T());
}
PyObject* transpose_matrices(const Tensor& t) { return wrap(t.mT()); }
PyObject* adjoint_of_matrices(const Tensor& t) { return wrap(t.mH()); }
PyObject* adjoint_of_matrix(const Tensor& t) { return wrap(t.matrix_H()); }

// ---- writing ----

template <void (*write)(PyObject* self, PyObject* value)>
int setter(PyObject* self, PyObject* value, void* name) {
  return translate_errors_to_status([&] {
    if (value != nullptr && RL_UNLIKELY(mode_active() || overrides(self))) {
      PyObject* args[] = {self, value};
      Py_DECREF(
          check(call_torch_function(accessor(name, "__set__").get(), nullptr, args, 2, nullptr)));
      return;
    }
    write(self, value);
  });
}

void set_requires_grad(PyObject* self, PyObject* value) {
  if (value == nullptr || !PyBool_Check(value)) {
    raise(PyExc_RuntimeError, "requires_grad must be a bool");
  }
  const Tensor& t = unwrap(self);
  RL_CHECK(t.is_leaf() || value == Py_False,
           "you can only change requires_grad flags of leaf variables.");
  RL_CHECK(value == Py_False || is_differentiable(t.dtype()),
           "only Tensors of floating point and complex dtype can require gradients");
  t.requires_grad_(value == Py_True);
}

void set_grad(PyObject* self, PyObject* value) {
  const Tensor& t = unwrap(self);
  if (value == nullptr || value == Py_None) {
    if (t.grad().defined()) {
      t.mutable_grad() = Tensor();
    }
    return;
  }
  if (!is_tensor(value)) {
    raise(PyExc_TypeError, str("assigned grad expected to be a Tensor or None, but is of type '",
                               type_name(value), "'"));
  }
  rushlight::set_grad(t, unwrap(value));
}

void set_data(PyObject* self, PyObject* value) {
  if (value == nullptr) {
    raise(PyExc_RuntimeError, "Deleting tensor data is not allowed. Delete tensor instead!");
  }
  if (!is_tensor(value)) {
    raise(PyExc_TypeError, str("Variable data has to be a tensor, but got ", type_name(value)));
  }
  unwrap(self).set_data(unwrap(value));
}

template <Tensor (*part)(const Tensor&)>
void set_part(PyObject* self, PyObject* value) {
  if (value == nullptr) {
    raise(PyExc_TypeError, "a part of a tensor cannot be deleted");
  }
  const Tensor to = part(unwrap(self));
  if (!is_tensor(value) && !is_number(value)) {
    raise(PyExc_TypeError, str("can't assign a ", type_name(value), " to a part of a tensor"));
  }
  rushlight::copy_(to, is_tensor(value) ? unwrap(value) : make_number(to_scalar(value)));
}

#define GET(name, read, doc) {name, getter<read>, nullptr, doc, const_cast<char*>(name)}
#define GET_SET(name, read, write, doc) \
  {name, getter<read>, setter<write>, doc, const_cast<char*>(name)}
PyGetSetDef properties[] = {
    GET("shape", shape, "The sizes, as torch.Size."),
    GET("dtype", dtype, "The type of the elements."),
    GET("device", device, "Where it lies."),
    GET("layout", layout, "torch.strided, or the kind of sparse tensor."),
    GET("ndim", ndim, "The number of dimensions."),
    GET("nbytes", nbytes, "Bytes of all elements."),
    GET("itemsize", itemsize_of, "Bytes of an element."),
    GET("is_cuda", is_on_device<kCUDA>, "Whether it lies on a GPU."),
    GET("is_cpu", is_on_device<kCPU>, "Whether it lies in main memory."),
    GET("is_meta", is_on_device<kMeta>, "Whether it has a shape and no elements."),
    GET("is_sparse", has_layout<kSparse>, "Whether its layout is torch.sparse_coo."),
    GET("is_sparse_csr", has_layout<kSparseCsr>, "Whether its layout is torch.sparse_csr."),
    GET("is_mkldnn", return_false, "False."),
    GET("is_mps", return_false, "False."),
    GET("is_xpu", return_false, "False."),
    GET("is_xla", return_false, "False."),
    GET("is_mtia", return_false, "False."),
    GET("is_quantized", return_false, "False."),
    GET("is_nested", return_false, "False."),
    GET_SET("requires_grad", requires_grad, set_requires_grad, "Whether gradients are recorded."),
    GET("is_leaf", is_leaf, "Whether no recorded op made it."),
    GET("grad_fn", grad_fn, "The node of the op that made this tensor; None for leaves."),
    GET("retains_grad", retains_grad, "Whether a result keeps its gradient."),
    GET("output_nr", output_nr, "Which result of its grad_fn it is."),
    GET("_cdata", identity, "Its identity as an int."),
    GET("_version", version, "How often it was written."),
    GET_SET("grad", grad, set_grad, "The accumulated gradient, or None."),
    GET_SET("_grad", grad, set_grad, nullptr),
    GET_SET("data", data, set_data, "The same memory, unknown to autograd."),
    GET("_base", base, "The tensor that it is a view of, or None."),
    GET_SET("real", real_part, set_part<rushlight::real>,
            "The real part; real tensors themselves."),
    GET_SET("imag", imaginary_part, set_part<rushlight::imag>, "The imaginary part, a view."),
    GET("names", names, "A None for each dimension."),
    GET("name", none, "None."),
    GET("T", transpose_all, "Dimensions in reverse."),
    GET("mT", transpose_matrices, "The last two dimensions swapped."),
    GET("H", adjoint_of_matrix, "The conjugate transpose of a matrix."),
    GET("mH", adjoint_of_matrices, "The last two dimensions swapped, and conjugated."),
    {},
};
#undef GET
#undef GET_SET

}  // namespace

void add_properties() { add_getset(properties); }

}  // namespace rushlight::python
