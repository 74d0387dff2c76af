// Who gets a call of an op before it runs: a table, in order. The first that wants a call takes it,
// in boxed form, and the op goes on behind it by being called again. A new interceptor is a bit
// (rushlight/asks.h), set by whoever wants calls, and a row here.
//
// What is below autograd, modes and special tensors, is not here: a wrapper asks dispatch_lower
// where its kernel would run, for it records the call as always.
#include "core/intercept.h"

#include <rushlight/autocast.h>
#include <rushlight/forward.h>

#include "core/functions.h"
#include "core/sparse.h"

namespace rushlight {

std::atomic<Asks> process_asks{0};

namespace {

using Tensors = ArrayRef<const Tensor*>;

template <class F>
bool any_of(Tensors tensors, const F& f) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const Tensor* t) { return t != nullptr && t->defined() && f(*t); });
}

bool sparse_above(const OpFunction& function, Tensors tensors) {
  using Where = SparseRule::Where;
  const auto has_handler = [](const Tensor& t) {
    return is_special(t) && !is_sparse(t) && t.impl()->special()->level() == 0;
  };
  if (function.sparse.where == Where::Below ||
      !any_of(tensors, [](const Tensor& t) { return is_sparse(t); }) ||
      any_of(tensors, has_handler)) {
    return false;
  }
  // Entries that have a batch: only the rule looks inside.
  const auto holds_special = [](const Tensor& t) {
    return is_sparse(t) && is_special(find_sparse(t)->values());
  };
  return function.sparse.where == Where::Above || any_of(tensors, holds_special) ||
         (tls.grad_mode && any_of(tensors, [](const Tensor& t) { return t.requires_grad(); }));
}

// In place the rule's result is what the tensor becomes; a factory's may be wanted as a leaf.
std::vector<Value> dispatch_sparse_above(const OpFunction& function, std::vector<Value> arguments) {
  if (!function.arguments()[0].type.written) {
    const bool leaf = std::any_of(arguments.begin(), arguments.end(), [](const Value& v) {
      return v.is<TensorOptions>() && v.get<TensorOptions>().requires_grad();
    });
    std::vector<Value> results = dispatch_sparse(function, std::move(arguments));
    if (leaf) {
      results[0] = Value(as_leaf(results[0].get<Tensor>(), true));
    }
    return results;
  }
  const auto self = arguments.at(0).get<Tensor>();
  if (function.sparse.where == SparseRule::Where::Recorded) {
    check_inplace(function.overloads[0].name, self, /*record=*/true);
  }
  std::vector<Value> results = dispatch_sparse(function, std::move(arguments));
  self.impl()->bump_version();
  return results;
}

struct Interceptor {
  Asks bit;
  bool (*wants)(const OpFunction& function, Tensors tensors);
  Dispatch take;
};
constexpr Interceptor interceptors[] = {
    {ask::mode_above, [](const OpFunction&, Tensors) { return true; }, dispatch_upper},
    {ask::autocast, [](const OpFunction& f, Tensors) { return autocast::applies(f); },
     autocast::dispatch},
    {ask::overrides, [](const OpFunction& f, Tensors) { return functions::wants_call(f); },
     functions::dispatch},
    {ask::tangents,
     [](const OpFunction& f, Tensors tensors) {
       return f.tangent.call != nullptr &&
              any_of(tensors, [](const Tensor& t) { return forward::level_of(t) != 0; });
     },
     forward::dispatch},
    {ask::special, sparse_above, dispatch_sparse_above},
};

}  // namespace

Dispatch find_interceptor(const OpFunction& function, Asks asked, Tensors tensors) {
  for (const Interceptor& row : interceptors) {
    if ((asked & row.bit) != 0 && row.wants(function, tensors)) {
      return row.take;
    }
  }
  return nullptr;
}

std::vector<Value> dispatch_lower_out(const OpFunction& function, std::vector<Value> arguments) {
  std::vector<Tensor> outs;
  for (size_t i = 0; i < function.overloads[0].results.size(); i++) {
    outs.push_back(arguments[i].get<Tensor>());
  }
  std::vector<Value> results = dispatch_lower(function, std::move(arguments));
  for (const Tensor& out : outs) {
    if (out.defined()) {
      out.impl()->bump_version();
    }
  }
  return results;
}

void refuse_undefined(const OpFunction& function, uint64_t undefined) {
  int i = 0;
  for (const ArgInfo& a : function.arguments()) {
    if (a.type.base == BaseType::Tensor && (undefined >> i++ & 1) != 0) {
      check_defined(function.overloads[0].name, a.name, Tensor());
    }
  }
  throw Error(str(function.overloads[0].name, ": a tensor is undefined"));
}

}  // namespace rushlight
