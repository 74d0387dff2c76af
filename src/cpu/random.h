// What the random kernels of src/cpu/isa/pointwise/random.cpp need around their loops, compiled
// once: locking, temporaries, checks, and the mathematics of rare distributions.
#pragma once

#include <optional>

#include <rushlight/generator.h>
#include <rushlight/tensor.h>

namespace rushlight {
class GeneratorImpl;
}

namespace rushlight::cpu {

// Holds the generator (the default one where undefined) while numbers are drawn.
class DrawLock {
 public:
  explicit DrawLock(const Generator& generator);
  ~DrawLock();
  DrawLock(const DrawLock&) = delete;
  DrawLock& operator=(const DrawLock&) = delete;
  GeneratorImpl& state() const { return *state_; }

 private:
  std::shared_ptr<GeneratorImpl> owner_;
  GeneratorImpl* state_;
};

// The memory to fill in logical order: the tensor's own, or that of a copy, which `write_back`
// brings to the tensor.
class OrderedOutput {
 public:
  explicit OrderedOutput(const Tensor& out);
  void write_back() const;
  void* data() const;
  int64_t numel() const;

 protected:
  OrderedOutput(const Tensor& out, const Tensor& memory);

 private:
  const Tensor& out_;
  Tensor memory_;
};

// The same in the order of the tensor's memory, in which a tensor alone is filled.
class FilledOutput : public OrderedOutput {
 public:
  explicit FilledOutput(const Tensor& out);
};

// Probabilities as floats or doubles of the shape and in the order of a `FilledOutput`;
// RuntimeError where one is outside of [0, 1].
class OrderedInput {
 public:
  OrderedInput(const Tensor& in, const Tensor& out);
  const void* data() const;
  ScalarType dtype() const;

 private:
  Tensor memory_;
};

// [from, to) for random_: checked against the dtype.
class RL_API RandomRange {
 public:
  RandomRange(ScalarType dtype, int64_t from, std::optional<int64_t> to);
  bool all_bits() const { return all_bits_; }
  uint64_t size() const { return size_; }

 private:
  uint64_t size_ = 0;
  bool all_bits_ = false;
};

// The real and imaginary parts of a complex tensor as one real tensor.
Tensor parts_of(const Tensor& complex_tensor);

// Uniform in [0, 1), of 53 bits from two draws.
double next_unit(GeneratorImpl& g);

// From a uniform number in [0, 1).
double cauchy_from(double u, double median, double sigma);
double geometric_from(double u, double p);
double exp_of(double x);

}  // namespace rushlight::cpu
