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

struct Argument {
  std::string type;
  std::string name;
};

// "op(Tensor a, *, int b=1) -> Tensor" gives Tensor a, int b.
std::vector<Argument> arguments_of(const std::string& schema) {
  std::vector<Argument> out;
  std::string text;
  int depth = 0;
  for (const char c : schema.substr(schema.find('('))) {
    const bool ends = depth == 1 && (c == ',' || c == ')');
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (!ends) {
      text +=
          depth == 1 && text.empty() && (c == '(' || c == ' ') ? std::string() : std::string(1, c);
      continue;
    }
    const size_t space = text.find(' ');
    if (text == "options") {
      out.push_back({text, text});
    } else if (text != "*") {
      const std::string rest = text.substr(space + 1);
      out.push_back({text.substr(0, space), rest.substr(0, rest.find('='))});
    }
    text.clear();
    if (depth == 0) {
      break;
    }
  }
  return out;
}

bool is_list(const Argument& a) { return a.type.ends_with("]"); }
bool is_tensor(const Argument& a) { return a.type.starts_with("Tensor") && !a.type.ends_with("?"); }
// Tensor?[] may hold what is undefined.
bool must_be_defined(const Argument& a) {
  return is_tensor(a) && a.type.find('?') == std::string::npos;
}

Value some_value(const Argument& a) {
  if (a.type.starts_with("Tensor?[]")) {
    return std::vector<std::optional<Tensor>>{zeros({2}, TensorOptions(kLong))};
  }
  if (is_tensor(a)) {
    return is_list(a) ? Value(std::vector<Tensor>{ones({2, 3})}) : Value(ones({2, 3}));
  }
  if (a.type.ends_with("?")) {
    return {};
  }
  if (a.type.starts_with("int[")) {
    return DimVector{0};
  }
  if (a.type == "str") {
    return "";
  }
  if (a.type == "MemoryFormat") {
    return MemoryFormat::Contiguous;
  }
  if (a.type == "ScalarType") {
    return kFloat;
  }
  if (a.type == "options") {
    return TensorOptions();
  }
  return a.type == "float" ? Scalar(1.0) : a.type == "bool" ? Scalar(false) : Scalar(1);
}

// 0 where each call throws what names the argument.
int try_op(const OpInfo& op) {
  const std::vector<Argument> arguments = arguments_of(op.schema);
  int bad = arguments.size() == op.num_arguments ? 0 : 1;
  for (size_t missing = 0; missing < arguments.size() && bad == 0; missing++) {
    if (!must_be_defined(arguments[missing])) {
      continue;
    }
    std::vector<Value> values;
    for (size_t i = 0; i < arguments.size(); i++) {
      values.push_back(i != missing            ? some_value(arguments[i])
                       : is_list(arguments[i]) ? Value(std::vector<Tensor>{Tensor()})
                                               : Value(Tensor()));
    }
    try {
      (void)call(op, values);
      std::printf("%s: no exception without %s\n", op.schema, arguments[missing].name.c_str());
      bad = 2;
    } catch (const std::exception& e) {
      const std::string said = e.what();
      if (said.find("'" + arguments[missing].name + "', got an undefined") == std::string::npos) {
        std::printf("%s without %s: %s\n", op.schema, arguments[missing].name.c_str(), e.what());
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
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      _exit(try_op(*op));
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
