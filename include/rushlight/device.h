// Device: cpu, cuda:N, meta, or only the name of one that other builds have (mps, xpu ...).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <rushlight/error.h>

namespace rushlight {

// What follows Meta are names alone: what wants memory there is refused.
enum class DeviceType : int8_t {
  CPU,
  CUDA,
  Meta,
  IPU,
  XPU,
  MKLDNN,
  OPENGL,
  OPENCL,
  IDEEP,
  HIP,
  VE,
  FPGA,
  MAIA,
  XLA,
  Lazy,
  Vulkan,
  MPS,
  HPU,
  MTIA,
  PrivateUse1,
  COMPILE_TIME_MAX_DEVICE_TYPES,  // how many, for the tables of programs
};
inline constexpr int num_device_types = 3;
inline constexpr int num_device_names = 20;  // with PyTorch's other types, which are names alone
inline constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA,
                            kMeta = DeviceType::Meta, kXPU = DeviceType::XPU,
                            kHIP = DeviceType::HIP, kXLA = DeviceType::XLA,
                            kVulkan = DeviceType::Vulkan, kMPS = DeviceType::MPS,
                            kHPU = DeviceType::HPU, kMTIA = DeviceType::MTIA,
                            kPrivateUse1 = DeviceType::PrivateUse1;

class RL_API Device {
 public:
  using Type = DeviceType;
  constexpr Device(DeviceType type = kCPU, int8_t index = -1) : type_(type), index_(index) {}
  // "cpu", "cuda:1", "meta", PyTorch's names (types from num_device_types on); else RuntimeError.
  Device(std::string_view text);
  Device(const char* text) : Device(std::string_view(text)) {}
  constexpr DeviceType type() const { return type_; }
  constexpr int8_t index() const { return index_; }
  constexpr bool has_index() const { return index_ >= 0; }
  constexpr bool is_cpu() const { return type_ == kCPU; }
  constexpr bool is_cuda() const { return type_ == kCUDA; }
  constexpr bool is_meta() const { return type_ == kMeta; }
  constexpr bool is_mps() const { return type_ == kMPS; }
  constexpr bool is_xpu() const { return type_ == kXPU; }
  std::string str() const;
  friend constexpr bool operator==(Device a, Device b) {
    return a.type_ == b.type_ && a.index_ == b.index_;
  }
  friend constexpr bool operator!=(Device a, Device b) { return !(a == b); }

 private:
  DeviceType type_;
  int8_t index_;
};
inline void append(std::string& out, const Device& d) { out += d.str(); }

enum class Layout : int8_t { Strided, Sparse, SparseCsr, SparseCsc, SparseBsr, SparseBsc };
inline constexpr Layout kStrided = Layout::Strided;
inline constexpr Layout kSparse = Layout::Sparse;
inline constexpr Layout kSparseCsr = Layout::SparseCsr;
inline constexpr Layout kSparseCsc = Layout::SparseCsc;
inline constexpr Layout kSparseBsr = Layout::SparseBsr;
inline constexpr Layout kSparseBsc = Layout::SparseBsc;
enum class MemoryFormat : int8_t {
  Contiguous = 0,
  Preserve = 1,
  ChannelsLast = 2,
  ChannelsLast3d = 3
};

}  // namespace rushlight
