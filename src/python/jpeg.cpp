// JPEG files as the pixels that Pillow makes of them, by the library that Pillow uses
// (libjpeg-turbo, with its defaults), where the build found one: straight into a tensor, part of a
// picture alone, several files at once. What is not plain, damaged files above all, is left to
// Pillow.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/op_support.h"
#include "core/parallel.h"
#include "python/bindings.h"
#include "python/files.h"
#include "python/tensor_type.h"

#ifdef RL_HAVE_JPEG
#include <jpeglib.h>
#endif

namespace rushlight::python {

namespace {

// A part of a picture of height x width pixels, for (h, w, lanes) bytes: one a pixel where it is
// grey, else red, green, blue and 255.
struct Job {
  std::string_view file;
  int64_t height;
  int64_t width;
  int64_t top;
  int64_t left;
  Tensor to;
  bool done = false;
};

#ifdef RL_HAVE_JPEG

struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
};

// The library's own handlers print, which code that can lie anywhere in memory cannot do with the
// archives that distributions have; nothing is printed here.
void on_error(j_common_ptr info) { std::longjmp(reinterpret_cast<Errors*>(info->err)->jump, 1); }

// Warnings are of damaged data, and traces of nothing.
void on_message(j_common_ptr info, int level) { info->err->num_warnings += level < 0 ? 1 : 0; }

// Whether the file ends as it should; what follows that is little.
bool has_end(std::string_view file) {
  constexpr size_t last_bytes = 64;
  const auto last = file.substr(file.size() - std::min(file.size(), last_bytes));
  return last.find("\xff\xd9") != std::string_view::npos;
}

// Between the jumps nothing may need a destructor. `row` has room for a row of the picture.
bool decode(const Job& job, JSAMPLE* row) {
  jpeg_decompress_struct info;
  Errors errors{};
  info.err = &errors.base;
  errors.base.error_exit = on_error;
  errors.base.emit_message = on_message;
  errors.base.output_message = [](j_common_ptr) {};
  errors.base.format_message = [](j_common_ptr, char* text) { *text = 0; };
  errors.base.reset_error_mgr = [](j_common_ptr to) { to->err->num_warnings = 0; };
  if (setjmp(errors.jump) != 0) {  // NOLINT: the library's way
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(job.file.data()), job.file.size());
  jpeg_read_header(&info, TRUE);
  const int64_t lanes = job.to.size(2);
  // Of a picture in colours grey is the first component, if it is brightness.
  if ((lanes == 4 && info.num_components != 3) || info.image_height != job.height ||
      info.image_width != job.width) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  info.out_color_space = lanes == 1 ? JCS_GRAYSCALE : JCS_EXT_RGBX;
  jpeg_start_decompress(&info);
  const auto rows = static_cast<JDIMENSION>(job.to.size(0));
  const auto columns = static_cast<JDIMENSION>(job.to.size(1));
  const auto top = static_cast<JDIMENSION>(job.top);
  const auto left = static_cast<JDIMENSION>(job.left);
  const bool whole_rows = columns == info.output_width;
  // At the sides of what it makes, the library takes colours as at those of the picture; so it
  // makes more: a coarse column of colour, of at most four pixels, on either side.
  constexpr JDIMENSION side = 4;
  JDIMENSION first = left - std::min(left, side);
  JDIMENSION count = std::min(info.output_width, left + columns + side) - first;
  if (!whole_rows) {
    jpeg_crop_scanline(&info, &first, &count);
  }
  if (top > 0) {
    jpeg_skip_scanlines(&info, top);
  }
  auto* to = job.to.data<JSAMPLE>();
  const size_t bytes = static_cast<size_t>(columns) * lanes;
  while (info.output_scanline < top + rows) {
    if (whole_rows) {
      // As many as the library makes at a time, at most.
      JSAMPROW some[16];
      const JDIMENSION n = std::min<JDIMENSION>(std::size(some), top + rows - info.output_scanline);
      for (JDIMENSION i = 0; i < n; i++) {
        some[i] = to + i * bytes;
      }
      to += jpeg_read_scanlines(&info, some, n) * bytes;
    } else {
      jpeg_read_scanlines(&info, &row, 1);
      std::memcpy(to, row + (left - first) * lanes, bytes);
      to += bytes;
    }
  }
  if (!has_end(job.file)) {
    // Whether rows are missing shows when they are read, not when they are skipped.
    while (info.output_scanline < info.output_height) {
      jpeg_read_scanlines(&info, &row, 1);
    }
  }
  if (info.output_scanline == info.output_height) {
    jpeg_finish_decompress(&info);
  }
  const bool clean = info.err->num_warnings == 0;
  jpeg_destroy_decompress(&info);
  return clean;
}

void run(Job& job) {
  std::vector<JSAMPLE> row(static_cast<size_t>((job.width + 64) * job.to.size(2)));
  job.done = decode(job, row.data());
}

#else

void run(Job&) {}

#endif

// _decode_jpegs([(file, height, width, top, left, to), ...]): whether each was decoded.
PyObject* decode_jpegs(PyObject*, PyObject* list) {
  return translate_errors([&]() -> PyObject* {
    const Object jobs = Object::check(PySequence_Fast(list, "_decode_jpegs: a list of jobs"));
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(jobs.get());
    std::vector<std::unique_ptr<BufferView>> views;
    std::vector<Job> work(n);
    for (Py_ssize_t i = 0; i < n; i++) {
      PyObject* file;
      PyObject* to;
      long long place[4];  // NOLINT: Python's type
      PyObject* item = PySequence_Fast_GET_ITEM(jobs.get(), i);
      if (!PyArg_ParseTuple(expect_tuple(item, "_decode_jpegs(): a job"), "OLLLLO:_decode_jpegs",
                            &file, &place[0], &place[1], &place[2], &place[3], &to)) {
        throw PythonError();
      }
      auto view = std::make_unique<BufferView>();
      check(PyObject_GetBuffer(file, &view->buffer, PyBUF_SIMPLE));
      Job& job = work[i];
      job.file = view->bytes();
      views.push_back(std::move(view));
      job.height = place[0];
      job.width = place[1];
      job.top = place[2];
      job.left = place[3];
      job.to = expect_tensor(to, "_decode_jpegs");
      const Tensor& t = job.to;
      RL_CHECK_VALUE(t.dtype() == kUInt8 && t.device().is_cpu() && t.dim() == 3 &&
                         t.is_contiguous() && (t.size(2) == 1 || t.size(2) == 4) && t.numel() > 0,
                     "_decode_jpegs: bytes (H, W, 1) or (H, W, 4) in a row, not ", t.sizes());
      constexpr int64_t longest = 65535;  // the format has 16 bits for it
      RL_CHECK_VALUE(job.height <= longest && job.width <= longest && job.height > 0 &&
                         job.width > 0 && job.top >= 0 && job.left >= 0 &&
                         job.top <= job.height - t.size(0) && job.left <= job.width - t.size(1),
                     "_decode_jpegs: a part of ", t.sizes(), " at ", job.top, ", ", job.left,
                     " is not inside of ", job.height, " by ", job.width);
    }
    {
      const WithoutGil free;
      parallel_for(0, n, 1, [&](int64_t begin, int64_t end) {
        std::for_each(work.begin() + begin, work.begin() + end, run);
      });
    }
    Object done = Object::check(PyList_New(n));
    for (Py_ssize_t i = 0; i < n; i++) {
      PyList_SET_ITEM(done.get(), i, PyBool_FromLong(work[i].done ? 1 : 0));
    }
    return done.release();
  });
}

PyMethodDef functions[] = {
    {"_decode_jpegs", decode_jpegs, METH_O,
     "Decodes JPEG files into tensors of bytes, on all threads; says which could be."},
    {},
};

}  // namespace

void init_jpeg(PyObject* module) {
  check(PyModule_AddFunctions(module, functions));
#ifdef RL_HAVE_JPEG
  check(PyModule_AddIntConstant(module, "_has_jpeg", 1));
#else
  check(PyModule_AddIntConstant(module, "_has_jpeg", 0));
#endif
}

}  // namespace rushlight::python
