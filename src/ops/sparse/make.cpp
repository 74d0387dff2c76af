// Sparse tensors from indices and values, and back: the only places that look inside.
#include <rushlight/autograd.h>
#include <rushlight/function.h>

#include <utility>

#include "autograd/node.h"
#include "ops/sparse/sparse.h"

namespace rushlight {

namespace sparse {

SparseTensor& sparse_impl(const Tensor& t) {
  SparseTensor* found = find_sparse(t);
  RL_CHECK(found != nullptr, "expected a sparse tensor, but got layout Strided");
  return *found;
}

void expect_coo(const char* op, const Tensor& t) {
  RL_CHECK(is_coo(t), op, " expected sparse coordinate tensor layout but got ",
           layout_text(layout_of(t)));
}

int64_t batch_dims(const Tensor& t) { return is_coo(t) ? 0 : sparse_impl(t).first().dim() - 1; }
int64_t sparse_dims(const Tensor& t) {
  return !is_sparse(t) ? 0 : is_coo(t) ? sparse_impl(t).first().size(0) : 2;
}
int64_t dense_dims(const Tensor& t) {
  if (!is_sparse(t)) {
    return t.dim();
  }
  return sparse_impl(t).values().dim() - batch_dims(t) - 1 - (is_blocked(layout_of(t)) ? 2 : 0);
}
int64_t nnz(const Tensor& t) {
  return is_coo(t) ? sparse_impl(t).first().size(1) : sparse_impl(t).second().size(-1);
}

namespace {

Tensor make_raw(Layout layout, const Tensor& first, const Tensor& second, const Tensor& values,
                IntArrayRef sizes, bool coalesced) {
  auto impl = TensorImpl::make(make_empty({0}, values.dtype(), values.device()).storage(),
                               values.dtype(), values.device());
  impl->set_sizes_contiguous(sizes);
  impl->set_special(std::make_unique<SparseTensor>(layout, first.detach(),
                                                   second.defined() ? second.detach() : second,
                                                   values.detach(), coalesced));
  return Tensor(std::move(impl));
}

Tensor with_raw_values(const Tensor& pattern, const Tensor& values) {
  const SparseTensor& p = sparse_impl(pattern);
  return make_raw(p.layout(), p.first(), p.second(), values, pattern.sizes(), p.coalesced());
}

// The elements of a gradient, dense or sparse, at the places of a pattern.
Tensor values_at_pattern(const Tensor& grad, const Tensor& pattern) {
  if (is_sparse(grad) && is_coo(grad) == is_coo(pattern)) {
    const SparseTensor& a = sparse_impl(grad);
    const SparseTensor& b = sparse_impl(pattern);
    if (a.first().is_same(b.first()) ||
        (a.first().sizes() == b.first().sizes() && a.first().equal(b.first()) &&
         (!a.second().defined() || a.second().equal(b.second())))) {
      if (!is_coo(grad) || a.coalesced()) {
        return values_of(grad);
      }
    }
  }
  if (!is_coo(pattern)) {
    const Tensor dense = as_dense(grad);
    const Tensor at =
        as_coo(with_raw_values(pattern, count_up(sparse_impl(pattern).values().numel(), dense)
                                                .view(sparse_impl(pattern).values().sizes()) +
                                            1));
    const Tensor found = gather_values(dense, sparse_impl(at).first()).reshape({-1});
    const Tensor places = (sparse_impl(at).values() - 1).reshape({-1});
    return rushlight::zeros({sparse_impl(pattern).values().numel()}, found.options())
        .index_put({places}, found)
        .view(sparse_impl(pattern).values().sizes());
  }
  const Tensor& indices = sparse_impl(pattern).first();
  if (!is_sparse(grad)) {
    return gather_values(grad, indices);
  }
  const Tensor coo = as_coo(grad);
  const int64_t n = indices.size(0);
  const IntArrayRef sizes = pattern.sizes().slice(0, static_cast<size_t>(n));
  const Tensor values = values_of(coo);
  if (nnz(coo) == 0) {
    return rushlight::zeros(sparse_impl(pattern).values().sizes(), values.options());
  }
  const Tensor have = linear(sparse_impl(coo).first(), sizes);
  const Tensor want = linear(indices, sizes);
  const Tensor at = rushlight::searchsorted(have, want).clamp_max(nnz(coo) - 1);
  Tensor there = have.index_select(0, at).eq(want);
  const Tensor found = values.index_select(0, at);
  for (int64_t d = 1; d < found.dim(); d++) {
    there = there.unsqueeze(-1);
  }
  return rushlight::where(there, found, rushlight::zeros({}, found.options()));
}

struct MakeSparse : autograd::Function<MakeSparse> {
  static Tensor forward(autograd::AutogradContext* context, const Tensor& values, Layout layout,
                        const Tensor& first, const Tensor& second, DimVector sizes,
                        bool coalesced) {
    const Tensor made = make_raw(layout, first, second, values, sizes, coalesced);
    context->saved_data["pattern"] = made.detach();
    return made;
  }
  static autograd::variable_list backward(autograd::AutogradContext* context,
                                          autograd::variable_list grads) {
    return {values_at_pattern(grads[0], context->saved_data.at("pattern").toTensor()),
            Tensor(),
            Tensor(),
            Tensor(),
            Tensor(),
            Tensor()};
  }
};

struct SparseValues : autograd::Function<SparseValues> {
  static Tensor forward(autograd::AutogradContext* context, const Tensor& self) {
    context->saved_data["pattern"] = self.detach();
    return sparse_impl(self).values().detach();
  }
  static autograd::variable_list backward(autograd::AutogradContext* context,
                                          autograd::variable_list grads) {
    return {with_values(context->saved_data.at("pattern").toTensor(), grads[0])};
  }
};

struct Coalesce : autograd::Function<Coalesce> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& self) {
    const SparseTensor& p = sparse_impl(self);
    const auto n = static_cast<size_t>(p.first().size(0));
    const Unique unique = unique_columns(p.first(), self.sizes().slice(0, n));
    DimVector sizes = p.values().sizes();
    sizes[0] = unique.indices.size(1);
    const bool bits = p.values().dtype() == kBool;
    const Tensor addends = bits ? p.values().to(kInt64) : p.values();
    const Tensor sums = addends.new_zeros(sizes).index_add_(0, unique.inverse, addends);
    return make_raw(kSparse, unique.indices, Tensor(), bits ? sums.ne(0) : sums, self.sizes(),
                    true);
  }
  static autograd::variable_list backward(autograd::AutogradContext*,
                                          autograd::variable_list grads) {
    return {grads[0]};
  }
};

thread_local const TensorImpl* target = nullptr;

// Says for a scope which dense tensor an in-place call without a graph writes.
class Target {
 public:
  explicit Target(const TensorImpl* t) : before_(std::exchange(target, t)) {}
  ~Target() { target = before_; }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

