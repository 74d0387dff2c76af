// TensorIterator: the operands of one pointwise op, broadcast, reordered and merged into as few
// dimensions as possible, and the walk over them. It promotes dtypes, allocates outputs, checks
// overlap and splits the work by fixed chunks; the kernel gives the loop. Equal contiguous
// operands, with Python numbers among them, take a short way.
#pragma once

#include <utility>
#include <vector>

#include <rushlight/tensor.h>

#include "core/parallel.h"

namespace rushlight {

// How the dtypes of inputs and outputs follow from each other. Three categories take part as in
// PyTorch: tensors with dimensions, 0-d tensors, Python numbers (wrapped).
enum class Promote : uint8_t {
  Same,   // outputs have the inputs' common dtype
  Float,  // integers and bool become the default float dtype
  Bool,   // inputs are promoted to their common dtype, outputs are bool
  Real,   // complex inputs give real outputs (abs, angle, real parts)
  None,   // no promotion: each operand keeps its dtype, outputs must be given or have the first
          // input's
  Rest,   // as Same for the inputs after the first, which is a condition and keeps its dtype
};

struct PointwiseRule {
  Promote promote = Promote::Same;
  uint32_t dtypes = set_all;  // DtypeSet of the compute dtype; others raise NotImplementedError
};

class RL_API TensorIterator {
 public:
  static constexpr int max_operands = 8;
  static constexpr int max_outputs = 2;
  static constexpr int max_dims = 64;  // more raises RuntimeError

  explicit TensorIterator(const char* op) : op_(op) {}
  TensorIterator(const TensorIterator&) = delete;
  TensorIterator& operator=(const TensorIterator&) = delete;

  // Outputs first. An undefined output is allocated by build(), in the inputs' stride order. A
  // defined one is `out=` or in-place: it must have (out=: is resized to) the broadcast shape, and
  // the common dtype must be castable to its own (RuntimeError).
  // Operands are not counted: the tensors given must live as long as the iterator does.
  void add_output(const Tensor& out, bool resize = false);
  void add_output(Tensor&& out, bool resize = false) = delete;
  void add_input(const Tensor& in);
  void add_input(Tensor&& in) = delete;
  void add_number(const Scalar& number);  // as a wrapped 0-d tensor would be, without making one
  void build(const PointwiseRule& rule);
  // For copies: the (given) output decides the shape and the order of dimensions, inputs expand to
  // it, and dtypes are taken as they are. The caller has checked shapes and overlap.
  void build_to_output();

  const char* op() const { return op_; }
  int num_outputs() const { return num_outputs_; }
  int num_operands() const { return num_operands_; }
  const Tensor& output(int i = 0) const { return *tensors_[i]; }
  // The first one for the caller to keep, when nothing else is to be done with the iterator.
  Tensor take_output() {
    return tensors_[0] == &allocated_[0] ? std::move(allocated_[0]) : Tensor(*tensors_[0]);
  }
  Device device() const { return device_; }
  ScalarType common_dtype() const {
    return common_dtype_;
  }  // kernels compute in this (its compute_t)
  ScalarType dtype(int operand) const { return dtypes_[operand]; }
  int64_t numel() const { return numel_; }
  int dim() const { return ndim_; }  // after merging; innermost first
  IntArrayRef shape() const { return {shape_, static_cast<size_t>(ndim_)}; }
  // In bytes, innermost first.
  IntArrayRef strides(int operand) const { return {strides_[operand], static_cast<size_t>(ndim_)}; }
  // Where formulas are noted (cpu/chain.h), addresses are taken when somebody asks for them.
  char* data(int operand) const {
    return RL_UNLIKELY(late_) && tensors_[operand] != nullptr ? tensors_[operand]->impl()->data()
                                                              : data_[operand];
  }
  void take_addresses() const;
  static constexpr int64_t least_noted = 8192;  // fewer elements are computed faster than noted
  bool is_late() const { return late_; }
  const Tensor* tensor(int operand) const { return tensors_[operand]; }  // null for a number
  const char* number(int operand) const { return numbers_[operand].bytes; }
  bool allocates(int output) const { return tensors_[output] == &allocated_[output]; }
  bool is_scalar(int operand) const;  // one element, read by all (a number or a 0-d tensor)
  // It lies in the host's memory, whatever the device: a number or a 0-d CPU tensor.
  bool is_on_host(int operand) const {
    return tensors_[operand] == nullptr || tensors_[operand]->is_cpu();
  }
  bool is_number(int operand) const {  // a Python number
    return tensors_[operand] == nullptr || tensors_[operand]->impl()->is_wrapped_number();
  }

  // Calls f(char** data, const int64_t* strides, int64_t n) for 1-D runs, in parallel over fixed
  // chunks.
  template <class F>
  void for_each(const F& f, int64_t grain = default_grain) const {
    run([](void* c, char** d, const int64_t* s,
           int64_t n) { (*static_cast<const F*>(c))(d, s, n); },
        const_cast<F*>(&f), grain);
  }
  using Loop = void (*)(void* context, char** data, const int64_t* strides, int64_t n);
  void run(Loop loop, void* context, int64_t grain) const;
  static constexpr int64_t default_grain = 32768;

 private:
  bool build_simple(const PointwiseRule& rule);
  void find_device();
  void promote(const PointwiseRule& rule);
  void resolve_dtypes(const PointwiseRule& rule, ScalarType common);
  void broadcast();
  void expand_strides(int operand);
  DimVector shared_strides() const;
  void order_dims();
  void prepare_outputs();
  void separate_inputs(const Tensor& out);
  void merge();
  void take_address(int operand) {
    if (!late_) {
      data_[operand] = tensors_[operand]->impl()->data();
    }
  }
  Tensor new_output(IntArrayRef sizes, IntArrayRef strides) const;
  bool is_input_number(int operand) const { return tensors_[operand] == nullptr; }

  const char* op_;
  int num_outputs_ = 0;
  int num_operands_ = 0;
  bool resize_ = false;
  mutable bool late_ = false;  // addresses are still to be taken
  Device device_;
  ScalarType common_dtype_ = ScalarType::Undefined;
  ScalarType result_dtype_ = ScalarType::Undefined;
  const Tensor* tensors_[max_operands];  // null for a number
  ScalarType dtypes_[max_operands];      // Undefined for an output to be allocated
  mutable char* data_[max_operands];
  Tensor allocated_[max_outputs];
  std::vector<Tensor> copies_;  // of inputs that the output may overlap; never grows when full
  struct Number {
    alignas(8) char bytes[16];
  };
  Number numbers_[max_operands];
  int64_t numel_ = 0;
  int ndim_ = 0;
  int64_t shape_[max_dims];  // while building outermost first, then innermost first
  int64_t strides_[max_operands][max_dims];
  int8_t order_[max_dims];  // dimensions, innermost first
};

// The dtype that these operands are promoted to (torch.result_type).
RL_API ScalarType result_type(TensorList operands);

// The dtype that operands of the three categories are promoted to.
struct TypePromotion {
  ScalarType tensors = ScalarType::Undefined;
  ScalarType scalars = ScalarType::Undefined;  // 0-d tensors
  ScalarType numbers = ScalarType::Undefined;  // Python numbers
  void add(const Tensor& t);
  void add_number(ScalarType t);
  ScalarType result() const;
};

}  // namespace rushlight
