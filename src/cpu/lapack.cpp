// Glue to LAPACK, which OpenBLAS carries. Everything runs on the calling thread. A routine: its
// line in lapack.h, and here a call through `fortran`, whose arguments are addresses (and the
// lengths of strings, which Fortran passes last). Workspace sizes are asked of the routine itself.
#include "cpu/lapack.h"

#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <rushlight/context.h>
#include <rushlight/error.h>

namespace rushlight::cpu::lapack {

#ifdef RL_HAVE_OPENBLAS

namespace {

using Symbol = void (*)();

// The four routines of one purpose, by element type.
struct Family {
  Symbol s, d, c, z;
};

// OpenBLAS starts a thread for each processor that the thread which loads it may run on, and these
// spin for a while. We want none of them: within a scope the calling thread has one processor.
class OneProcessor {
 public:
  OneProcessor() : known_(sched_getaffinity(0, sizeof before_, &before_) == 0) {
    if (known_) {
      int first = 0;
      while (!CPU_ISSET(first, &before_)) {
        first++;
      }
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(first, &one);
      sched_setaffinity(0, sizeof one, &one);
    }
  }
  ~OneProcessor() {
    if (known_) {
      sched_setaffinity(0, sizeof before_, &before_);
    }
  }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_;
  bool known_;
};

#define RL_STRING_OF(x) #x
#define RL_STRING(x) RL_STRING_OF(x)

// The library, loaded when it is first asked for: most programs never factorise.
struct Library {
  void* handle;
  Family potrf = family("potrf");
  Family getrf = family("getrf");
  Family getrs = family("getrs");
  Family getri = family("getri");
  Family trsm = family("trsm");
  Family geqrf = family("geqrf");
  Family orgqr = family("orgqr", "ungqr");
  Family gesdd = family("gesdd");
  Family gesvd = family("gesvd");
  Family syevd = family("syevd", "heevd");
  Family geev = family("geev");
  Family gels = family("gels");
  Family gelsy = family("gelsy");
  Family gelsd = family("gelsd");
  Family gelss = family("gelss");
  Family sytrf = family("sytrf");
  Family sytrs = family("sytrs");
  Family hetrf = family("sytrf", "hetrf");  // Hermitian real matrices are symmetric
  Family hetrs = family("sytrs", "hetrs");

  Library() : handle(load()) {
    reinterpret_cast<void (*)(int)>(find("openblas_set_num_threads"))(1);
  }

  Symbol find(const std::string& name) const {
    const std::string spelt = RL_STRING(RL_BLAS_PREFIX) + name;
    void* const found = dlsym(handle, spelt.c_str());
    RL_CHECK(found != nullptr, RL_BLAS_LIBRARY, " has no ", spelt);
    return reinterpret_cast<Symbol>(found);
  }

