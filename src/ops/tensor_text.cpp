// A tensor is cut down to the elements that are shown, each becomes text, and all are laid out in
// columns of one width. So printing a large tensor costs what printing its edges costs.
#include "ops/tensor_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <vector>

#include <rushlight/batching.h>
#include <rushlight/factories.h>
#include <rushlight/forward.h>
#include <rushlight/libtorch.h>
#include <rushlight/ops.h>

#include "autograd/node.h"
#include "core/recording.h"
#include "core/sparse.h"

namespace rushlight {
namespace {

// ---- elements as texts of one width ----

struct Column {
  std::vector<std::string> texts;  // padded
  size_t width = 1;

  void pad() {
    for (std::string& text : texts) {
      text.insert(0, width > text.size() ? width - text.size() : 0, ' ');
    }
  }
};

std::string formatted(const char* format, int precision, double value) {
  const int size = std::snprintf(nullptr, 0, format, precision, value);
  std::string out(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(out.data(), out.size(), format, precision, value);
  out.pop_back();
  return out;
}

// One notation for all floats: their widths are those of the finite ones that are not zero.
Column column_of_floats(const std::vector<double>& values, const TextOptions& options) {
  double low = INFINITY;
  double high = 0;
  bool integral = true;
  for (const double v : values) {
    if (v != 0 && std::isfinite(v)) {
      low = std::min(low, std::abs(v));
      high = std::max(high, std::abs(v));
      integral = integral && v == std::trunc(v);
    }
  }
  const bool any = high > 0;
  const bool wide = any && (high / low > 1000.0 || high > 1.0e8 || (!integral && low < 1.0e-4));
  const bool scientific = any && options.scientific.value_or(wide);
  Column out;
  for (const double v : values) {
    if (!std::isfinite(v)) {
      out.texts.emplace_back(std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
    } else if (scientific) {
      out.texts.push_back(formatted("%.*e", options.precision, v));
    } else if (integral) {
      out.texts.push_back(formatted("%.*f", 0, v) + ".");
    } else {
      out.texts.push_back(formatted("%.*f", options.precision, v));
    }
    if (v != 0 && std::isfinite(v)) {
      out.width = std::max(out.width, out.texts.back().size());
    }
  }
  out.pad();
  return out;
}

// Real and imaginary parts, each with a column of its own.
Column column_of_complex(const std::vector<double>& real, const std::vector<double>& imag,
                         const TextOptions& options) {
  Column out = column_of_floats(real, options);
  const Column second = column_of_floats(imag, options);
  for (size_t i = 0; i < real.size(); i++) {
    const std::string& text = second.texts[i];
    const std::string part = text.substr(text.find_first_not_of(' '));
    out.texts[i] += (part[0] == '-' ? "" : "+") + part + "j";
  }
  out.width += second.width + 1;
  return out;
}

template <class T>
Column column_of(const T* data, int64_t n, const TextOptions& options) {
  const auto count = static_cast<size_t>(n);
  if constexpr (is_complex_v<T>) {
    std::vector<double> real(count);
    std::vector<double> imag(count);
    for (size_t i = 0; i < count; i++) {
      real[i] = static_cast<double>(data[i].re);
      imag[i] = static_cast<double>(data[i].im);
    }
    return column_of_complex(real, imag, options);
  } else if constexpr (is_real_float_v<T>) {
    std::vector<double> values(count);
    for (size_t i = 0; i < count; i++) {
      values[i] = static_cast<double>(data[i]);
    }
    return column_of_floats(values, options);
  } else {
    Column out;
    for (size_t i = 0; i < count; i++) {
      if constexpr (std::is_same_v<T, bool>) {
        out.texts.emplace_back(data[i] ? "True" : "False");
      } else {
        out.texts.push_back(std::to_string(data[i]));
      }
      out.width = std::max(out.width, out.texts.back().size());
    }
    out.pad();
    return out;
  }
}

// ---- layout ----

struct Layouter {
  const TextOptions& options;
  const Column& column;
  const std::vector<bool>& cuts;  // a flag for each dimension: its middle is left out
  IntArrayRef sizes;
  size_t next = 0;  // element

  // The last dimension, broken into lines.
  std::string vector(size_t dim, int64_t indent) {
    std::vector<std::string> texts;
    for (int64_t i = 0; i < sizes[dim]; i++) {
      if (cuts[dim] && i == options.edge_items) {
        texts.emplace_back(" ...");
      }
      texts.push_back(column.texts[next++]);
    }
    if (cuts[dim] && options.edge_items == 0) {
      texts = {"..."};
    }
    const auto room = static_cast<size_t>(std::max<int64_t>(
        1, (options.line_width - indent) / static_cast<int64_t>(column.width + 2)));
    std::string out = "[";
    for (size_t i = 0; i < texts.size(); i++) {
      if (i > 0) {
        out += i % room == 0 ? ",\n" + std::string(static_cast<size_t>(indent) + 1, ' ') : ", ";
      }
      out += texts[i];
    }
    return out + "]";
  }

  std::string block(size_t dim, int64_t indent) {
    const size_t below = sizes.size() - dim - 1;
    if (below == 0) {
      return vector(dim, indent);
    }
    const std::string between =
        "," + std::string(below, '\n') + std::string(static_cast<size_t>(indent) + 1, ' ');
    std::string out = "[";
    for (int64_t i = 0; i < sizes[dim]; i++) {
      if (cuts[dim] && i == options.edge_items) {
        out += (i > 0 ? between : "") + std::string("...");
      }
      out += (i > 0 ? between : "") + block(dim + 1, indent + 1);
    }
    return out + (cuts[dim] && options.edge_items == 0 ? "...]" : "]");
  }
};

// The elements that are shown, on the CPU and without gaps.
Tensor shown_part(Tensor t, const std::vector<bool>& cuts, int64_t edge) {
  for (int64_t d = 0; d < t.dim(); d++) {
    if (cuts[static_cast<size_t>(d)]) {
      t = cat({narrow(t, d, 0, edge), narrow(t, d, t.size(d) - edge, edge)}, d);
    }
  }
  return contiguous(to(t, std::optional<Device>(kCPU)));
}

// ---- what follows the values ----

std::string sizes_text(IntArrayRef sizes) {
  std::string out = "(";
  for (size_t i = 0; i < sizes.size(); i++) {
    out += str(i == 0 ? "" : ", ", sizes[i]);
  }
  return out + (sizes.size() == 1 ? ",)" : ")");
}
std::string dtype_text(ScalarType dtype) { return str("dtype=torch.", dtype_info(dtype).name); }

bool is_default(ScalarType dtype) {
  const ScalarType usual = get_default_dtype();
  return dtype == usual || dtype == kLong || dtype == kBool ||
         dtype == (usual == kDouble ? kComplexDouble : kComplexFloat);
}

std::string gradient_text(const Tensor& t) {
  try {
    if (const Ref<Node> node = t.grad_fn()) {
      const std::string name = node->name();
      const size_t space = name.rfind("::");
      return "grad_fn=<" + (space == std::string::npos ? name : name.substr(space + 2)) + ">";
    }
  } catch (const Error&) {  // a view that a write without recording made underivable
    return "grad_fn=<Invalid>";
  }
  return t.requires_grad() ? "requires_grad=True" : "";
}

// Each suffix on the line that it still fits on.
std::string with_suffixes(std::string text, const std::vector<std::string>& suffixes, size_t indent,
                          int64_t line_width) {
  const size_t line = text.rfind('\n');
  size_t width = line == std::string::npos ? text.size() + 2 : text.size() - line + 1;
  for (const std::string& suffix : suffixes) {
    if (suffix.empty()) {
      continue;
    }
    if (static_cast<int64_t>(width + suffix.size() + 2) > line_width) {
      text += ",\n" + std::string(indent, ' ') + suffix;
      width = indent + suffix.size();
    } else {
      text += ", " + suffix;
      width += suffix.size() + 2;
    }
  }
  return text + ")";
}

constexpr size_t prefix_size = 7;  // "tensor("

std::string sparse_text(const Tensor& t, const TextOptions& options) {
  const Tensor values = t.detach();
  const bool is_coo = values.layout() == kSparse;
  const bool by_row = values.layout() == kSparseCsr || values.layout() == kSparseBsr;
  std::vector<std::pair<const char*, Tensor>> parts;
  if (is_coo) {
    parts = {{"indices", values._indices()}};
  } else if (by_row) {
    parts = {{"crow_indices", values.crow_indices()}, {"col_indices", values.col_indices()}};
  } else {
    parts = {{"ccol_indices", values.ccol_indices()}, {"row_indices", values.row_indices()}};
  }
  parts.emplace_back("values", is_coo ? values._values() : values.values());
  std::string out = "tensor(";
  for (const auto& [name, part] : parts) {
    const std::string prefix = str(name, "=tensor(");
    out += out.size() == prefix_size ? "" : ",\n" + std::string(prefix_size, ' ');
    out += prefix;
    out += part.numel() == 0
               ? "[], size=" + sizes_text(part.sizes())
               : contents_text(part, static_cast<int64_t>(prefix_size + prefix.size()), options);
    out += ')';
  }
  std::vector<std::string> suffixes = {str("size=", sizes_text(values.sizes())),
                                       str("nnz=", values._nnz())};
  if (!is_default(values.dtype())) {
    suffixes.push_back(dtype_text(values.dtype()));
  }
  suffixes.push_back(str("layout=torch.", layout_name(values.layout())));
  suffixes.push_back(gradient_text(t));
  if (is_coo) {
    out += ",\n" + std::string(prefix_size, ' ') + suffixes[0];
    suffixes.erase(suffixes.begin());
  }
  return with_suffixes(std::move(out), suffixes, prefix_size, options.line_width);
}

}  // namespace

std::string contents_text(const Tensor& t, int64_t indent, const TextOptions& options) {
  if (t.numel() == 0) {
    return "[]";
  }
  refuse_in_recording("prints the values of a tensor");
  const auto dims = static_cast<size_t>(t.dim());
  std::vector<bool> cuts(dims);
  if (static_cast<double>(t.numel()) > options.threshold) {
    for (size_t d = 0; d < dims; d++) {
      // Without edge items every last dimension is an ellipsis, whatever its size.
      cuts[d] = t.sizes()[d] > 2 * options.edge_items || (options.edge_items == 0 && d + 1 == dims);
    }
  }
  const Tensor shown = shown_part(t, cuts, options.edge_items);
  const Column column = visit_dtype<set_stored>("print", shown.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      const Tensor bytes = shown.to(kByte);  // of any byte but 0: 1
      return column_of(reinterpret_cast<const bool*>(bytes.const_data_ptr()), shown.numel(),
                       options);
    } else {
      return column_of(static_cast<const T*>(shown.const_data_ptr()), shown.numel(), options);
    }
  });
  if (dims == 0) {
    return column.texts[0];
  }
  return Layouter{options, column, cuts, shown.sizes()}.block(0, indent);
}

std::string tensor_text(const Tensor& t, const TextOptions& options) {
  if (!t.defined()) {
    return "[ Tensor (undefined) ]";
  }
  const WithoutModes without_modes;
  if (const int64_t level = batching::level_of(t)) {
    return str("BatchedTensor(lvl=", batching::depth_of(level), ", bdim=0, value=\n    ",
               tensor_text(batching::value_of(t), options), "\n)");
  }
  if (t.layout() != kStrided) {
    return sparse_text(t, options);
  }
  const Tensor values = t.detach();
  const bool usual = values.dtype() == get_default_dtype();
  std::vector<std::string> suffixes;
  std::string text = "tensor(";
  if (!values.is_cpu()) {
    suffixes.push_back(str("device='", values.device(), "'"));
  }
  if (values.is_meta() || values.numel() == 0) {
    if (values.is_meta() || values.dim() != 1) {
      suffixes.push_back("size=" + sizes_text(values.sizes()));
    }
    suffixes.push_back(usual ? "" : dtype_text(values.dtype()));
    text += values.is_meta() ? "..." : "[]";
  } else {
    if (options.edge_items == 0) {
      suffixes.push_back("size=" + sizes_text(values.sizes()));
    }
    suffixes.push_back(is_default(values.dtype()) ? "" : dtype_text(values.dtype()));
    text += contents_text(values, prefix_size, options);
  }
  suffixes.push_back(gradient_text(t));
  if (const uint64_t level = forward::level_of(t)) {
    suffixes.push_back("tangent=" + tensor_text(forward::tangent(t, level), options));
  }
  return with_suffixes(std::move(text), suffixes, prefix_size, options.line_width);
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  return out << tensor_text(t, TextOptions());
}

std::ostream& print(std::ostream& out, const Tensor& t, int64_t line_size) {
  TextOptions options;
  options.line_width = line_size;
  return out << tensor_text(t, options);
}

}  // namespace rushlight
