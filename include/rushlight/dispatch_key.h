// Places of the calls of an op, in the words of TORCH_LIBRARY_IMPL, and sets of them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include <rushlight/device.h>
#include <rushlight/export.h>

namespace rushlight {

// Tensors here are at CPU, CUDA, Meta and PrivateUse1. What is registered for other devices and
// layouts is kept and never called. TESTING_ONLY_GenericMode is a place for a fallback alone: while
// it is included (IncludeDispatchKeyGuard), every op of the thread goes there.
#define RL_FOR_EACH_DISPATCH_KEY(f)                                                                \
  f(CPU) f(CUDA) f(Meta) f(PrivateUse1) f(Autograd) f(AutogradCPU) f(AutogradCUDA) f(AutogradMeta) \
      f(AutogradPrivateUse1) f(AutogradOther) f(Autocast) f(AutocastCPU) f(AutocastCUDA)           \
          f(AutocastPrivateUse1) f(CompositeImplicitAutograd) f(CompositeExplicitAutograd)         \
              f(CompositeExplicitAutogradNonFunctional) f(TESTING_ONLY_GenericMode) f(SparseCPU)   \
                  f(SparseCUDA) f(SparseMeta) f(SparseCsrCPU) f(SparseCsrCUDA) f(QuantizedCPU)     \
                      f(QuantizedCUDA) f(MkldnnCPU) f(MPS) f(XPU) f(XLA) f(HPU) f(IPU) f(VE)       \
                          f(Lazy) f(MTIA) f(MAIA) f(FPGA) f(Vulkan) f(PrivateUse2) f(PrivateUse3)  \
                              f(AutogradXPU) f(AutogradXLA) f(AutogradMPS) f(AutogradHPU)          \
                                  f(AutogradMTIA) f(AutogradPrivateUse2) f(AutocastXPU)            \
                                      f(AutogradPrivateUse3) f(Conjugate) f(Negative)              \
                                          f(ZeroTensor) f(NestedTensorCPU) f(FuncTorchBatched)     \
                                              f(Undefined)

enum class DispatchKey : uint8_t {
#define RL_KEY(name) name,
  RL_FOR_EACH_DISPATCH_KEY(RL_KEY)
#undef RL_KEY
};

class DispatchKeySet {
 public:
  enum Raw { RAW };
  constexpr DispatchKeySet() = default;
  constexpr DispatchKeySet(Raw, uint64_t bits) : bits_(bits) {}
  constexpr explicit DispatchKeySet(DispatchKey key)
      : bits_(uint64_t{1} << static_cast<int>(key)) {}
  constexpr DispatchKeySet(std::initializer_list<DispatchKey> keys) {
    for (const DispatchKey key : keys) {
      bits_ |= DispatchKeySet(key).bits_;
    }
  }
  constexpr bool has(DispatchKey key) const { return has_any(DispatchKeySet(key)); }
  constexpr bool has_any(DispatchKeySet keys) const { return (bits_ & keys.bits_) != 0; }
  constexpr bool has_all(DispatchKeySet keys) const { return (bits_ & keys.bits_) == keys.bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr uint64_t raw_repr() const { return bits_; }
  [[nodiscard]] constexpr DispatchKeySet add(DispatchKey key) const {
    return *this | DispatchKeySet(key);
  }
  [[nodiscard]] constexpr DispatchKeySet remove(DispatchKey key) const {
    return *this - DispatchKeySet(key);
  }
  friend constexpr DispatchKeySet operator|(DispatchKeySet a, DispatchKeySet b) {
    return {RAW, a.bits_ | b.bits_};
  }
  friend constexpr DispatchKeySet operator&(DispatchKeySet a, DispatchKeySet b) {
    return {RAW, a.bits_ & b.bits_};
  }
  friend constexpr DispatchKeySet operator-(DispatchKeySet a, DispatchKeySet b) {
    return {RAW, a.bits_ & ~b.bits_};
  }
  friend constexpr bool operator==(DispatchKeySet a, DispatchKeySet b) {
    return a.bits_ == b.bits_;
  }
  friend constexpr bool operator!=(DispatchKeySet a, DispatchKeySet b) { return !(a == b); }

 private:
  uint64_t bits_ = 0;
};
inline constexpr DispatchKeySet autograd_dispatch_keyset = {DispatchKey::Autograd,
                                                            DispatchKey::AutogradCPU,
                                                            DispatchKey::AutogradCUDA,
                                                            DispatchKey::AutogradMeta,
                                                            DispatchKey::AutogradPrivateUse1,
                                                            DispatchKey::AutogradOther,
                                                            DispatchKey::AutogradXPU,
                                                            DispatchKey::AutogradXLA,
                                                            DispatchKey::AutogradMPS,
                                                            DispatchKey::AutogradHPU,
                                                            DispatchKey::AutogradMTIA,
                                                            DispatchKey::AutogradPrivateUse2,
                                                            DispatchKey::AutogradPrivateUse3};
inline constexpr DispatchKeySet autocast_dispatch_keyset = {
    DispatchKey::Autocast, DispatchKey::AutocastCPU, DispatchKey::AutocastCUDA,
    DispatchKey::AutocastPrivateUse1, DispatchKey::AutocastXPU};
inline constexpr DispatchKeySet after_autograd_keyset =
    DispatchKeySet(DispatchKeySet::RAW, ~uint64_t{0}) - autograd_dispatch_keyset -
    autocast_dispatch_keyset;
inline constexpr DispatchKeySet after_ADInplaceOrView_keyset = after_autograd_keyset;

namespace library {
RL_API const char* name_of(DispatchKey key);
// What is registered for a device, and for autograd and autocast on it.
RL_API DispatchKey backend_key(DeviceType device);
RL_API DispatchKey autograd_key(DeviceType device);
RL_API DispatchKey autocast_key(DeviceType device);
RL_API std::optional<DispatchKey> key_named(std::string_view name);
// What the function that runs now was called with.
RL_API DispatchKeySet current_keys();
}  // namespace library

}  // namespace rushlight
