// Archives of programs in C++: what the parser refuses, modules from a file, damaged files.
#include <atomic>
#include <sstream>
#include <thread>

#include <rushlight/functions.h>
#include <torch/script.h>
#include <torch/torch.h>

#include "check.h"
#include "script/export.h"
#include "script/lower.h"
#include "serialize/pickle.h"
#include "serialize/zip.h"
#include "string_sink.h"

using namespace rushlight;

namespace {

script::Text text_of(std::string text) {
  return std::make_shared<graph::Source>(graph::Source{std::move(text), "test"});
}

// An archive of one module with a weight and a counter.
constexpr const char* code = R"(class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
  training : bool
  calls : int
  def forward(self: __torch__.Net,
    x: Tensor,
    n: int=2) -> Tensor:
    self.calls = torch.add(self.calls, 1)
    y = torch.linear(x, self.weight)
    for i in range(n):
      if torch.gt(i, 0):
        y = torch.add(y, i)
      else:
        pass
    if torch.gt(n, 9):
      ops.prim.RaiseException("too many", "builtins.ValueError")
    else:
      pass
    return y
)";

// The module is built of text by way of an archive that is written here.
std::string archive(const std::string& text = code) {
  testing::StringSink sink;
  serialize::ZipWriter zip(sink);
  const auto add = [&](const std::string& name, const std::string& bytes) {
    zip.add("net/" + name, bytes.data(), bytes.size());
  };
  serialize::PickleWriter p;
  p.global("__torch__", "Net");
  p.empty_tuple();
  p.make_object();
  p.empty_dict();
  p.mark();
  p.string("weight");
  p.global("torch._utils", "_rebuild_tensor_v2");
  p.mark();
  p.mark();
  p.string("storage");
  p.global("torch", "FloatStorage");
  p.string("0");
  p.string("cpu");
  p.integer(6);
  p.tuple();
  p.persistent();
  p.integer(0);
  p.mark();
  p.integer(2);
  p.integer(3);
  p.tuple();
  p.mark();
  p.integer(3);
  p.integer(1);
  p.tuple();
  p.boolean(true);
  p.global("collections", "OrderedDict");
  p.empty_tuple();
  p.reduce();
  p.tuple();
  p.reduce();
  p.string("training");
  p.boolean(true);
  p.string("calls");
  p.integer(0);
  p.set_items();
  p.build();
  add("data.pkl", p.finish());
  add("code/__torch__.py", text);
  const float numbers[] = {1, 2, 3, 4, 5, 6};
  add("data/0", std::string(reinterpret_cast<const char*>(numbers), sizeof numbers));
  serialize::PickleWriter none;
  none.empty_tuple();
  add("constants.pkl", none.finish());
  add("extra/note", "hello");
  add("version", "10\n");
  zip.finish();
  return sink.bytes;
}

jit::Module load(const std::string& bytes) {
  std::istringstream stream(bytes);
  return jit::load(stream);
}

}  // namespace

RL_TEST(parser_names_what_it_refuses) {
  const std::pair<const char*, const char*> refused[] = {
      {"try:\n  pass\n", "try"},
      {"f = lambda x: x\n", "lambda"},
      {"def f(*args):\n  pass\n", "any number of arguments"},
      {"x = (yield y)\n", "generator"},
      {"x = {1, 2}\n", "set"},
      {"while a:\n  pass\nelse:\n  pass\n", "else"},
      {"x = (1\n", "never closed"},
      {"x = 'a\n", "no end"},
      {"x = 99999999999999999999\n", "64 bits"},
      {"if a:\npass\n", "indented"},
      {"x = f'{a!r}'\n", "f-string"},
      {"async def f():\n  pass\n", "async"}};
  for (const auto& [text, words] : refused) {
    std::string what;
    try {
      script::parse(text_of(text));
    } catch (const Error& error) {
      what = error.what();
    }
    CHECK(what.find(words) != std::string::npos);
  }
  CHECK_THROWS(
      Error, "deep",
      script::parse(text_of("x = " + std::string(5000, '(') + "1" + std::string(5000, ')'))));
  CHECK_THROWS(Error, "deep", script::parse(text_of("x = a" + std::string(5000, '+') + "b\n")));
  std::string sum = "x = a";
  for (int i = 0; i < 5000; i++) {
    sum += " + a";
  }
  CHECK_THROWS(Error, "deep", script::parse(text_of(sum + "\n")));
}