 private:
  const TensorImpl* before_;
};

// An in-place result: `self` becomes what was computed, its history too.
void assign_result(const char* op, const Tensor& self, Tensor result) {
  if (self.is_same(result)) {
    return;
  }
  if (!is_sparse(self)) {
    RL_CHECK(result.sizes() == self.sizes(), op, ": the output of shape ", self.sizes(),
             " doesn't match the broadcast shape ", result.sizes());
    RL_CHECK(can_cast(result.dtype(), self.dtype()), "result type ", enum_name(result.dtype()),
             " can't be cast to the output's ", enum_name(self.dtype()));
    self.copy_(result);
    return;
  }
  RL_CHECK(is_sparse(result), op, ": a sparse tensor cannot become strided in place");
  if (result.dtype() != self.dtype()) {
    RL_CHECK(can_cast(result.dtype(), self.dtype()), "result type ", enum_name(result.dtype()),
             " can't be cast to the output's ", enum_name(self.dtype()));
    result = result.to(self.dtype());
  }
  self.impl()->set_sizes_contiguous(result.sizes());
  self.impl()->set_special(std::make_unique<SparseTensor>(sparse_impl(result)));
  if (result.requires_grad() && result.grad_fn()) {
    AutogradMeta& meta = self.impl()->autograd_or_make();
    meta.grad_fn = result.grad_fn();
    meta.output_nr = static_cast<uint32_t>(result.output_nr());
    meta.requires_grad = false;
    self.impl()->set_requires_grad_flag(true);
  } else if (grad_enabled() && self.grad_fn()) {  // what it was computed from is in it no more
    self.detach_();
  }
}

std::vector<Value> call_on_values(const char* op, const SparseRule& rule,
                                  std::vector<Value> arguments, bool inplace) {
  const Tensor self = arguments[0].get<Tensor>();
  RL_CHECK_NOT_IMPLEMENTED(is_sparse(self), op, ": of sparse tensors the first may be one");
  const bool linear = std::string_view(op) == "neg_";  // the sum of results is that of the sum
  RL_CHECK(!inplace || linear || !is_coo(self) || sparse_impl(self).coalesced(), op,
           ": expected coalesced tensor");
  const Tensor pattern = is_coo(self) ? rushlight::coalesce(self) : self;
  arguments[0] = Value(values_of(pattern));
  return {Value(with_values(pattern, rule.call(arguments).at(0).get<Tensor>()))};
}

}  // namespace

