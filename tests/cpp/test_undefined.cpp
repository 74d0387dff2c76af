// An undefined tensor where an op needs one: an exception that names the op, from every op of the
// table, in each position and in lists. Each op runs in a process of its own, so that one that
// crashes is named.
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include <rushlight/mode.h>
#include <rushlight/rushlight.h>

#include "check.h"

using namespace rushlight;

namespace {

bool is_tensor(const ArgInfo& a) { return a.type.base == BaseType::Tensor; }
// Tensor?[] may hold what is undefined.
bool must_be_defined(const ArgInfo& a) {
  return is_tensor(a) && !a.type.optional && !a.type.element_optional;
}

Value some_value(const ArgInfo& a) {
  if (is_tensor(a) && a.type.element_optional) {
    return std::vector<std::optional<Tensor>>{zeros({2}, TensorOptions(kLong))};
  }
  if (is_tensor(a) && !a.type.optional) {
    return a.type.is_list ? Value(std::vector<Tensor>{ones({2, 3})}) : Value(ones({2, 3}));
  }
  if (a.type.optional) {
    return {};
  }
  if (a.type.is_list) {
    return a.type.base == BaseType::Float    ? Value(std::vector<double>{0})
           : a.type.base == BaseType::Scalar ? Value(std::vector<Scalar>{Scalar(1)})
                                             : Value(DimVector{0});
  }
  switch (a.type.base) {
    case BaseType::String:
      return "";
    case BaseType::MemoryFormat:
      return MemoryFormat::Contiguous;
    case BaseType::ScalarType:
      return kFloat;
    case BaseType::Layout:
      return Layout::Strided;
    case BaseType::Device:
      return Device(kCPU);
    case BaseType::Options:
      return TensorOptions();
    case BaseType::Float:
      return Scalar(1.0);
    case BaseType::Bool:
      return Scalar(false);
    default:
      return Scalar(1);
  }
}

// 0 where each call throws what names the argument.
int try_function(const OpInfo& op) {
  const ArrayRef<ArgInfo> arguments = op.function->arguments();
  int bad = 0;
  for (size_t missing = 0; missing < arguments.size() && bad == 0; missing++) {
    if (!must_be_defined(arguments[missing])) {
      continue;
    }
    std::vector<Value> values;
    for (size_t i = 0; i < arguments.size(); i++) {
      values.push_back(i != missing                ? some_value(arguments[i])
                       : arguments[i].type.is_list ? Value(std::vector<Tensor>{Tensor()})
                                                   : Value(Tensor()));
    }
    try {
      (void)op.function->call(values);
      std::printf("%s: no exception without %s\n", schema_text(op).c_str(),
                  arguments[missing].name);
      bad = 2;
    } catch (const std::exception& e) {
      const std::string said = e.what();
      if (said.find(str("'", arguments[missing].name, "', got an undefined")) ==
          std::string::npos) {
        std::printf("%s without %s: %s\n", schema_text(op).c_str(), arguments[missing].name,
                    e.what());
        bad = 3;
      }
    }
  }
  std::fflush(stdout);
  return bad;
}

}  // namespace

RL_TEST(every_op_refuses_undefined_tensors) {
  for (const OpInfo* op : all_ops()) {
    if (op != op->function->overloads.begin()) {
      continue;  // another overload of the same function
    }
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      _exit(try_function(*op));
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
      std::printf("%s %s\n", op->name, WIFSIGNALED(status) ? "crashes" : "does not refuse");
    }
    CHECK(status == 0);
  }
}

RL_TEST(accessors_refuse_undefined_tensors) {
  const Tensor none;
  CHECK(!none.defined() && !none.requires_grad() && none.toString() == "UndefinedType");
  const std::vector<std::function<void()>> accessors = {
      [&] { (void)none.dtype(); },
      [&] { (void)none.device(); },
      [&] { (void)none.options(); },
      [&] { (void)none.dim(); },
      [&] { (void)none.numel(); },
      [&] { (void)none.nbytes(); },
      [&] { (void)none.sizes(); },
      [&] { (void)none.size(0); },
      [&] { (void)none.strides(); },
      [&] { (void)none.stride(-1); },
      [&] { (void)none.storage_offset(); },
      [&] { (void)none.storage(); },
      [&] { (void)none.is_contiguous(); },
      [&] { (void)none.is_contiguous(MemoryFormat::ChannelsLast); },
      [&] { (void)none.is_cuda(); },
      [&] { (void)none.is_floating_point(); },
      [&] { (void)none.data_ptr(); },
      [&] { (void)none.data_ptr<float>(); },
      [&] { (void)none.item(); },
      [&] { (void)none.item<float>(); },
      [&] { (void)none.accessor<float, 1>(); },
      [&] { none.requires_grad_(); },
      [&] { (void)none.is_leaf(); },
      [&] { (void)none.grad(); },
      [&] { (void)none.mutable_grad(); },
      [&] { (void)none.grad_fn(); },
      [&] { (void)none.output_nr(); },
      [&] { none.backward(); },
      [&] { none.retain_grad(); },
      [&] { (void)none.register_hook([](const Tensor&) {}); },
      [&] { none.remove_hook(0); },
      [&] { (void)none.retains_grad(); },
      [&] { (void)none.is_view(); },
      [&] { (void)none._base(); },
      [&] { (void)none._version(); },
      [&] { (void)none.tensor_data(); },
      [&] { (void)none.variable_data(); },
      [&] { none.set_data(ones({2})); },
      [&] { ones({2}).set_data(none); },
  };
  for (size_t i = 0; i < accessors.size(); i++) {
    try {
      accessors[i]();
      std::printf("accessor %zu does not refuse\n", i);
      CHECK(false);
    } catch (const Error&) {
      CHECK(true);  // most say "undefined"; backward and hooks what they miss
    }
  }
}

RL_TEST_MAIN()
