// What bindings of file formats share: OSError for errors of the file system, Python's buffers as
// sources.
#pragma once

#include <cerrno>
#include <memory>
#include <string_view>

#include "python/common.h"
#include "serialize/file.h"

namespace rushlight::python {

// `translate_errors`, with errors of the file system as OSError.
template <class F>
PyObject* translate_file_errors(F&& f) {
  return translate_errors([&]() -> PyObject* {
    try {
      return f();
    } catch (const serialize::FileError& e) {
      errno = e.code();
      const Object name = Object::check(PyUnicode_DecodeFSDefault(e.path().c_str()));
      PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, name.get());
      throw PythonError();
    }
  });
}

// The bytes of a Python object, which it keeps in place; `buffer` is for "y*" or
// PyObject_GetBuffer.
struct BufferView {
  Py_buffer buffer{};
  BufferView() = default;
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;
  ~BufferView() { PyBuffer_Release(&buffer); }
  std::string_view bytes() const {
    return {static_cast<const char*>(buffer.buf), static_cast<size_t>(buffer.len)};
  }
};

// Keeps a Python buffer until the last storage on it is gone, on whatever thread that happens.
inline std::shared_ptr<serialize::Source> source_of_buffer(PyObject* o) {
  auto* view = new Py_buffer{};
  if (PyObject_GetBuffer(o, view, PyBUF_SIMPLE) != 0) {
    delete view;
    throw PythonError();
  }
  const std::shared_ptr<void> owner(view, [](void* p) {
    const WithGil gil;
    PyBuffer_Release(static_cast<Py_buffer*>(p));
    delete static_cast<Py_buffer*>(p);
  });
  return serialize::memory_source(view->buf, static_cast<size_t>(view->len), owner);
}

// A path, as str, or a buffer; only files are mapped (open_source).
inline std::shared_ptr<serialize::Source> source_from(PyObject* o, bool map = false,
                                                      bool shared = false) {
  if (!PyUnicode_Check(o)) {
    return source_of_buffer(o);
  }
  const Object path = Object::check(PyUnicode_EncodeFSDefault(o));
  return serialize::open_source(PyBytes_AS_STRING(path.get()), map, shared);
}

}  // namespace rushlight::python