bool may_write(const Tensor& t) { return target != nullptr && t.impl() == target; }

Tensor make(Layout layout, const Tensor& first, const Tensor& second, const Tensor& values,
            IntArrayRef sizes, bool coalesced) {
  return MakeSparse::apply(values, layout, first, second, DimVector(sizes), coalesced);
}
Tensor make_coo(const Tensor& indices, const Tensor& values, IntArrayRef sizes, bool coalesced) {
  return make(kSparse, indices, Tensor(), values, sizes, coalesced || indices.size(1) < 2);
}
Tensor with_values(const Tensor& pattern, const Tensor& values) {
  const SparseTensor& p = sparse_impl(pattern);
  return make(p.layout(), p.first(), p.second(), values, pattern.sizes(), p.coalesced());
}
Tensor values_of(const Tensor& t) { return SparseValues::apply(t); }

Tensor detach(const Tensor& self) {
  const SparseTensor& p = sparse_impl(self);
  const NoGradGuard no_grad;
  return make_raw(p.layout(), p.first(), p.second(), p.values(), self.sizes(), p.coalesced());
}

}  // namespace sparse

namespace composite {

Tensor _sparse_values(const Tensor& self) { return sparse::values_of(self); }

Tensor coalesce(const Tensor& self) {
  sparse::expect_coo("coalesce", self);
  return sparse::sparse_impl(self).coalesced() ? self : sparse::Coalesce::apply(self);
}

}  // namespace composite

std::vector<Value> dispatch_sparse(const OpFunction& function, std::vector<Value> arguments) {
  const OpInfo& op = function.overloads[0];
  const SparseRule& rule = function.sparse;
  if (rule.call == nullptr) {
    Layout layout = kStrided;
    for (const Value& v : arguments) {
      v.for_each_tensor(
          [&](const Tensor& t) { layout = layout == kStrided ? layout_of(t) : layout; });
      if (v.is<TensorOptions>() && layout == kStrided) {
        layout = v.get<TensorOptions>().layout();
      }
    }
    throw NotImplementedError(
        str("Could not run '", op.space, "::", op.name, "' with arguments from the '",
            layout == kSparse ? "Sparse" : "SparseCsr",
            "CPU' backend: there is no rule for tensors of layout ", layout_text(layout)));
  }
  const std::string_view name = op.name;
  const bool inplace = op.arguments[0].type.written && name.back() == '_';
  const auto is_written = [](const ArgInfo& a) { return a.type.written; };
  const auto outs =
      inplace ? 0 : std::count_if(op.arguments.begin(), op.arguments.end(), is_written);
  const std::vector<Value> given(arguments.begin(), arguments.begin() + outs);
  arguments.erase(arguments.begin(), arguments.begin() + outs);
  std::vector<Value> results;
  {
    const Tensor self = inplace ? arguments[0].get<Tensor>() : Tensor();
    const bool direct = inplace && !is_sparse(self) && !(grad_enabled() && self.requires_grad());
    const sparse::Target target(direct ? self.impl() : nullptr);
    results = rule.on_values ? sparse::call_on_values(op.name, rule, arguments, inplace)
                             : rule.call(arguments);
  }
  if (inplace) {
    sparse::assign_result(op.name, arguments[0].get<Tensor>(), results.at(0).get<Tensor>());
    return {arguments[0]};
  }
  for (size_t i = 0; i < given.size(); i++) {
    const auto out = given[i].get<Tensor>();
    const auto made = results.at(i).get<Tensor>();
    if (is_sparse(out)) {
      sparse::assign_result(op.name, out, made);
    } else {
      assign_out(op.name, out, made);
    }
  }
  return given.empty() ? results : given;
}

}  // namespace rushlight
