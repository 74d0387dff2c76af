// Archives: nested ones are names joined by dots.
#include <rushlight/archive.h>

#include <sstream>

#include <rushlight/factories.h>

namespace rushlight::serialize {

void OutputArchive::write(const std::string& key, const Tensor& tensor, bool) {
  state_.emplace_back(key, tensor.detach().to(kCPU));
}

void OutputArchive::write(const std::string& key, const IValue& value) {
  if (value.isTensor()) {
    write(key, value.toTensor());
    return;
  }
  RL_CHECK(value.isScalar(), "an archive holds tensors and numbers");
  const Scalar number = value.toScalar();
  write(key, full({}, number, number.dtype()));
}

void OutputArchive::write(const std::string& key, const OutputArchive& nested) {
  for (const auto& [name, tensor] : nested.state_) {
    state_.emplace_back(key + '.' + name, tensor);
  }
}

void OutputArchive::save_to(const std::string& path) const { save(state_, path); }
void OutputArchive::save_to(std::ostream& stream) const { save(state_, stream); }

bool InputArchive::try_read(const std::string& key, Tensor& tensor, bool) const {
  for (const auto& [name, value] : state_) {
    if (name == key) {
      tensor = value;
      return true;
    }
  }
  return false;
}

bool InputArchive::try_read(const std::string& key, IValue& value) const {
  Tensor tensor;
  const bool found = try_read(key, tensor);
  if (found) {
    value = tensor.numel() == 1 ? IValue(tensor.item()) : IValue(tensor);
  }
  return found;
}

bool InputArchive::try_read(const std::string& key, InputArchive& nested) const {
  nested.state_.clear();
  const std::string prefix = key + '.';
  for (const auto& [name, value] : state_) {
    if (name.compare(0, prefix.size(), prefix) == 0) {
      nested.state_.emplace_back(name.substr(prefix.size()), value);
    }
  }
  return !nested.state_.empty();
}

void InputArchive::read(const std::string& key, Tensor& tensor, bool) const {
  RL_CHECK(try_read(key, tensor), "No such serialized tensor '", key, "'");
}
void InputArchive::read(const std::string& key, IValue& value) const {
  RL_CHECK(try_read(key, value), "No such serialized IValue '", key, "'");
}
// A module without parameters leaves nothing behind, so nothing may be found.
void InputArchive::read(const std::string& key, InputArchive& nested) const {
  try_read(key, nested);
}

std::vector<std::string> InputArchive::keys() const {
  std::vector<std::string> out;
  for (const auto& [name, value] : state_) {
    std::string first = name.substr(0, name.find('.'));
    bool fresh = true;
    for (const std::string& known : out) {
      fresh = fresh && known != first;
    }
    if (fresh) {
      out.push_back(std::move(first));
    }
  }
  return out;
}

namespace {
StateDict on(StateDict state, std::optional<Device> device) {
  if (device) {
    for (auto& [name, tensor] : state) {
      tensor = tensor.to(*device);
    }
  }
  return state;
}
}  // namespace

void InputArchive::load_from(const std::string& path, std::optional<Device> device) {
  state_ = on(load_state_dict(path), device);
  path_ = path;
}
void InputArchive::load_from(std::istream& stream, std::optional<Device> device) {
  state_ = on(load_state_dict(stream), device);
  path_.clear();
}
void InputArchive::load_from(const char* data, size_t n, std::optional<Device> device) {
  state_ = on(load_state_dict(data, n), device);
  path_.clear();
}

}  // namespace rushlight::serialize

namespace rushlight {

std::string bytes_of(const StateDict& state) {
  std::ostringstream stream;
  save(state, stream);
  return std::move(stream).str();
}
std::string bytes_of(const Tensor& tensor) {
  std::ostringstream stream;
  save(tensor, stream);
  return std::move(stream).str();
}
void load(Tensor& tensor, const char* data, size_t n) {
  std::istringstream stream(std::string(data, n));
  load(tensor, stream);
}

}  // namespace rushlight