RL_TEST(modules_from_archives) {
  std::istringstream stream(archive());
  jit::ExtraFilesMap extra = {{"note", ""}, {"missing", ""}};
  const jit::Module net = jit::load(stream, std::nullopt, extra);
  CHECK(extra["note"] == "hello" && extra["missing"].empty());
  const Tensor x = ones({1, 3});
  CHECK(net.forward({x}).toTensor().sum().item<float>() == 23);
  CHECK(net.run_method("forward", x, 3).toTensor().sum().item<float>() == 27);
  CHECK(net.forward({x}, {{"n", 0}}).toTensor().sum().item<float>() == 21);
  CHECK(net.attr("calls").toInt() == 3 && net.hasattr("weight") && !net.hasattr("bias"));
  CHECK(net.named_parameters().size() == 1 && net.named_parameters()[0].name == "weight");
  CHECK(net.parameters()[0].requires_grad() && net.buffers().empty() && net.children().empty());
  CHECK(net.is_training());
  net.eval();
  CHECK(!net.is_training());
  net.forward({x}).toTensor().sum().backward();
  CHECK(net.parameters()[0].grad().sum().item<float>() == 6);
  const jit::Module other = net.deepcopy();
  other.setattr("calls", 100);
  CHECK(net.attr("calls").toInt() == 4 && other.attr("calls").toInt() == 100);
  CHECK(!other.parameters()[0].is_same(net.parameters()[0]));
  CHECK(net.copy().parameters()[0].is_same(net.parameters()[0]));
  other.to(kDouble);
  CHECK(other.parameters()[0].dtype() == kDouble && net.parameters()[0].dtype() == kFloat);
  CHECK_THROWS(Error, "too many", net.forward({x, 10}));
  CHECK_THROWS(Error, "line", net.forward({ones({1, 4})}));
  CHECK_THROWS(Error, "not defined", net.get_method("backward"));
  CHECK_THROWS(Error, "field", net.attr("bias"));
  CHECK_THROWS(Error, "another", net.setattr("calls", "text"));
  CHECK_THROWS(Error, "empty", jit::Module().parameters());
}

RL_TEST(modules_made_in_cpp) {
  jit::Module inner("Scale");
  inner.register_parameter("weight", full({2}, 3.0), false);
  inner.define(R"(
def twice(self, x):
    return x * 2
def forward(self, x, by: float = 1.0):
    return self.twice(x) * self.weight * by
)");
  jit::Module net("Net");
  net.register_module("inner", inner);
  net.register_buffer("shift", ones({2}));
  net.register_attribute("n", Type{Type::Kind::Int}, 4);
  net.define(R"(
def forward(self, x):
    self.n = self.n + 1
    return self.inner(x) + self.shift * self.n
)");
  const Tensor x = ones({2});
  CHECK(net.forward({x}).toTensor().sum().item<float>() == 22);
  CHECK(inner.run_method("forward", x, 2.0).toTensor().sum().item<float>() == 24);
  CHECK(net.attr("n").toInt() == 5 && net.is_training());
  CHECK(net.named_children()[0].name == "inner" && net.named_children()[0].value == inner);
  CHECK(net.named_parameters()[0].name == "inner.weight");
  CHECK(net.named_buffers().size() == 1 && net.named_attributes(false).size() == 4);
  testing::StringSink sink;
  script::write_module(net, sink, "net", {});
  CHECK(load(sink.bytes).forward({x}).toTensor().sum().item<float>() == 24);
  net.eval();
  CHECK(!inner.is_training());
  CHECK_THROWS(Error, "already", net.register_buffer("n", ones({1})));
  CHECK_THROWS(Error, "another", net.register_attribute("m", Type{Type::Kind::Int}, "text"));
  CHECK_THROWS(Error, "functions alone", net.define("x = 1\n"));
  CHECK_THROWS(Error, "undefined value y", net.define("def f(self):\n    return y\n"));
  jit::Module other("Net");
  other.register_module("inner", net);
  CHECK_THROWS(Error, "two classes", script::write_module(other, sink, "net", {}));
}

RL_TEST(hooks_run_around_forward) {
  jit::Module net("Net");
  net.define(R"(
def forward(self, x):
    return x + 1
def before(self, given: Tuple[Tensor]) -> Tuple[Tensor]:
    return (given[0] * 2,)
def behind(self, given: Tuple[Tensor], out: Tensor) -> Tensor:
    return out * 10 + given[0]
def seen(self, given: Tuple[Tensor], out: Tensor) -> None:
    pass
)");
  net.class_type().pre_hooks = {"before"};
  net.class_type().hooks = {"seen", "behind"};
  const Tensor x = full({1}, 3.0);
  CHECK(net.forward({x}).toTensor().item<float>() == 4);
  CHECK(net({x}).toTensor().item<float>() == 76);
  testing::StringSink sink;
  script::write_module(net, sink, "net", {});
  CHECK(load(sink.bytes)({x}).toTensor().item<float>() == 76);
}

RL_TEST(functions_of_text) {
  const auto unit = jit::compile(R"(
def scaled(x, by: int = 2):
    return x * by
def f(x, n: int):
    for i in range(n):
        x = scaled(x, i + 1)
    return x
)");
  CHECK(unit->run_method("f", ones({1}), 4).toTensor().item<float>() == 24);
  const auto functions = unit->get_functions();
  CHECK(functions.size() == 2 && functions[0] == unit->find_function("scaled"));
  CHECK(unit->find_function("g") == nullptr);
  CHECK_THROWS(Error, "no function 'g'", unit->get_function("g"));
  CHECK_THROWS(Error, "undefined value y", jit::compile("def f(x):\n    return y\n"));
}

