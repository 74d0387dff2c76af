// A library of ops and a class, as extensions for libtorch are written
// (tests/python/test_cpp_library.py).
#include <torch/custom_class.h>
#include <torch/library.h>

namespace {

at::Tensor scaled(const at::Tensor& x, double by) { return x.mul(by); }

// Gradients of `scaled_sum`, whose function for the CPU records nothing.
struct ScaledSum : torch::autograd::Function<ScaledSum> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x, double by) {
    at::AutoDispatchBelowADInplaceOrView guard;
    static auto op = c10::Dispatcher::singleton()
                         .findSchemaOrThrow("twin::scaled_sum", "")
                         .typed<decltype(scaled)>();
    ctx->saved_data["by"] = by;
    ctx->saved_data["sizes"] = x.sizes().vec();
    return op.call(x, by);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const double by = ctx->saved_data["by"].toDouble();
    return {grads[0].expand(ctx->saved_data["sizes"].toIntVector()) * by, at::Tensor()};
  }
};

struct WordStack : torch::CustomClassHolder {
  explicit WordStack(std::vector<std::string> words) : words(std::move(words)) {}
  void push(std::string word) { words.push_back(std::move(word)); }
  std::string pop() {
    TORCH_CHECK(!words.empty(), "the stack is empty");
    std::string out = words.back();
    words.pop_back();
    return out;
  }
  int64_t size() const { return static_cast<int64_t>(words.size()); }
  c10::intrusive_ptr<WordStack> merged(const c10::intrusive_ptr<WordStack>& other) const {
    std::vector<std::string> all = words;
    all.insert(all.end(), other->words.begin(), other->words.end());
    return c10::make_intrusive<WordStack>(std::move(all));
  }
  std::vector<std::string> words;
  std::string label;
};

void add_one(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_CHECK(op.schema().arguments().size() == 2 && op.schema().arguments()[1].name() == "n");
  const int64_t n = torch::jit::pop(stack).toInt();
  const at::Tensor x = torch::jit::pop(stack).toTensor();
  torch::jit::push(stack, x + n);
}

