// Matrix products by oneDNN: cpu/onednn.h. Each runs on the thread that calls it, so that results
// do not depend on the number of threads.
#include "cpu/onednn.h"

#ifdef RL_HAVE_DNNL

#include <algorithm>

#include "cpu/isa_level.h"
#include "cpu/onednn_common.h"

namespace rushlight::cpu::onednn {

void set_up() {
  static const bool done = [] {
    if (isa_level() == IsaLevel::v3) {
      dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    } else if (isa_level() == IsaLevel::v2) {
      dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
    }
    return true;
  }();
  static_cast<void>(done);
}

bool native(ScalarType dtype) {
  set_up();
  static const int isa = static_cast<int>(dnnl_get_effective_cpu_isa());
  const int needed = dtype == kBFloat16 ? static_cast<int>(dnnl_cpu_isa_avx512_core_bf16)
                                        : static_cast<int>(dnnl_cpu_isa_avx512_core_fp16);
  return contains(set_reduced, dtype) && (isa & needed) == needed;
}

namespace {

bool has_leading(const Matrices& x, int64_t rows, int64_t cols) {
  return (x.col == 1 && x.row >= std::max<int64_t>(1, cols)) ||
         (x.row == 1 && x.col >= std::max<int64_t>(1, rows));
}

bool has_leading(const Gemm& g) {
  return has_leading(g.a, g.m, g.k) && has_leading(g.b, g.k, g.n) && g.c.row >= g.n;
}

}  // namespace

const char* matmul_refusal(const Gemm& g) {
  if (!contains(set_reduced, g.dtype)) {
    return "not a 16-bit float";
  }
  if (g.k == 0) {
    return "nothing to add up";
  }
  if (!native(g.dtype)) {
    return "the processor does not multiply this dtype";
  }
  if (!has_leading(g)) {
    return "strides";
  }
  if (!g.alpha.equal(1) || !(g.beta.equal(0) || g.beta.equal(1))) {
    return "factors";
  }
  return nullptr;
}

namespace {

// Factors of these types, one matrix, on the calling thread.
void multiply(const Gemm& g, dnnl::memory::data_type a_type, dnnl::memory::data_type b_type) {
  using dnnl::memory;
  const OneThread one;
  struct Plan {
    memory::desc a;
    memory::desc b;
    memory::desc c;
    memory::desc scratchpad;
    dnnl::matmul primitive;
  };
  const bool add = !g.beta.equal(0);
  const std::array<int64_t, 11> key = {static_cast<int64_t>(g.dtype),
                                       static_cast<int64_t>(a_type),
                                       g.m,
                                       g.n,
                                       g.k,
                                       g.a.row,
                                       g.a.col,
                                       g.b.row,
                                       g.b.col,
                                       g.c.row,
                                       add};
  Plan& plan = cached<Plan>(key, [&] {
    const memory::desc a({g.m, g.k}, a_type, {g.a.row, g.a.col});
    const memory::desc b({g.k, g.n}, b_type, {g.b.row, g.b.col});
    const memory::desc c({g.m, g.n}, data_type(g.dtype), {g.c.row, 1});
    dnnl::primitive_attr attributes = own_scratchpad();
    if (add) {
      dnnl::post_ops ops;
      ops.append_sum(1.0f);
      attributes.set_post_ops(ops);
    }
    const dnnl::matmul::primitive_desc description(cpu_engine(), a, b, c, attributes);
    return Plan{a, b, c, description.scratchpad_desc(), dnnl::matmul(description)};
  });
  const Block scratchpad(plan.scratchpad);
  plan.primitive.execute(cpu_stream(), {{DNNL_ARG_SRC, memory(plan.a, cpu_engine(), g.a.data)},
                                        {DNNL_ARG_WEIGHTS, memory(plan.b, cpu_engine(), g.b.data)},
                                        {DNNL_ARG_DST, memory(plan.c, cpu_engine(), g.c.data)},
                                        {DNNL_ARG_SCRATCHPAD, scratchpad.memory}});
}

}  // namespace

void matmul(const Gemm& g) { multiply(g, data_type(g.dtype), data_type(g.dtype)); }

const char* matmul_bytes_refusal(const Gemm& g) {
  set_up();
  static const int isa = static_cast<int>(dnnl_get_effective_cpu_isa());
  const auto has = [](dnnl_cpu_isa_t set) { return (isa & set) == static_cast<int>(set); };
  // Products of its own are as fast on all others, and oneDNN's saturate on some.
  if (!has(dnnl_cpu_isa_avx512_core_amx)) {
    return "the processor has no tiles of bytes";
  }
  if (g.k == 0) {
    return "nothing to add up";
  }
  return has_leading(g) ? nullptr : "strides";
}

void matmul_bytes(const Gemm& g, ScalarType a) { multiply(g, data_type(a), data_type(kInt8)); }

std::string version() {
  const dnnl_version_t* const v = dnnl_version();
  return str(v->major, ".", v->minor, ".", v->patch);
}

}  // namespace rushlight::cpu::onednn

#else

namespace rushlight::cpu::onednn {

namespace {
constexpr const char* absent = "built without oneDNN";
}

std::string version() { return ""; }
const char* matmul_refusal(const Gemm&) { return absent; }
void matmul(const Gemm&) {}
const char* matmul_bytes_refusal(const Gemm&) { return absent; }
void matmul_bytes(const Gemm&, ScalarType) {}
const char* convolve_refusal(const Conv&) { return absent; }
void convolve(const Conv& c) { conv_kernels().forward(c); }
const char* convolve_weight_backward_refusal(const Conv&) { return absent; }
void convolve_weight_backward(const Conv& c) { conv_kernels().weight_backward(c); }

}  // namespace rushlight::cpu::onednn

#endif
