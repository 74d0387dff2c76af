// Graphs run: branches, loops, calls, failures, threads, and when values die.
#include <chrono>
#include <thread>

#include <rushlight/executor.h>
#include <rushlight/graph_passes.h>
#include <rushlight/rushlight.h>

#include "check.h"

using namespace rushlight;
using graph::Block;
using graph::Graph;
using graph::InsertPoint;
using graph::Kind;
using graph::Program;
using GraphValue = graph::Value;

namespace {

const Type tensor_type = {Type::Kind::Tensor};
const Type int_type = {Type::Kind::Int};
const Type bool_type = {Type::Kind::Bool};

// flag ? x + x : x * 2.5
std::unique_ptr<Graph> graph_with_branch() {
  auto made = std::make_unique<Graph>();
  GraphValue* const x = made->add_input(tensor_type, "x");
  GraphValue* const flag = made->add_input(bool_type, "flag");
  graph::Node* const branch = made->append(Kind::If, {flag});
  {
    const InsertPoint inside(*made, *branch->add_block());
    branch->block(0).add_return(made->append("aten::add.Tensor", {x, x, made->constant(1)}));
  }
  {
    const InsertPoint inside(*made, *branch->add_block());
    branch->block(1).add_return(made->append("aten::mul.Scalar", {x, made->constant(2.5)}));
  }
  made->add_output(branch->output());
  return made;
}

// for i in range(n): x, y = y, x * w
std::unique_ptr<Graph> graph_with_loop() {
  auto made = std::make_unique<Graph>();
  GraphValue* const x = made->add_input(tensor_type, "x");
  GraphValue* const y = made->add_input(tensor_type, "y");
  GraphValue* const w = made->add_input(tensor_type, "w");
  GraphValue* const n = made->add_input(int_type, "n");
  GraphValue* const on = made->constant(true);
  graph::Node* const loop = made->append(Kind::Loop, {n, on, x, y}, 2);
  Block& body = *loop->add_block();
  body.add_param(int_type);
  GraphValue* const a = body.add_param(tensor_type);
  GraphValue* const b = body.add_param(tensor_type);
  {
    const InsertPoint inside(*made, body);
    GraphValue* const product = made->append("aten::mul.Tensor", {a, w});
    body.add_return(on);
    body.add_return(b);
    body.add_return(product);
  }
  made->add_output(loop->output(0));
  made->add_output(loop->output(1));
  made->verify();
  return made;
}

double first(const IValue& value) { return value.toTensor().item<double>(); }

RL_TEST(branches) {
  const Program program(*graph_with_branch(), "f");
  const Tensor x = full({1}, 2.0);
  CHECK(first(program.run({x, true})[0]) == 4);
  CHECK(first(program.run({x, false})[0]) == 5);
  CHECK_THROWS(Error, "takes 2 arguments", program.run({x}));
  CHECK_THROWS(Error, "TorchScript interpreter", program.run({x, "text"}));
}

RL_TEST(loops) {
  const Program program(*graph_with_loop(), "f");
  const auto run = [&](int64_t n) {
    const std::vector<IValue> out =
        program.run({full({1}, 1.0), full({1}, 10.0), full({1}, 2.0), n});
    return std::make_pair(first(out[0]), first(out[1]));
  };
  CHECK(run(0) == std::make_pair(1.0, 10.0));
  CHECK(run(-1) == std::make_pair(1.0, 10.0));
  CHECK(run(1) == std::make_pair(10.0, 2.0));
  CHECK(run(2) == std::make_pair(2.0, 20.0));
  CHECK(run(5) == std::make_pair(40.0, 8.0));
}

// Carried values that change places stay two values.
RL_TEST(swaps) {
  Graph made;
  GraphValue* const x = made.add_input(int_type);
  GraphValue* const y = made.add_input(int_type);
  GraphValue* const on = made.constant(true);
  graph::Node* const loop = made.append(Kind::Loop, {made.constant(3), on, x, y}, 2);
  Block& body = *loop->add_block();
  body.add_param(int_type);
  GraphValue* const a = body.add_param(int_type);
  GraphValue* const b = body.add_param(int_type);
  body.add_return(on);
  body.add_return(b);
  body.add_return(a);
  made.add_output(loop->output(0));
  made.add_output(loop->output(1));
  made.verify();
  const std::vector<IValue> out = Program(made, "swap").run({1, 2});
  CHECK(out[0].toInt() == 2 && out[1].toInt() == 1);
}

// for i in range(n): x, y = x, x
RL_TEST(one_value_is_carried_twice) {
  for (const bool first_stays : {true, false}) {
    Graph made;
    GraphValue* const x = made.add_input(tensor_type);
    GraphValue* const y = made.add_input(tensor_type);
    GraphValue* const on = made.constant(true);
    graph::Node* const loop = made.append(Kind::Loop, {made.constant(2), on, x, y}, 2);
    Block& body = *loop->add_block();
    body.add_param(int_type);
    GraphValue* const a = body.add_param(tensor_type);
    GraphValue* const b = body.add_param(tensor_type);
    body.add_return(on);
    body.add_return(first_stays ? a : b);
    body.add_return(first_stays ? a : b);
    made.add_output(loop->output(0));
    made.add_output(loop->output(1));
    made.verify();
    const std::vector<IValue> out = Program(made, "f").run({full({1}, 1.0), full({1}, 2.0)});
    const double expected = first_stays ? 1 : 2;
    CHECK(first(out[0]) == expected && first(out[1]) == expected);
  }
}

RL_TEST(gradients) {
  const Program program(*graph_with_loop(), "f");
  const Tensor w = full({1}, 3.0).requires_grad_(true);
  const std::vector<IValue> out = program.run({full({1}, 1.0), full({1}, 1.0), w, 4});
  (out[0].toTensor() + out[1].toTensor()).sum().backward();
  CHECK(w.grad().item<double>() == 12);  // of w^2 + w^2
  const NoGradGuard off;
  CHECK(!program.run({full({1}, 1.0), full({1}, 1.0), w, 4})[0].toTensor().requires_grad());
}

// y = relu(x); z = y + 1; return z: nobody holds x behind the first op, nor y behind the second.
RL_TEST(values_die_at_their_last_use) {
  Graph made;
  GraphValue* const x = made.add_input(tensor_type);
  GraphValue* const y = made.append("aten::relu", {x});
  GraphValue* const z = made.append("aten::add.Scalar", {y, made.constant(1), made.constant(1)});
  // Only used where the flag is set, so it dies in both branches.
  GraphValue* const flag = made.add_input(bool_type);
  graph::Node* const branch = made.append(Kind::If, {flag});
  {
    const InsertPoint inside(made, *branch->add_block());
    branch->block(0).add_return(made.append("aten::neg", {z}));
  }
  {
    const InsertPoint inside(made, *branch->add_block());
    GraphValue* const one = made.constant(1);
    branch->block(1).add_return(made.append("prim::NumToTensor.Scalar", {one}));
  }
  made.add_output(branch->output());
  made.verify();
  const Program program(made, "f");
  for (const bool flag_is : {true, false}) {
    Tensor input = ones({1000});
    const Storage storage = input.storage();
    std::vector<IValue> arguments = {std::move(input), flag_is};
    program.run(std::move(arguments));
    CHECK(storage->use_count() == 1);
  }
}

RL_TEST(functions_call_functions) {
  auto unit = std::make_shared<graph::CompilationUnit>();
  auto source = std::make_shared<graph::Source>(
      graph::Source{"def g(x, y):\n  return x + y\ndef f(x, y):\n  return g(x, y)\n", "net.py"});
  auto inner = std::make_unique<Graph>();
  {
    GraphValue* const x = inner->add_input(tensor_type, "x");
    GraphValue* const y = inner->add_input(tensor_type, "y");
    inner->range = {source, 22, 27};
    inner->add_output(inner->append("aten::add.Tensor", {x, y, inner->constant(1)}));
  }
  graph::Function& g = unit->add_function(
      "g", graph::parse_schema("g(Tensor x, Tensor y) -> Tensor"), std::move(inner));
  graph::Function& f =
      unit->add_function("__torch__.f", graph::parse_schema("f(Tensor x, Tensor y) -> Tensor"));
  int made = 0;
  f.set_maker([&] {
    made++;
    auto outer = std::make_unique<Graph>();
    GraphValue* const x = outer->add_input(tensor_type, "x");
    GraphValue* const y = outer->add_input(tensor_type, "y");
    outer->range = {source, 50, 57};
    graph::Node* const call = outer->append(Kind::CallFunction, {x, y});
    call->function = &g;
    outer->add_output(call->output());
    return outer;
  });
  CHECK(f({ones({2}), ones({2})}).toTensor().sum().item<double>() == 4);
  CHECK(f({ones({2})}, {{"y", ones({2})}}).toTensor().sum().item<double>() == 4);
  CHECK(made == 1);
  CHECK_THROWS(Error, "missing value for argument 'y'", f({ones({2})}));
  CHECK_THROWS(Error, "no argument 'z'", f({ones({2})}, {{"z", 1}}));
  CHECK_THROWS(Error, "passed twice", f({ones({2})}, {{"x", ones({2})}}));
  CHECK_THROWS(Error, "expected a value of type 'Tensor'", f({1, 2}));
  const char* const trace =
      "Traceback of TorchScript (most recent call last):\n"
      "  File \"net.py\", line 4, in f\n"
      "def g(x, y):\n"
      "  return x + y\n"
      "def f(x, y):\n"
      "  return g(x, y)\n"
      "         ~~~~~~~ <--- HERE\n"
      "  File \"net.py\", line 2, in g\n"
      "def g(x, y):\n"
      "  return x + y\n"
      "         ~~~~~ <--- HERE\n"
      "def f(x, y):\n"
      "  return g(x, y)\n"
      "RuntimeError: ";
  try {
    f({ones({2}), ones({3})});
    CHECK(false);
  } catch (const Error& e) {
    CHECK(std::strstr(e.what(), trace) != nullptr);
  }
  // The frame of a failed run is as good as new.
  CHECK(f({ones({2}), ones({2})}).toTensor().sum().item<double>() == 4);
}

RL_TEST(objects) {
  auto unit = std::make_shared<graph::CompilationUnit>();
  ClassType& type = unit->add_class(ClassType::Form::Class, "__torch__.Counter");
  type.add_attribute({"n", int_type});
  const Type of_type = Type::of_class(type);
  auto body = std::make_unique<Graph>();
  {
    GraphValue* const self = body->add_input(of_type, "self");
    graph::Node* const n = body->append(Kind::GetAttr, {self});
    n->set_attribute("name", "n");
    n->output()->set_type(int_type);
    GraphValue* const more = body->append("aten::add.int", {n->output(), body->constant(1)});
    body->append(Kind::SetAttr, {self, more}, 0)->set_attribute("name", "n");
    body->add_output(more);
    body->verify();
  }
  graph::Schema schema = graph::parse_schema("step(t self) -> int");
  unit->add_method(type, "step", schema, std::move(body));
  auto outer = std::make_unique<Graph>();
  GraphValue* const self = outer->add_input({Type::Kind::Any}, "self");
  graph::Node* const call = outer->append(Kind::CallMethod, {self});
  call->set_attribute("name", "step");
  outer->add_output(call->output());
  const Program program(*outer, "f");
  intrusive_ptr<Object> counter = unit->create(type);
  counter->at("n") = 5;
  CHECK(program.run({counter->value()})[0].toInt() == 6);
  CHECK(program.run({counter->value()})[0].toInt() == 7);
  CHECK(counter->at("n").toInt() == 7);
  CHECK_THROWS(Error, "used as an object", program.run({1}));
  CHECK(type_of(counter->value()).str() == "__torch__.Counter");
}

RL_TEST(exceptions_of_programs) {
  Graph made;
  GraphValue* const text = made.add_input({Type::Kind::String}, "text");
  made.append(Kind::RaiseException, {text, made.constant("builtins.ValueError")}, 0);
  const Program program(made, "f");
  try {
    program.run({"too small"});
    CHECK(false);
  } catch (const graph::Raised& e) {
    CHECK(e.class_name() == "builtins.ValueError" && e.text() == "too small");
    CHECK(std::strstr(e.what(), "builtins.ValueError: too small\n") != nullptr);
  }
}

RL_TEST(many_threads) {
  const Program branch(*graph_with_branch(), "f");
  const Program loop(*graph_with_loop(), "g");
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; t++) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; i++) {
        const Tensor x = full({1}, t + 1.0);
        const bool flag = i % 2 == 0;
        const double made = first(branch.run({x, flag})[0]);
        wrong += made == (flag ? 2 : 2.5) * (t + 1) ? 0 : 1;
        const double last = first(loop.run({x, x, full({1}, 2.0), 4})[0]);
        wrong += last == 4 * (t + 1) ? 0 : 1;
        if (i % 50 == 0) {
          CHECK_THROWS(Error, "interpreter", branch.run({"text", flag}));
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(wrong == 0);
}

std::string optimized(Graph& graph) {
  graph::optimize(graph);
  graph.verify();
  return graph.str();
}

RL_TEST(constants_are_computed) {
  Graph made;
  GraphValue* const x = made.add_input(tensor_type, "x");
  GraphValue* const sum = made.append("aten::add.int", {made.constant(2), made.constant(3)});
  GraphValue* const is_five = made.append("aten::eq.int", {sum, made.constant(5)});
  graph::Node* const branch = made.append(Kind::If, {is_five});
  {
    const InsertPoint inside(made, *branch->add_block());
    branch->block(0).add_return(made.append("aten::mul.Scalar", {x, sum}));
  }
  {
    const InsertPoint inside(made, *branch->add_block());
    branch->block(1).add_return(made.append("aten::relu", {x}));
  }
  // What fails stays, and fails when it runs.
  GraphValue* const bad = made.append("aten::floordiv.int", {sum, made.constant(0)});
  made.add_output(branch->output());
  made.add_output(bad);
  const std::string text = optimized(made);
  CHECK(text.find("prim::If") == std::string::npos && text.find("aten::mul") != std::string::npos);
  CHECK(text.find("aten::floordiv") != std::string::npos);
  CHECK_THROWS(Error, "division by 0", Program(made, "f").run({ones({1})}));
}

RL_TEST(common_nodes_are_merged) {
  const auto count = [](bool writes) {
    Graph made;
    GraphValue* const x = made.add_input(tensor_type, "x");
    GraphValue* const a = made.append("aten::relu", {x});
    if (writes) {
      made.append("aten::relu_", {x});
    }
    GraphValue* const b = made.append("aten::relu", {x});
    GraphValue* const n = made.append("aten::size.int", {x, made.constant(0)});
    GraphValue* const m = made.append("aten::size.int", {x, made.constant(0)});
    made.add_output(made.append("aten::add.Tensor", {a, b, made.constant(1)}));
    made.add_output(made.append("aten::add.int", {n, m}));
    optimized(made);
    size_t nodes = 0;
    for ([[maybe_unused]] const graph::Node* const node : made.block()) {
      nodes++;
    }
    const std::vector<IValue> out = Program(made, "f").run({full({2}, -1.0)});
    CHECK(out[0].toTensor().sum().item<double>() == 0 && out[1].toInt() == 4);
    return nodes;
  };
  CHECK(count(false) == 6);  // two constants, relu, size, two sums
  CHECK(count(true) == 9);
}

RL_TEST(dead_code_goes) {
  Graph made;
  GraphValue* const x = made.add_input(tensor_type, "x");
  made.append("aten::relu", {x});
  made.append("aten::relu_", {x});
  GraphValue* const on = made.constant(true);
  graph::Node* const loop = made.append(Kind::Loop, {made.constant(3), on, x, x}, 2);
  Block& body = *loop->add_block();
  body.add_param(int_type);
  GraphValue* const a = body.add_param(tensor_type);
  GraphValue* const b = body.add_param(tensor_type);
  {
    const InsertPoint inside(made, body);
    body.add_return(on);
    body.add_return(made.append("aten::neg", {a}));
    body.add_return(b);
  }
  made.add_output(loop->output(0));
  optimized(made);
  CHECK(loop->outputs().size() == 1 && body.params().size() == 2);
  CHECK(made.str().find("aten::relu(") == std::string::npos);
  CHECK(made.str().find("aten::relu_(") != std::string::npos);
  CHECK(first(Program(made, "f").run({full({1}, 2.0)})[0]) == -2);
}

RL_TEST(calls_are_inlined) {
  auto unit = std::make_shared<graph::CompilationUnit>();
  auto source = std::make_shared<graph::Source>(graph::Source{"g(x, x)\nx + y\n", "net.py"});
  auto inner = std::make_unique<Graph>();
  {
    GraphValue* const x = inner->add_input(tensor_type, "x");
    GraphValue* const y = inner->add_input(tensor_type, "y");
    inner->range = {source, 8, 13};
    inner->add_output(inner->append("aten::add.Tensor", {x, y, inner->constant(1)}));
  }
  graph::Function& g = unit->add_function(
      "g", graph::parse_schema("g(Tensor x, Tensor y) -> Tensor"), std::move(inner));
  Graph outer;
  outer.range = {source, 0, 7};
  GraphValue* const x = outer.add_input(tensor_type, "x");
  GraphValue* const y = outer.add_input(tensor_type, "y");
  graph::Node* const call = outer.append(Kind::CallFunction, {x, y});
  call->function = &g;
  outer.add_output(call->output());
  CHECK(optimized(outer).find("CallFunction") == std::string::npos);
  const char* const trace =
      "line 1, in f\ng(x, x)\n~~~~~~~ <--- HERE\nx + y\n  File \"net.py\", line 2, in g\n";
  try {
    Program(outer, "f").run({ones({2}), ones({3})});
    CHECK(false);
  } catch (const Error& e) {
    CHECK(std::strstr(e.what(), trace) != nullptr);
  }
}

RL_TEST(batch_norms_are_folded) {
  auto unit = std::make_shared<graph::CompilationUnit>();
  ClassType& type = unit->add_class(ClassType::Form::Module, "__torch__.Net");
  const char* const names[] = {"w", "b", "scale", "shift", "mean", "variance"};
  for (const char* const name : names) {
    type.add_attribute({name, tensor_type, true});
  }
  intrusive_ptr<Object> net = unit->create(type);
  net->at("w") = randn({4, 3, 3, 3});
  for (size_t i = 1; i < 6; i++) {
    net->at(names[i]) = rand({4}) + 0.5;
  }
  Graph made;
  GraphValue* const self = made.add_input(Type::of_class(type), "self");
  GraphValue* const x = made.add_input(tensor_type, "x");
  std::vector<GraphValue*> of;
  for (const char* const name : names) {
    graph::Node* const get = made.append(Kind::GetAttr, {self});
    get->set_attribute("name", name);
    of.push_back(get->output());
  }
  GraphValue* const one = made.constant(1);
  const auto pair_of = [&](GraphValue* item) {
    return made.append(Kind::ListConstruct, {item, item})->output()->set_type(Type::list(int_type));
  };
  GraphValue* const conv =
      made.append("aten::conv2d", {x, of[0], of[1], pair_of(one), pair_of(one), pair_of(one), one});
  GraphValue* const off = made.constant(false);
  made.add_output(made.append("aten::batch_norm", {conv, of[2], of[3], of[4], of[5], off,
                                                   made.constant(0.1), made.constant(1e-5), off}));
  const Tensor input = randn({2, 3, 5, 5});
  const NoGradGuard no_grad;
  const Tensor expected = Program(made, "f").run({net->value(), input})[0].toTensor();
  CHECK(graph::freeze_attributes(made, net->value()));
  CHECK(graph::fold_batch_norms(made));
  const std::string text = optimized(made);
  CHECK(text.find("batch_norm") == std::string::npos && text.find("GetAttr") == std::string::npos);
  const Tensor got = Program(made, "f").run({net->value(), input})[0].toTensor();
  CHECK(allclose(got, expected, 1e-4, 1e-5));
}

// Ten linear layers of 8 with relu: what the executor adds to twenty tiny ops.
RL_TEST(tiny_ops_are_quick) {
  Graph made;
  GraphValue* x = made.add_input(tensor_type);
  for (int i = 0; i < 10; i++) {
    GraphValue* const weight = made.constant(ones({8, 8}) / 8);
    x = made.append("aten::linear", {x, weight, made.constant(ones({8}))});
    x = made.append("aten::relu", {x});
  }
  made.add_output(x);
  const Program program(made, "f");
  graph::optimize(made);
  const NoGradGuard off;
  const Tensor input = ones({1, 8});
  double least = 1e9;
  for (int round = 0; round < 50; round++) {
    const auto begin = std::chrono::steady_clock::now();
    constexpr int n = 100;
    for (int i = 0; i < n; i++) {
      program.run({input});
    }
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    least = std::min(least, took.count() / n);
  }
  std::printf("twenty tiny ops: %.2f us\n", least);
  CHECK(program.size() <= 21);  // one instruction an op, and the end
}

}  // namespace

RL_TEST_MAIN()
