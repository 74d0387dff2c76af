// Pixels that lie in somebody else's memory, by Arrow's C data interface
// (https://arrow.apache.org/docs/format/CDataInterface.html): a schema and an array, as capsules.
#include <cstring>

#include "core/op_support.h"
#include "python/bindings.h"
#include "python/convert.h"

namespace rushlight::python {

namespace {

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* context;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* context;
};

bool is(const char* format, const char* what) {
  return format != nullptr && std::strcmp(format, what) == 0;
}

void release_array(void*, size_t, void* context) {
  const std::unique_ptr<ArrowArray> array(static_cast<ArrowArray*>(context));
  if (array->release != nullptr && Py_IsInitialized() != 0) {
    const WithGil gil;
    array->release(array.get());
  }
}

// _pixels(schema, array, height, width): bytes (H, W, 1), or (H, W, 4) of lists of four.
PyObject* pixels(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    PyObject* schema_capsule;
    PyObject* array_capsule;
    Py_ssize_t height;
    Py_ssize_t width;
    if (!PyArg_ParseTuple(args, "OOnn:_pixels", &schema_capsule, &array_capsule, &height, &width)) {
      throw PythonError();
    }
    const auto* schema =
        static_cast<ArrowSchema*>(PyCapsule_GetPointer(schema_capsule, "arrow_schema"));
    auto* given =
        schema == nullptr
            ? nullptr
            : static_cast<ArrowArray*>(PyCapsule_GetPointer(array_capsule, "arrow_array"));
    if (given == nullptr) {
      throw PythonError();
    }
    RL_CHECK_VALUE(given->release != nullptr, "_pixels: the array was taken before");
    const bool lists = is(schema->format, "+w:4") && schema->n_children == 1 &&
                       is(schema->children[0]->format, "C") && given->n_children == 1;
    RL_CHECK_VALUE(lists || is(schema->format, "C"),
                   "_pixels: bytes or lists of four bytes, not Arrow's format '",
                   schema->format != nullptr ? schema->format : "", "'");
    const ArrowArray& values = lists ? *given->children[0] : *given;
    const int64_t lanes = lists ? 4 : 1;
    RL_CHECK_VALUE(height > 0 && width > 0 && given->length / width == height &&
                       given->length % width == 0 && values.length == given->length * lanes &&
                       given->offset == 0 && values.offset == 0 && given->null_count == 0 &&
                       values.n_buffers == 2 && values.buffers[1] != nullptr,
                   "_pixels: not the bytes of a picture of ", height, " by ", width);
    auto array = std::make_unique<ArrowArray>(*given);  // moved: the capsule has nothing to release
    given->release = nullptr;
    void* const data = const_cast<void*>(values.buffers[1]);
    const auto nbytes = static_cast<size_t>(values.length);
    auto impl = TensorImpl::make(
        StorageImpl::borrow(data, nbytes, kCPU, release_array, array.release()), kUInt8, kCPU);
    impl->set_sizes_contiguous({int64_t{height}, int64_t{width}, lanes});
    return wrap(Tensor(std::move(impl)));
  });
}

PyMethodDef functions[] = {
    {"_pixels", pixels, METH_VARARGS, "The pixels of an Arrow array of bytes as a tensor."},
    {},
};

}  // namespace

void init_arrow(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
