// What holds for the process: which libraries and devices there are, and what programs allow
// kernels to do.
#pragma once

#include <string>

#include <rushlight/compat.h>

namespace rushlight {

enum class Float32MatmulPrecision { HIGHEST, HIGH, MEDIUM };
enum class CuBLASReductionOption : uint8_t {
  AllowReducedPrecisionWithSplitK,
  DisallowReducedPrecisionAllowSplitK,
  DisallowReducedPrecisionDisallowSplitK,
};

// Libraries for quantised numbers, which the tensors of C++ are not.
enum class QEngine : uint8_t { NoQEngine, FBGEMM, QNNPACK, ONEDNN, X86 };

// The flags are kept and read back. No kernel makes use of them: results do not depend on a search
// among kernels, sums have an order of their own, and products of floats are made of floats.
RL_API bool has_lapack();  // whether matrices are factorised by a library
// New generators for a device.
struct AcceleratorHooks {
  DeviceType type;
  Generator getNewGenerator(int index = -1) const {
    return Generator(Device(type, static_cast<int8_t>(type == kCPU ? -1 : index)));
  }
};
class Context {
 public:
  AcceleratorHooks getAcceleratorHooksInterface(std::optional<DeviceType> type = {}) const {
    return {type.value_or(hasCUDA() ? kCUDA : kCPU)};
  }
  const Generator& defaultGenerator(Device device) const { return default_generator(device); }
  bool hasCUDA() const { return device_count(kCUDA) > 0; }
  static bool hasOpenMP() { return false; }  // threads are the library's own
  static bool hasMKL() { return false; }
  static bool hasMKLDNN() { return false; }
  static bool hasMAGMA() { return false; }
  static bool hasLAPACK() { return has_lapack(); }
  static bool hasCuDNN() { return false; }  // none that programs call
  static bool hasCuSOLVER() { return false; }
  bool hasCUDART() const { return hasCUDA(); }
  static int64_t versionCuDNN() { throw Error("versionCuDNN: there is no cuDNN to ask"); }
  static int64_t versionCUDART() { throw Error("versionCUDART: there is no CUDA runtime to ask"); }
  static ArrayRef<QEngine> supportedQEngines() {
    static constexpr QEngine none = QEngine::NoQEngine;
    return {&none, 1};
  }
  static QEngine qEngine() { return QEngine::NoQEngine; }
  static void setQEngine(QEngine engine) {
    RL_CHECK(engine == QEngine::NoQEngine, "quantized engine ", static_cast<int>(engine),
             " is not supported: C++ has no quantised tensors");
  }
  static bool hasHIP() { return false; }
  static bool hasIPU() { return false; }
  static bool hasXLA() { return false; }
  static bool hasMPS() { return false; }
  static bool hasXPU() { return false; }
  static bool hasLazy() { return false; }
  void lazyInitCUDA() const {
    RL_CHECK(hasCUDA(), "Cannot initialize CUDA: no device, or an installation without CUDA");
  }

#define RL_FLAG(getter, setter, start)               \
  bool getter() const { return flag_##getter; }      \
  void setter(bool value) { flag_##getter = value; } \
                                                     \
 private:                                            \
  bool flag_##getter = start;                        \
                                                     \
 public:
  RL_FLAG(allowTF32CuBLAS, setAllowTF32CuBLAS, false)
  RL_FLAG(allowTF32CuDNN, setAllowTF32CuDNN, true)
  RL_FLAG(userEnabledCuDNN, setUserEnabledCuDNN, true)
  RL_FLAG(userEnabledMkldnn, setUserEnabledMkldnn, true)
  RL_FLAG(benchmarkCuDNN, setBenchmarkCuDNN, false)
  RL_FLAG(deterministicCuDNN, setDeterministicCuDNN, false)
  RL_FLAG(userEnabledNNPACK, setUserEnabledNNPACK, true)
  RL_FLAG(userEnabledFlashSDP, setSDPUseFlash, true)
  RL_FLAG(userEnabledMemEfficientSDP, setSDPUseMemEfficient, true)
  RL_FLAG(userEnabledMathSDP, setSDPUseMath, true)
  RL_FLAG(userEnabledCuDNNSDP, setSDPUseCuDNN, true)
  RL_FLAG(allowFP16BF16ReductionMathSDP, setAllowFP16BF16ReductionMathSDP, false)
  RL_FLAG(allowFP16AccumulationCuBLAS, setAllowFP16AccumulationCuBLAS, false)
  RL_FLAG(checkSparseTensorInvariants, setCheckSparseTensorInvariants, false)
  RL_FLAG(deterministicMkldnn, setDeterministicMkldnn, false)
  RL_FLAG(deterministicFillUninitializedMemory, setDeterministicFillUninitializedMemory, true)
#undef RL_FLAG
#define RL_REDUCTION(type)                                                                         \
  CuBLASReductionOption allow##type##ReductionCuBLAS() const { return reduction_##type; }          \
  void setAllow##type##ReductionCuBLAS(CuBLASReductionOption o) { reduction_##type = o; }          \
  void setAllow##type##ReductionCuBLAS(bool reduced, bool split_k = true) {                        \
    reduction_##type = !split_k  ? CuBLASReductionOption::DisallowReducedPrecisionDisallowSplitK   \
                       : reduced ? CuBLASReductionOption::AllowReducedPrecisionWithSplitK          \
                                 : CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK;     \
  }                                                                                                \
                                                                                                   \
 private:                                                                                          \
  CuBLASReductionOption reduction_##type = CuBLASReductionOption::AllowReducedPrecisionWithSplitK; \
                                                                                                   \
 public:
  RL_REDUCTION(FP16)
  RL_REDUCTION(BF16)
#undef RL_REDUCTION
  bool deterministicAlgorithms() const { return deterministic_; }
  bool deterministicAlgorithmsWarnOnly() const { return deterministic_warns_; }
  void setDeterministicAlgorithms(bool wanted, bool warn_only = false) {
    deterministic_ = wanted;
    deterministic_warns_ = warn_only;
  }
  Float32MatmulPrecision float32MatmulPrecision() const { return precision_; }
  void setFloat32MatmulPrecision(Float32MatmulPrecision precision) { precision_ = precision; }
  void setFloat32MatmulPrecision(const std::string& name) {
    RL_CHECK(name == "highest" || name == "high" || name == "medium", "'", name,
             "' is none of 'highest', 'high' and 'medium'");
    precision_ = name == "highest" ? Float32MatmulPrecision::HIGHEST
                 : name == "high"  ? Float32MatmulPrecision::HIGH
                                   : Float32MatmulPrecision::MEDIUM;
  }

 private:
  bool deterministic_ = false;
  bool deterministic_warns_ = false;
  Float32MatmulPrecision precision_ = Float32MatmulPrecision::HIGHEST;
};
inline Context& globalContext() {
  static Context context;
  return context;
}
inline bool hasCUDA() { return globalContext().hasCUDA(); }
inline bool hasMKL() { return Context::hasMKL(); }
inline bool hasMKLDNN() { return Context::hasMKLDNN(); }
inline bool hasOpenMP() { return Context::hasOpenMP(); }
inline bool hasMPS() { return Context::hasMPS(); }
inline bool hasLAPACK() { return Context::hasLAPACK(); }
inline bool hasHIP() { return Context::hasHIP(); }
inline bool hasXPU() { return Context::hasXPU(); }
inline size_t getNumGPUs() { return static_cast<size_t>(device_count(kCUDA)); }

}  // namespace rushlight