RL_TEST(archives_come_back) {
  const jit::Module net = load(archive());
  testing::StringSink sink;
  script::write_module(net, sink, "again", {{"note", "x"}});
  const jit::Module back = load(sink.bytes);
  const Tensor x = arange(3, kFloat).reshape({1, 3});
  CHECK(back.forward({x, 4}).toTensor().equal(net.forward({x, 4}).toTensor()));
}

RL_TEST(many_threads_run_one_module) {
  const std::string bytes = archive();
  const jit::Module net = load(bytes);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; t++) {
    threads.emplace_back([&, t] {
      const jit::Module own = net.deepcopy();
      for (int i = 0; i < 50; i++) {
        const float sum =
            own.forward({full({1, 3}, static_cast<float>(t)), 0}).toTensor().sum().item<float>();
        wrong += sum == 21.0F * static_cast<float>(t) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(wrong == 0);
}

RL_TEST(damaged_archives_raise) {
  testing::StringSink sink;
  serialize::ZipWriter zip(sink);
  zip.add("a/data.pkl", ".", 1);
  zip.finish();
  CHECK_THROWS(Error, "no archive of TorchScript", load(sink.bytes));
  const std::string text = code;
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string out = text;
    out.replace(out.find(from), from.size(), to);
    return archive(out);
  };
  CHECK_THROWS(Error, "no class of that name", load(changed("class Net", "class Other")));
  CHECK_THROWS(Error, "a value for", load(changed("  calls : int\n", "")));
  CHECK_THROWS(Error, "holds another", load(changed("calls : int", "calls : str")));
  CHECK_THROWS(Error, "undefined value", load(changed("(x, self", "(z, self")));
  CHECK_THROWS(Error, "no overload",
               load(changed("torch.linear(x, self.weight)", "torch.linear(x)")));
  CHECK_THROWS(Error, "previously had type", load(changed("y = torch.add(y, i)", "y = i")));
  CHECK_THROWS(Error, "Unknown type", load(changed("x: Tensor", "x: Tensr")));
  CHECK_THROWS(Error, "Unknown builtin op",
               load(changed("torch.linear", "torch.lineer")).forward({ones({1, 3})}));
  // Whatever is cut off or overwritten raises, or loads what still makes sense.
  const std::string whole = archive();
  for (size_t at = 0; at < whole.size(); at += 7) {
    for (const char by : {'\0', '(', '\xff', 'x'}) {
      std::string bytes = whole;
      bytes[at] = by;
      try {
        load(bytes).forward({ones({1, 3})});
      } catch (const std::exception&) {}
    }
    try {
      load(whole.substr(0, at));
      CHECK(false);
    } catch (const Error&) {}
  }
}

// ---- types by libtorch's names ----

RL_TEST(types_of_values) {
  using rushlight::IValue;
  CHECK(IValue(3).type()->kind() == c10::TypeKind::IntType);
  CHECK(IValue("text").type()->str() == "str" && IValue("text").toString()->string() == "text");
  CHECK(IValue(torch::ones({2})).type()->cast<c10::TensorType>() != nullptr);
  CHECK(IValue(torch::ones({2})).type()->cast<c10::ListType>() == nullptr);
  const auto list = c10::ListType::ofTensors();
  CHECK(list->str() == "Tensor[]" && list->getElementType() == c10::TensorType::get());
  CHECK(*c10::DictType::create(c10::StringType::get(), list)->getValueType() == *list);
  CHECK(c10::TensorType::get()->isSubtypeOf(c10::AnyType::get()));
  CHECK_THROWS(rushlight::Error, "expected a DictType", list->expect<c10::DictType>());
  CHECK(std::string(c10::typeKindToString(list->kind())) == "ListType");
  CHECK(IValue(std::nullopt).isNone());
  CHECK_THROWS(rushlight::Error, "None", IValue(3).toNone());
}

RL_TEST(types_of_modules) {
  torch::jit::Module net("Net");
  net.register_parameter("weight", torch::ones({2}), false);
  net.define("def forward(self, x, by: int = 2):\n  return self.weight * x + by\n");
  CHECK(net.get_method("forward").num_inputs() == 3 &&
        net.get_method("forward").name() == "forward");
  const auto type = net.type();
  CHECK(type->is_module() && type->hasAttribute("weight") && !type->hasAttribute("bias"));
  CHECK(type->getAttribute("weight")->kind() == c10::TypeKind::TensorType);
  const auto& schema = type->getMethod("forward").getSchema();
  CHECK(schema.arguments()[2].type()->kind() == c10::TypeKind::IntType);
  CHECK(schema.returns().size() == 1);
  CHECK_THROWS(rushlight::Error, "find method", type->getMethod("backward"));
  const rushlight::IValue value(net.object()->value());
  CHECK(value.isModule() && value.toModule() == net);
  CHECK_THROWS(rushlight::Error, "module", rushlight::IValue(3).toModule());
  std::stringstream stream;
  net.save(stream);
  CHECK(torch::jit::load(stream).hasattr("weight"));
}

RL_TEST_MAIN()
