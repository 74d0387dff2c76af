// Generator: a source of random numbers. On CPU mt19937 with PyTorch's conversions, so that the
// same seed gives the same numbers; other devices count (Philox). A handle: copies share the state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <rushlight/device.h>

namespace rushlight {

class GeneratorImpl;  // src/core/generator.h
class Tensor;

class RL_API Generator {
 public:
  Generator() = default;  // no generator: ops then use the default one
  explicit Generator(Device device);
  explicit Generator(std::shared_ptr<GeneratorImpl> impl) : impl_(std::move(impl)) {}
  // None, and one that may be none, as programs hand them to ops of libtorch.
  Generator(std::nullopt_t) {}
  template <class T, std::enable_if_t<std::is_same_v<T, std::optional<Generator>>, int> = 0>
  Generator(const T& generator) : impl_(generator ? generator->impl_ : nullptr) {}
  bool defined() const { return static_cast<bool>(impl_); }
  GeneratorImpl* operator->() const { return impl_.get(); }
  GeneratorImpl& operator*() const { return *impl_; }
  const std::shared_ptr<GeneratorImpl>& ref() const { return impl_; }
  const std::shared_ptr<GeneratorImpl>& getIntrusivePtr() const { return impl_; }
  GeneratorImpl* unsafeGetGeneratorImpl() const { return impl_.get(); }
  Device device() const;
  void set_current_seed(uint64_t seed) const;
  uint64_t initial_seed() const;
  uint64_t current_seed() const { return initial_seed(); }
  uint64_t seed() const;  // a fresh non-deterministic seed, which it returns
  std::vector<uint8_t> state_bytes() const;
  void set_state_bytes(const std::vector<uint8_t>& state) const;
  Tensor get_state() const;  // the bytes, as Python has them
  void set_state(const Tensor& state) const;
  Generator clone() const;
  // How many numbers have been drawn from each stream; RuntimeError on the CPU, which counts none.
  void set_offset(uint64_t offset) const;
  uint64_t get_offset() const;

 private:
  std::shared_ptr<GeneratorImpl> impl_;
};

RL_API const Generator& default_generator(Device device = kCPU);
RL_API void manual_seed(uint64_t seed);          // all default generators
RL_API void manual_seed_devices(uint64_t seed);  // those of devices other than the CPU

}  // namespace rushlight
