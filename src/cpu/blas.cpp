// Glue to OpenBLAS. Its own threads are never used: every call runs where it is made, so that
// results do not depend on the number of threads and one pool serves all.
#include "cpu/blas.h"

#ifdef RL_HAVE_OPENBLAS

#include <cblas.h>

#include <algorithm>

namespace rushlight::cpu::blas {
namespace {

#define RL_BLAS_PASTE(a, b) a##b
#define RL_BLAS_JOIN(a, b) RL_BLAS_PASTE(a, b)
#define RL_BLAS(name) RL_BLAS_JOIN(RL_BLAS_PREFIX, name)

extern "C" void RL_BLAS(openblas_set_num_threads)(int);
extern "C" char* RL_BLAS(openblas_get_config)();

void set_up() {
  static const bool done = [] {
    RL_BLAS(openblas_set_num_threads)(1);
    return true;
  }();
  static_cast<void>(done);
}

// A matrix as BLAS takes it: contiguous rows, or contiguous columns.
struct Layout {
  CBLAS_TRANSPOSE transpose;
  blasint leading;
};

bool fits(const Matrices& x, int64_t rows, int64_t cols) {
  const auto ok = [](int64_t stride, int64_t n) {
    return stride >= std::max<int64_t>(1, n) && stride <= INT32_MAX;
  };
  return (x.col == 1 && ok(x.row, cols)) || (x.row == 1 && ok(x.col, rows));
}

Layout layout(const Matrices& x, int64_t cols) {
  if (x.col == 1 && x.row >= std::max<int64_t>(1, cols)) {
    return {CblasNoTrans, static_cast<blasint>(x.row)};
  }
  return {CblasTrans, static_cast<blasint>(x.col)};
}

}  // namespace

const char* gemm_refusal(const Gemm& g) {
  if (!is_complex(g.dtype)) {
    return "not complex";
  }
  if (!fits(g.a, g.m, g.k) || !fits(g.b, g.k, g.n) || g.c.row < g.n || g.c.row > INT32_MAX ||
      g.m > INT32_MAX || g.k > INT32_MAX) {
    return "strides";
  }
  set_up();
  return nullptr;
}

void gemm(const Gemm& g) {
  const Layout a = layout(g.a, g.k);
  const Layout b = layout(g.b, g.n);
  const auto call = [&](auto tag, auto function) {
    using T = typename decltype(tag)::type;
    const T alpha = g.alpha.as<T>();
    const T beta = g.beta.as<T>();
    function(CblasRowMajor, a.transpose, b.transpose, static_cast<blasint>(g.m),
             static_cast<blasint>(g.n), static_cast<blasint>(g.k), &alpha, g.a.data, a.leading,
             g.b.data, b.leading, &beta, g.c.data, static_cast<blasint>(g.c.row));
  };
  if (g.dtype == kComplexFloat) {
    call(Tag<complex<float>>{}, RL_BLAS(cblas_cgemm));
  } else {
    call(Tag<complex<double>>{}, RL_BLAS(cblas_zgemm));
  }
}

std::string config() { return RL_BLAS(openblas_get_config)(); }

}  // namespace rushlight::cpu::blas

#else

namespace rushlight::cpu::blas {

std::string config() { return ""; }
const char* gemm_refusal(const Gemm&) { return "built without OpenBLAS"; }
void gemm(const Gemm& g) { gemm_reference(g); }

}  // namespace rushlight::cpu::blas

#endif