std::vector<std::string> seen;
void watch(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& name = op.operator_name();
  seen.push_back(name.name + (name.overload_name.empty() ? "" : "." + name.overload_name) + "/" +
                 std::to_string(op.schema().arguments().size()));
  op.callBoxed(stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(twin, CPU, m) {  // before the definition, as other files may be
  m.impl("scaled_sum", [](const at::Tensor& x, double by) { return x.sum() * by; });
  m.impl("fill_", [](at::Tensor x, double value) { x.fill_(value); });
  m.impl("boxed", torch::CppFunction::makeFromBoxedFunction<&add_one>());
  m.impl("passed", [](const at::Tensor& x) { return x * 2; });
}
TORCH_LIBRARY(twin, m) {
  m.def("scaled(Tensor x, float by=2.0) -> Tensor", &scaled);
  m.def("scaled.more(Tensor x, float[] by) -> Tensor",
        [](const at::Tensor& x, const std::vector<double>& by) {
          at::Tensor out = at::zeros_like(x);
          for (const double factor : by) {
            out = out + x * factor;
          }
          return out;
        });
  m.def("scaled_sum(Tensor x, float by) -> Tensor");
  m.def("fill_(Tensor(a!) x, *, float value=1.0) -> ()");
  m.def("boxed(Tensor x, int n) -> Tensor");
  m.def("passed(Tensor x) -> Tensor");
  m.set_python_module("twin_python");
  m.def("nowhere(Tensor x) -> Tensor");
  m.def("parts", [](const at::Tensor& x, at::IntArrayRef sizes, const std::optional<at::Tensor>& y,
                    std::optional<int64_t> n, std::string word) {
    return std::make_tuple(y ? x + *y : x, static_cast<int64_t>(sizes.size()) + n.value_or(0),
                           word + "!");
  });
  m.def("words(Dict(str, Tensor) tensors, str[] names) -> Dict(str, int)",
        [](const c10::Dict<std::string, at::Tensor>& tensors, const c10::List<std::string>& names) {
          c10::Dict<std::string, int64_t> out;
          for (const auto& entry : tensors) {
            out.insert(entry.key(), entry.value().numel());
          }
          for (const std::string& name : names) {
            out.insert(name, 0);
          }
          return out;
        });
  m.def("pickled(Any value) -> int[]", [](const at::IValue& value) {
    const std::vector<char> bytes = torch::pickle_save(value);
    std::vector<int64_t> out;
    for (const char c : bytes) {
      out.push_back(static_cast<unsigned char>(c));
    }
    return out;
  });
  m.def("unpickled(int[] bytes) -> Any", [](const std::vector<int64_t>& bytes) {
    return torch::pickle_load(std::vector<char>(bytes.begin(), bytes.end()));
  });
  m.class_<WordStack>("Stack")
      .def(torch::init<std::vector<std::string>>())
      .def("push", &WordStack::push)
      .def("pop", &WordStack::pop)
      .def("all", [](const c10::intrusive_ptr<WordStack>& self) { return self->words; })
      .def("merged", &WordStack::merged)
      .def("repeat",
           [](const c10::intrusive_ptr<WordStack>& self, int64_t times) {
             std::string out;
             for (int64_t i = 0; i < times; i++) {
               for (const std::string& word : self->words) {
                 out += word;
               }
             }
             return out;
           },
           "All words, some times.", {torch::arg("times") = 1})
      .def_static("of_one",
                  [](std::string word) {
                    return c10::make_intrusive<WordStack>(std::vector<std::string>{word});
                  })
      .def_property("size", &WordStack::size)
      .def_readwrite("label", &WordStack::label)
      .def_pickle([](const c10::intrusive_ptr<WordStack>& self) { return self->words; },
                  [](std::vector<std::string> words) {
                    return c10::make_intrusive<WordStack>(std::move(words));
                  });
  m.def("depth(__torch__.torch.classes.twin.Stack stack, int more) -> int",
        [](const c10::intrusive_ptr<WordStack>& stack, int64_t more) {
          return stack->size() + more;
        });
}
TORCH_LIBRARY_IMPL(twin, Autograd, m) {
  m.impl("scaled_sum", [](const at::Tensor& x, double by) { return ScaledSum::apply(x, by); });
  m.impl("passed", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_FRAGMENT(twin, m) {
  m.def("joined(Tensor[] list) -> Tensor", [](const std::vector<at::Tensor>& list) {
    TORCH_CHECK(!list.empty(), "nothing to join");
    return at::cat(list);
  });
  m.def("placed(Tensor x) -> Tensor");
  m.impl("placed", torch::kCPU, [](const at::Tensor& x) { return x + 1; });
  m.impl("placed",
         torch::dispatch(torch::kMeta, [](const at::Tensor& x) { return at::empty_like(x); }));
  m.def("through_dispatcher(Tensor x) -> Tensor", [](const at::Tensor& x) {
    auto& all = c10::Dispatcher::singleton();
    const auto sum = all.findSchemaOrThrow("twin::scaled_sum", "").typed<decltype(scaled)>();
    const auto add =
        all.findSchemaOrThrow("aten::add", "Tensor")
            .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Scalar&)>();
    return add.call(sum.call(x, 3.0), at::ones({2}), 1);
  });
  m.def("watched(Tensor x) -> (Tensor, str[])", [](const at::Tensor& x) {
    seen.clear();
    at::Tensor out;
    {
      const c10::impl::IncludeDispatchKeyGuard guard(c10::DispatchKey::TESTING_ONLY_GenericMode);
      const auto op = c10::Dispatcher::singleton()
                          .findSchemaOrThrow("twin::scaled", "")
                          .typed<decltype(scaled)>();
      out = op.call(x + x, 2.0);
    }
    return std::make_tuple(out, seen);
  });
}
TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&watch>());
}

// The older way to name ops, and what kernels of that age use.
static auto older = torch::RegisterOperators()
                        .op("older::count", [] { return int64_t(3); })
                        .op("older::halved(Tensor x, int[] sizes) -> Tensor",
                            [](at::Tensor x, std::vector<int64_t> sizes) {
                              const c10::IValue list(sizes);
                              at::Tensor out = x.contiguous().clone();
                              AT_DISPATCH_FLOATING_TYPES_AND_HALF(out.scalar_type(), "halved", [&] {
                                using wide = at::opmath_type<scalar_t>;
                                static_assert(sizeof(wide) >= 4);
                                for (int64_t i = 0; i < out.numel(); i++) {
                                  scalar_t& element = out.data_ptr<scalar_t>()[i];
                                  element += element;
                                  element /= static_cast<wide>(4);
                                }
                              });
                              return out.reshape(list.toIntList().vec());
                            });
