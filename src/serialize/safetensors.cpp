// Tensors of safetensors files, and writing them; the header is read by safetensors_header.
#include "serialize/safetensors.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_set>

#include <rushlight/ops.h>

#include "core/op_support.h"
#include "serialize/checkpoint.h"

namespace rushlight::serialize {
namespace {

void forget_source(void*, size_t, void* context) {
  delete static_cast<std::shared_ptr<Source>*>(context);
}

void append_json(std::string& out, const std::string& text) {
  constexpr char hex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += str("\\u00", hex[c >> 4], hex[c & 15]);
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

StateDict read_safetensors(const std::shared_ptr<Source>& source, bool in_place,
                           Metadata* metadata) {
  SafetensorsHeader header = read_safetensors_header(*source);
  const uint64_t start = header.size;
  if (metadata != nullptr) {
    *metadata = std::move(header.metadata);
  }
  Storage whole;  // all bytes, in place
  if (in_place && source->mapped() != nullptr) {
    whole = StorageImpl::borrow(const_cast<char*>(source->mapped()), source->size(), Device(kCPU),
                                forget_source, new std::shared_ptr<Source>(source));
  }
  StateDict result;
  for (const SafetensorsEntry& e : header.entries) {
    const DimVector strides = contiguous_strides(e.shape);
    const uint64_t unit = static_cast<uint64_t>(itemsize(e.dtype));
    if (whole && (start + e.begin) % unit == 0) {
      result.emplace_back(
          e.name, tensor_on(whole, e.dtype, static_cast<int64_t>((start + e.begin) / unit), e.shape,
                            strides));
      continue;
    }
    const Storage storage = StorageImpl::allocate(e.end - e.begin, Device(kCPU));
    source->read(start + e.begin, storage->data(), e.end - e.begin);
    result.emplace_back(e.name, tensor_on(storage, e.dtype, 0, e.shape, strides));
  }
  return result;
}

void write_safetensors(const StateDict& tensors, const Metadata& metadata, Sink& sink) {
  // The widest types first, so that all are aligned; then by name.
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const int64_t x = tensors[a].second.element_size();
    const int64_t y = tensors[b].second.element_size();
    return x != y ? x > y : tensors[a].first < tensors[b].first;
  });
  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      header += header.back() == '{' ? "" : ",";
      append_json(header, key);
      header += ':';
      append_json(header, value);
    }
    header += '}';
  }
  int64_t at = 0;
  std::unordered_set<std::string> known{"__metadata__"};
  for (const size_t i : order) {
    const auto& [name, t] = tensors[i];
    RL_CHECK(t.defined() && t.is_cpu(), "the tensor '", name, "' is not on the cpu");
    RL_CHECK(known.insert(name).second, "two tensors are called '", name, "'");
    const char* dtype = safetensors_name(t.dtype());
    RL_CHECK_TYPE(dtype != nullptr, "safetensors cannot hold tensors of dtype ", t.dtype());
    header += header.size() == 1 ? "" : ",";
    append_json(header, name);
    header += str(":{\"dtype\":\"", dtype, "\",\"shape\":[");
    for (size_t d = 0; d < t.sizes().size(); d++) {
      header += str(d == 0 ? "" : ",", t.sizes()[d]);
    }
    header += str("],\"data_offsets\":[", at, ",", at + t.nbytes(), "]}");
    at += t.nbytes();
  }
  header += '}';
  header.append(-header.size() & 7, ' ');
  const uint64_t size = header.size();
  RL_CHECK(size <= max_safetensors_header, "the names of these tensors are too many or too long");
  sink.write(&size, sizeof size);
  sink.write(header.data(), header.size());
  for (const size_t i : order) {
    const Tensor t = tensors[i].second.contiguous();
    sink.write(t.data_ptr(), static_cast<size_t>(t.nbytes()));
  }
}

}  // namespace rushlight::serialize

namespace rushlight {

void save_safetensors(const StateDict& state, const std::string& path) {
  serialize::AtomicFile file(path);
  serialize::write_safetensors(state, {}, file);
  file.commit();
}

StateDict load_safetensors(const std::string& path) {
  return serialize::read_safetensors(serialize::open_source(path, false), false);
}

}  // namespace rushlight