 private:
  static void* load() {
    const OneProcessor one;
    void* handle = dlopen(path_of_openblas().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      handle = dlopen(RL_BLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    }
    RL_CHECK(handle != nullptr,
             "LAPACK's routines are OpenBLAS's, which cannot be loaded: ", dlerror());
    return handle;
  }
  // Where it is installed: in the folder of this library. Sanitizers call dlopen in its place,
  // which then looks where their own library says.
  static std::string path_of_openblas() {
    Dl_info info;
    const void* const here = reinterpret_cast<const void*>(&path_of_openblas);
    const std::string path = dladdr(here, &info) != 0 ? info.dli_fname : "";
    return path.substr(0, path.rfind('/') + 1) + RL_BLAS_LIBRARY;
  }
  Family family(const std::string& real, const std::string& cplx) const {
    return {find("s" + real + "_"), find("d" + real + "_"), find("c" + cplx + "_"),
            find("z" + cplx + "_")};
  }
  Family family(const std::string& name) const { return family(name, name); }
};

const Library& library() {
  static const Library loaded;  // again where it could not be loaded
  return loaded;
}

template <class T>
Symbol symbol_for(Family Library::* which) {
  const Family& family = library().*which;
  if constexpr (std::is_same_v<T, float>) {
    return family.s;
  } else if constexpr (std::is_same_v<T, double>) {
    return family.d;
  } else if constexpr (std::is_same_v<T, complex<float>>) {
    return family.c;
  } else {
    return family.z;
  }
}

template <class... Args>
void fortran(Symbol symbol, Args... args) {
  reinterpret_cast<void (*)(Args...)>(symbol)(args...);
}

constexpr size_t one_letter = 1;

// The size that a routine wants for its workspace, from what it wrote into the first element.
template <class T>
int workspace_size(const T& answer) {
  const double size = convert<double>(answer);
  // float32 rounds large sizes: the next number is enough.
  return std::max(1, static_cast<int>(std::nextafter(static_cast<real_t<T>>(size),
                                                     std::numeric_limits<real_t<T>>::infinity())));
}

}  // namespace

std::string config() {
  return reinterpret_cast<char* (*)()>(library().find("openblas_get_config"))();
}

template <class T>
int potrf(char uplo, int n, T* a, int lda) {
  int info = 0;
  fortran(symbol_for<T>(&Library::potrf), &uplo, &n, a, &lda, &info, one_letter);
  return info;
}

template <class T>
int getrf(int m, int n, T* a, int lda, int* pivots) {
  int info = 0;
  fortran(symbol_for<T>(&Library::getrf), &m, &n, a, &lda, pivots, &info);
  return info;
}

template <class T>
int getrs(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb) {
  int info = 0;
  fortran(symbol_for<T>(&Library::getrs), &trans, &n, &nrhs, a, &lda, pivots, b, &ldb, &info,
          one_letter);
  return info;
}

template <class T>
int getri(int n, T* a, int lda, const int* pivots) {
  int info = 0;
  int size = -1;
  T answer{};
  fortran(symbol_for<T>(&Library::getri), &n, a, &lda, pivots, &answer, &size, &info);
  size = workspace_size(answer);
  std::vector<T> work(static_cast<size_t>(size));
  fortran(symbol_for<T>(&Library::getri), &n, a, &lda, pivots, work.data(), &size, &info);
  return info;
}

template <class T>
void trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a, int lda, T* b,
          int ldb) {
  const T alpha(1);
  fortran(symbol_for<T>(&Library::trsm), &side, &uplo, &trans, &diag, &m, &n, &alpha, a, &lda, b,
          &ldb, one_letter, one_letter, one_letter, one_letter);
}

template <class T>
int geqrf(int m, int n, T* a, int lda, T* tau) {
  int info = 0;
  int size = -1;
  T answer{};
  fortran(symbol_for<T>(&Library::geqrf), &m, &n, a, &lda, tau, &answer, &size, &info);
  size = workspace_size(answer);
  std::vector<T> work(static_cast<size_t>(size));
  fortran(symbol_for<T>(&Library::geqrf), &m, &n, a, &lda, tau, work.data(), &size, &info);
  return info;
}

template <class T>
int orgqr(int m, int n, int k, T* a, int lda, const T* tau) {
  int info = 0;
  int size = -1;
  T answer{};
  fortran(symbol_for<T>(&Library::orgqr), &m, &n, &k, a, &lda, tau, &answer, &size, &info);
  size = workspace_size(answer);
  std::vector<T> work(static_cast<size_t>(size));
  fortran(symbol_for<T>(&Library::orgqr), &m, &n, &k, a, &lda, tau, work.data(), &size, &info);
  return info;
}

template <class T>
int svd(char job, bool plain_qr, int m, int n, T* a, int lda, real_t<T>* s, T* u, int ldu, T* vt,
        int ldvt) {
  using R = real_t<T>;
  const size_t low = static_cast<size_t>(std::min(m, n));
  const size_t high = static_cast<size_t>(std::max(m, n));
  int info = 0;
  T answer{};
  // The lengths that LAPACK's documentation asks for: rwork of complex routines, iwork of gesdd.
  std::vector<R> rwork(is_complex_v<T> ? 5 * low + std::max(5 * low * low + 7 * low,
                                                            2 * high * low + 2 * low * low + low)
                                       : 0);
  std::vector<int> iwork(8 * low);
  const auto run = [&](T* work, int size) {
    if constexpr (is_complex_v<T>) {
      if (plain_qr) {
        fortran(symbol_for<T>(&Library::gesvd), &job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt,
                work, &size, rwork.data(), &info, one_letter, one_letter);
      } else {
        fortran(symbol_for<T>(&Library::gesdd), &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work,
                &size, rwork.data(), iwork.data(), &info, one_letter);
      }
    } else if (plain_qr) {
      fortran(symbol_for<T>(&Library::gesvd), &job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt,
              work, &size, &info, one_letter, one_letter);
    } else {
      fortran(symbol_for<T>(&Library::gesdd), &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work,
              &size, iwork.data(), &info, one_letter);
    }
  };
  run(&answer, -1);
  const int size = workspace_size(answer);
  std::vector<T> work(static_cast<size_t>(size));
  run(work.data(), size);
  return info;
}

template <class T>
int eigh(bool vectors, char uplo, int n, T* a, int lda, real_t<T>* w) {
  using R = real_t<T>;
  const char job = vectors ? 'V' : 'N';
  int info = 0;
  T answer{};
  R real_answer{};
  int int_answer = 0;
  const auto run = [&](T* work, int size, R* rwork, int rsize, int* iwork, int isize) {
    if constexpr (is_complex_v<T>) {
      fortran(symbol_for<T>(&Library::syevd), &job, &uplo, &n, a, &lda, w, work, &size, rwork,
              &rsize, iwork, &isize, &info, one_letter, one_letter);
    } else {
      fortran(symbol_for<T>(&Library::syevd), &job, &uplo, &n, a, &lda, w, work, &size, iwork,
              &isize, &info, one_letter, one_letter);
    }
  };
  run(&answer, -1, &real_answer, -1, &int_answer, -1);
  const int size = workspace_size(answer);
  const int rsize = workspace_size(real_answer);
  const int isize = std::max(1, int_answer);
  std::vector<T> work(static_cast<size_t>(size));
  std::vector<R> rwork(static_cast<size_t>(rsize));
  std::vector<int> iwork(static_cast<size_t>(isize));
  run(work.data(), size, rwork.data(), rsize, iwork.data(), isize);
  return info;
}

template <class T>
int eig(int n, T* a, int lda, complex<real_t<T>>* w, complex<real_t<T>>* v, int ldv) {
  using R = real_t<T>;
  const char left = 'N';
  const char right = v != nullptr ? 'V' : 'N';
  const int one = 1;
  const auto count = static_cast<size_t>(n);
  int info = 0;
  T answer{};
  if constexpr (is_complex_v<T>) {
    std::vector<R> rwork(2 * count);
    const auto run = [&](T* work, int size) {
      const int leading = v != nullptr ? ldv : 1;
      fortran(symbol_for<T>(&Library::geev), &left, &right, &n, a, &lda, w,
              static_cast<T*>(nullptr), &one, v, &leading, work, &size, rwork.data(), &info,
              one_letter, one_letter);
    };
    run(&answer, -1);
    const int size = workspace_size(answer);
    std::vector<T> work(static_cast<size_t>(size));
    run(work.data(), size);
  } else {
    // Real and imaginary parts apart; a conjugate pair shares two columns of vectors.
    std::vector<R> re(count);
    std::vector<R> im(count);
    std::vector<R> columns(v != nullptr ? count * count : 0);
    const auto run = [&](T* work, int size) {
      const int leading = v != nullptr ? n : 1;
      fortran(symbol_for<T>(&Library::geev), &left, &right, &n, a, &lda, re.data(), im.data(),
              static_cast<T*>(nullptr), &one, columns.data(), &leading, work, &size, &info,
              one_letter, one_letter);
    };
    run(&answer, -1);
    const int size = workspace_size(answer);
    std::vector<T> work(static_cast<size_t>(size));
    run(work.data(), size);
    for (size_t j = 0; j < count; j++) {
      w[j] = {re[j], im[j]};
      if (v == nullptr) {
        continue;
      }
      const bool second = im[j] < 0 && j > 0;
      const bool paired = im[j] != 0;
      const R* x = &columns[(second ? j - 1 : j) * count];
      const R* y = x + (paired ? count : 0);
      for (size_t i = 0; i < count; i++) {
        v[j * static_cast<size_t>(ldv) + i] = {x[i], paired ? (second ? -y[i] : y[i]) : R(0)};
      }
    }
  }
  return info;
}

template <class T>
int ldl(bool hermitian, int n, T* a, int lda, int* pivots) {
  const char uplo = 'L';
  const Symbol symbol = symbol_for<T>(hermitian ? &Library::hetrf : &Library::sytrf);
  int info = 0;
  int size = -1;
  T answer{};
  fortran(symbol, &uplo, &n, a, &lda, pivots, &answer, &size, &info, one_letter);
  size = workspace_size(answer);
  std::vector<T> work(static_cast<size_t>(size));
  fortran(symbol, &uplo, &n, a, &lda, pivots, work.data(), &size, &info, one_letter);
  return info;
}

template <class T>
int ldl_solve(bool hermitian, int n, int nrhs, const T* a, int lda, const int* pivots, T* b,
              int ldb) {
  const char uplo = 'L';
  int info = 0;
  fortran(symbol_for<T>(hermitian ? &Library::hetrs : &Library::sytrs), &uplo, &n, &nrhs, a, &lda,
          pivots, b, &ldb, &info, one_letter);
  return info;
}

template <class T>
int lstsq(char driver, int m, int n, int nrhs, T* a, int lda, T* b, int ldb, real_t<T>* s,
          real_t<T> rcond, int* rank) {
  using R = real_t<T>;
  const char trans = 'N';
  int info = 0;
  T answer{};
  R real_answer{};
  int int_answer = 0;
  std::vector<int> order(static_cast<size_t>(std::max(1, n)));
  const size_t low = static_cast<size_t>(std::min(m, n));
  const auto run = [&](T* work, int size, R* rwork, int* iwork) {
    const Symbol symbol = symbol_for<T>(driver == 'l'   ? &Library::gels
                                        : driver == 'y' ? &Library::gelsy
                                        : driver == 'd' ? &Library::gelsd
                                                        : &Library::gelss);
    if (driver == 'l') {
      fortran(symbol, &trans, &m, &n, &nrhs, a, &lda, b, &ldb, work, &size, &info, one_letter);
    } else if constexpr (is_complex_v<T>) {
      if (driver == 'y') {
        fortran(symbol, &m, &n, &nrhs, a, &lda, b, &ldb, order.data(), &rcond, rank, work, &size,
                rwork, &info);
      } else if (driver == 'd') {
        fortran(symbol, &m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &size, rwork, iwork,
                &info);
      } else {
        fortran(symbol, &m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &size, rwork,
                &info);
      }
    } else if (driver == 'y') {
      fortran(symbol, &m, &n, &nrhs, a, &lda, b, &ldb, order.data(), &rcond, rank, work, &size,
              &info);
    } else if (driver == 'd') {
      fortran(symbol, &m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &size, iwork, &info);
    } else {
      fortran(symbol, &m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &size, &info);
    }
  };
  run(&answer, -1, &real_answer, &int_answer);
  const int size = workspace_size(answer);
  std::vector<T> work(static_cast<size_t>(size));
  const size_t reals = driver == 'd' ? static_cast<size_t>(workspace_size(real_answer))
                                     : std::max<size_t>(2 * static_cast<size_t>(n), 5 * low);
  std::vector<R> rwork(std::max<size_t>(1, reals));
  std::vector<int> iwork(static_cast<size_t>(std::max(1, int_answer)));
  run(work.data(), size, rwork.data(), iwork.data());
  return info;
}

#else

namespace {

[[noreturn]] void raise_no_lapack() {
  throw Error(
      "this function needs LAPACK, and this build of rushlight has none: build with OpenBLAS "
      "(pip install scipy-openblas32)");
}

}  // namespace

std::string config() { return ""; }

#define RL_ABSENT(result, name, ...) \
  template <class T>                 \
  result name(__VA_ARGS__) {         \
    raise_no_lapack();               \
  }
RL_ABSENT(int, potrf, char, int, T*, int)
RL_ABSENT(int, getrf, int, int, T*, int, int*)
RL_ABSENT(int, getrs, char, int, int, const T*, int, const int*, T*, int)
RL_ABSENT(int, getri, int, T*, int, const int*)
RL_ABSENT(void, trsm, char, char, char, char, int, int, const T*, int, T*, int)
RL_ABSENT(int, geqrf, int, int, T*, int, T*)
RL_ABSENT(int, orgqr, int, int, int, T*, int, const T*)
RL_ABSENT(int, svd, char, bool, int, int, T*, int, real_t<T>*, T*, int, T*, int)
RL_ABSENT(int, eigh, bool, char, int, T*, int, real_t<T>*)
RL_ABSENT(int, eig, int, T*, int, complex<real_t<T>>*, complex<real_t<T>>*, int)
RL_ABSENT(int, ldl, bool, int, T*, int, int*)
RL_ABSENT(int, ldl_solve, bool, int, int, const T*, int, const int*, T*, int)
RL_ABSENT(int, lstsq, char, int, int, int, T*, int, T*, int, real_t<T>*, real_t<T>, int*)
#undef RL_ABSENT

#endif

#define RL_INSTANTIATE(T)                                                           \
  template int potrf<T>(char, int, T*, int);                                        \
  template int getrf<T>(int, int, T*, int, int*);                                   \
  template int getrs<T>(char, int, int, const T*, int, const int*, T*, int);        \
  template int getri<T>(int, T*, int, const int*);                                  \
  template void trsm<T>(char, char, char, char, int, int, const T*, int, T*, int);  \
  template int geqrf<T>(int, int, T*, int, T*);                                     \
  template int orgqr<T>(int, int, int, T*, int, const T*);                          \
  template int svd<T>(char, bool, int, int, T*, int, real_t<T>*, T*, int, T*, int); \
  template int eigh<T>(bool, char, int, T*, int, real_t<T>*);                       \
  template int eig<T>(int, T*, int, complex<real_t<T>>*, complex<real_t<T>>*, int); \
  template int ldl<T>(bool, int, T*, int, int*);                                    \
  template int ldl_solve<T>(bool, int, int, const T*, int, const int*, T*, int);    \
  template int lstsq<T>(char, int, int, int, T*, int, T*, int, real_t<T>*, real_t<T>, int*);
RL_INSTANTIATE(float)
RL_INSTANTIATE(double)
RL_INSTANTIATE(complex<float>)
RL_INSTANTIATE(complex<double>)
#undef RL_INSTANTIATE

}  // namespace rushlight::cpu::lapack

namespace rushlight {

bool has_lapack() {
#ifdef RL_HAVE_OPENBLAS
  return true;
#else
  return false;
#endif
}

}  // namespace rushlight
