// How an op that a library defines is called: one way for those of C++ and of Python.
#include <rushlight/autocast.h>
#include <rushlight/autograd.h>
#include <rushlight/forward.h>

#include "core/functions.h"
#include "core/intercept.h"
#include "core/sparse.h"
#include "library/definition.h"

namespace rushlight::library {

using functions::find;
using functions::find_or_fallback;
using functions::Kernel;

namespace {

// One call: its op, its arguments, and what they say of where it goes.
struct Call {
  const OpInfo& op;
  const std::vector<Value>& arguments;
  functions::Place place;
  std::vector<Tensor> tensors;

  Call(const OpInfo& op, const std::vector<Value>& arguments)
      : op(op), arguments(arguments), place(arguments) {
    for (const Value& v : arguments) {
      v.for_each_tensor([&](const Tensor& t) {
        if (t.defined()) {
          tensors.push_back(t);
        }
      });
    }
  }
  DispatchKey backend() const { return backend_key(place.device); }
  DispatchKey autograd() const { return autograd_key(place.device); }
  std::vector<Value> run(const Kernel& kernel, DispatchKeySet keys) const {
    return functions::run(*kernel, op, arguments, keys);
  }
  template <class F>
  bool any(const F& f) const {
    return std::any_of(tensors.begin(), tensors.end(), f);
  }
};

std::string full_name(const Call& call) { return definition_of(call.op)->full_name(); }

// The function of the device. Meta tensors have one of their own: others would read their memory.
Kernel function_of_device(const Call& call) {
  return call.place.device == kMeta
             ? find(&call.op, {call.backend()})
             : find(&call.op, {call.backend(), DispatchKey::CompositeExplicitAutograd});
}

[[noreturn]] void refuse_device(const Call& call) {
  const std::string name = full_name(call);
  if (call.place.device == kMeta) {
    const std::string& module = definition_of(call.op)->python_module();
    throw NotImplementedError(
        str(name,
            ": attempted to run this operator with Meta tensors, but there is no fake "
            "implementation registered; use register_fake",
            module.empty() ? "" : ", or import '" + module + "'"));
  }
  throw NotImplementedError(str("Could not run '", name, "' with arguments on ",
                                Device(call.place.device).str(),
                                ": there is no implementation for it"));
}

std::vector<Value> run_on_device(const Call& call) {
  Kernel kernel = function_of_device(call);
  if (kernel == nullptr) {
    kernel = find(&call.op, {DispatchKey::CompositeImplicitAutograd});
  }
  if (kernel == nullptr) {
    kernel = find(nullptr, {call.backend()});
  }
  if (kernel == nullptr || kernel->function == nullptr) {
    refuse_device(call);
  }
  std::vector<Value> results = call.run(kernel, DispatchKeySet(call.backend()));
  for (size_t i = 0; i < call.op.arguments.size(); i++) {
    if (call.op.arguments[i].type.written) {
      call.arguments[i].for_each_tensor([](const Tensor& t) {
        if (t.defined()) {
          t.impl()->bump_version();
        }
      });
    }
  }
  return results;
}

// Behind autograd: modes and special tensors, then the function of the device. Sparse tensors have
// no rule for ops that they do not know: a function gets them as they are.
std::vector<Value> run_below(const Call& call) {
  const bool handled =
      tls.lower() != nullptr ||
      (tls.see_special && call.any([](const Tensor& t) { return is_special(t) && !is_sparse(t); }));
  return handled ? dispatch_lower(*call.op.function, call.arguments) : run_on_device(call);
}

// Results of an op that has no derivative: backward through them says so.
Value with_refusing_backward(const Call& call, const Value& result) {
  const std::string message =
      str(full_name(call),
          ".default has no backward: no autograd formula was registered for "
          "it with register_autograd.");
  Value out = result;
  out.change_tensors([&](const Tensor& t) {
    const bool given = call.any([&](const Tensor& x) { return x.is_same(t); });
    return given || !(t.is_floating_point() || t.is_complex())
               ? t
               : with_backward_error(t.detach().requires_grad_(), message);
  });
  return out;
}

// The function that takes the call before the device's does; null where there is none. That for
// autograd may fall through: nothing is recorded then.
Kernel function_above(const Call& call) {
  if (call.place.batched) {
    if (const Kernel rule = find(&call.op, {DispatchKey::FuncTorchBatched})) {
      return rule;
    }
  }
  if (tls.autocast() != 0) {
    const Kernel cast = find(&call.op, {autocast_key(call.place.device)});
    if (cast != nullptr && autocast::is_enabled(call.place.device)) {
      return cast;
    }
  }
  if (is_below_autograd()) {
    return nullptr;
  }
  if (const Kernel own = find_or_fallback(call.op, {call.autograd(), DispatchKey::Autograd})) {
    return own;
  }
  // Made of other ops, which record themselves.
  return function_of_device(call) != nullptr
             ? nullptr
             : find(&call.op, {DispatchKey::CompositeImplicitAutograd});
}

}  // namespace

std::vector<Value> run_library_op(const OpFunction& self, const std::vector<Value>& arguments) {
  const Call call(self.overloads[0], arguments);
  if ((tls.asks() & ask::mode_above) != 0) {
    return dispatch_upper(self, arguments);
  }
  const functions::Kernel above = function_above(call);
  if (above != nullptr && !above->falls_through) {
    return call.run(above, DispatchKeySet(call.backend()).add(call.autograd()));
  }
  if (call.any([](const Tensor& t) { return forward::level_of(t) != 0; })) {
    throw NotImplementedError(str("Trying to use forward AD with ", full_name(call),
                                  " that does not support it: no rule for its tangents can be "
                                  "registered."));
  }
  const bool wanted = above == nullptr && tls.grad_mode &&
                      call.any([](const Tensor& t) { return t.requires_grad(); });
  std::vector<Value> results;
  {
    const NoGradGuard no_grad;
    results = run_below(call);
  }
  if (wanted) {
    for (Value& result : results) {
      result = with_refusing_backward(call, result);
    }
  }
  return results;
}

}  // namespace rushlight::library
