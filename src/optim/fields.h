// Options of optimisers in archives: a field is called with its name and value.
#pragma once

#include <optional>
#include <string>

#include <rushlight/archive.h>

namespace rushlight::optim {

struct Writer {
  serialize::OutputArchive& archive;
  template <class T>
  void operator()(const char* name, const T& value) const {
    archive.write(name, IValue(value));
  }
  void operator()(const char* name, const std::tuple<double, double>& pair) const {
    archive.write(str(name, ".0"), IValue(std::get<0>(pair)));
    archive.write(str(name, ".1"), IValue(std::get<1>(pair)));
  }
  void operator()(const char* name, const std::optional<int64_t>& value) const {
    if (value) {
      archive.write(name, IValue(*value));
    }
  }
};

struct Reader {
  serialize::InputArchive& archive;
  void operator()(const char* name, double& value) const {
    IValue held;
    if (archive.try_read(name, held)) {
      value = held.toDouble();
    }
  }
  void operator()(const char* name, int64_t& value) const {
    IValue held;
    if (archive.try_read(name, held)) {
      value = held.toInt();
    }
  }
  void operator()(const char* name, bool& value) const {
    IValue held;
    if (archive.try_read(name, held)) {
      value = held.toBool();
    }
  }
  void operator()(const char* name, std::tuple<double, double>& pair) const {
    (*this)(str(name, ".0").c_str(), std::get<0>(pair));
    (*this)(str(name, ".1").c_str(), std::get<1>(pair));
  }
  void operator()(const char* name, std::optional<int64_t>& value) const {
    int64_t held = value.value_or(-1);
    (*this)(name, held);
    if (held >= 0) {
      value = held;
    }
  }
};

}  // namespace rushlight::optim
