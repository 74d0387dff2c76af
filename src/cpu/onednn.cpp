// Glue to oneDNN: every call runs on the thread that makes it (oneDNN sizes its work by omp_get_max_threads()), so that
// results do not depend on the number of threads.
#include "cpu/onednn.h"

#ifdef RL_HAVE_DNNL

#include <omp.h>

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>

#include "core/parallel.h"
#include "cpu/isa_level.h"

namespace rushlight::cpu::onednn {
namespace {

// RUSHLIGHT_CPU holds for the library, too; its own ONEDNN_MAX_CPU_ISA only where that is lower.
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

// One thread for the library within a scope, on the calling thread alone.
class OneThread {
 public:
  OneThread() {
    get_num_threads();  // reads OpenMP's setting on its first call: it must not be ours
    before_ = omp_get_max_threads();
    omp_set_num_threads(1);
  }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

bool has_leading(const Matrices& x, int64_t rows, int64_t cols) {
  return (x.col == 1 && x.row >= std::max<int64_t>(1, cols)) || (x.row == 1 && x.col >= std::max<int64_t>(1, rows));
}

}  // namespace

const char* sgemm_refusal(const Gemm& g) {
  if (g.dtype != kFloat32) {
    return "not float32";
  }
  if (!has_leading(g.a, g.m, g.k) || !has_leading(g.b, g.k, g.n) || g.c.row < g.n) {
    return "strides";
  }
  if (g.b.col != 1 && g.m > 48) {
    return "slow with a transposed second factor";
  }
  set_up();
  return nullptr;
}

void sgemm(const Gemm& g) {
  const OneThread one;
  const bool a_plain = g.a.col == 1 && g.a.row >= g.k;
  const bool b_plain = g.b.col == 1 && g.b.row >= g.n;
  const dnnl_status_t status = dnnl_sgemm(
      a_plain ? 'N' : 'T', b_plain ? 'N' : 'T', g.m, g.n, g.k, g.alpha.as<float>(), static_cast<float*>(g.a.data),
      a_plain ? g.a.row : g.a.col, static_cast<float*>(g.b.data), b_plain ? g.b.row : g.b.col, g.beta.as<float>(),
      static_cast<float*>(g.c.data), g.c.row);
  RL_CHECK(status == dnnl_success, "oneDNN sgemm failed with status ", static_cast<int>(status));
}

}  // namespace rushlight::cpu::onednn

#else

namespace rushlight::cpu::onednn {

const char* sgemm_refusal(const Gemm&) { return "built without oneDNN"; }
void sgemm(const Gemm& g) { gemm_reference(g); }

}  // namespace rushlight::cpu::onednn

#endif
