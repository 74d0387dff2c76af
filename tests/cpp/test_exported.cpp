// Exported programs in C++: JSON, a program of a file that is written here, threads, PyTorch's
// name.
#include <atomic>
#include <unistd.h>

#include <sstream>
#include <thread>

#include <rushlight/exported.h>
#include <rushlight/functions.h>

#include <torch/nativert/ModelRunner.h>

#include "check.h"
#include "exported/sizes.h"
#include <rushlight/json.h>
#include "serialize/zip.h"
#include "string_sink.h"

using namespace rushlight;
using serialize::Json;

namespace {

constexpr const char* meta = R"({"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 3}],
  "requires_grad": true, "device": {"type": "cpu", "index": null},
  "strides": [{"as_int": 3}, {"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7})";

// How arguments and results lie in containers, as text in text.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    out += c == '"' || c == '\\' ? "\\" : "";
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}
constexpr const char* arguments =
    R"([1, {"type": "builtins.tuple", "children_spec": [{"type": "builtins.tuple",
       "children_spec": [{"type": null}]}, {"type": "builtins.dict", "context": "[]",
       "children_spec": []}]}])";
constexpr const char* results =
    R"([1, {"type": "builtins.dict", "context": "[\"y\", \"rows\"]",
       "children_spec": [{"type": null}, {"type": null}]}])";

// y = relu(linear(x, weight)) + rows, for two to nine rows.
const std::string model = R"json({
"schema_version": {"major": 8, "minor": 20},
"range_constraints": {"s0": {"min_val": 2, "max_val": 9}},
"graph_module": {
 "graph": {
  "inputs": [{"as_tensor": {"name": "w"}}, {"as_tensor": {"name": "x"}}],
  "outputs": [{"as_tensor": {"name": "add"}}, {"as_sym_int": {"as_name": "rows"}}],
  "nodes": [
   {"target": "torch.ops.aten.sym_size.int", "metadata": {},
    "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},
               {"name": "dim", "arg": {"as_int": 0}, "kind": 1}],
    "outputs": [{"as_sym_int": {"as_name": "rows"}}]},
   {"target": "torch.ops.aten.linear.default", "metadata": {},
    "inputs": [{"name": "input", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},
               {"name": "weight", "arg": {"as_tensor": {"name": "w"}}, "kind": 1}],
    "outputs": [{"as_tensor": {"name": "linear"}}]},
   {"target": "torch.ops.aten.relu.default", "metadata": {},
    "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "linear"}}, "kind": 1}],
    "outputs": [{"as_tensor": {"name": "relu"}}]},
   {"target": "torch.ops.aten.add.Tensor", "metadata": {},
    "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "relu"}}, "kind": 1},
               {"name": "other", "arg": {"as_sym_int": {"as_name": "rows"}}, "kind": 1}],
    "outputs": [{"as_tensor": {"name": "add"}}]}],
  "tensor_values": {"x": {
   "dtype": 7,
   "sizes": [{"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": {"as_int": 4}}}, {"as_int": 3}],
   "requires_grad": false,
   "device": {"type": "cpu", "index": null},
   "strides": [{"as_int": 3}, {"as_int": 1}],
   "storage_offset": {"as_int": 0},
   "layout": 7}},
  "sym_int_values": {}},
 "signature": {
  "input_specs": [{"parameter": {"arg": {"name": "w"}, "parameter_name": "layer.weight"}},
   {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
  "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "add"}}}},
   {"user_output": {"arg": {"as_sym_int": {"as_name": "rows"}}}}]},
 "module_call_graph": [{"fqn": "", "signature": {"inputs": [], "outputs": [], "in_spec": )json" +
                          quoted(arguments) + R"(, "out_spec": )" + quoted(results) + "}}]}}";

std::string file(const std::string& model_text) {
  testing::StringSink sink;
  serialize::ZipWriter zip(sink);
  const auto add = [&](const std::string& name, const std::string& bytes) {
    zip.add("net/" + name, bytes.data(), bytes.size());
  };
  const float numbers[] = {1, 2, 3, -4, -5, -6};
  add("data/weights/weight_0", std::string(reinterpret_cast<const char*>(numbers), 24));
  add("data/weights/model_weights_config.json",
      str(R"({"config": {"layer.weight": {"path_name": "weight_0", "is_param": true,
              "use_pickle": false, "tensor_meta": )",
          meta, "}}}"));
  add("models/model.json", model_text);
  add("archive_format", "pt2");
  add("archive_version", "0");
  zip.finish();
  return sink.bytes;
}

exported::Program load(const std::string& bytes) {
  std::istringstream stream(bytes);
  return exported::load(stream);
}

}  // namespace

RL_TEST(json_says_what_is_there) {
  const std::string text = R"({"a": [1, -2.5e3, "x\n\u00e9", null, true], "b": {}, "a": 3})";
  const Json json(text, "test");
  std::vector<Json> items;
  json.at("a").items([&](const Json& item) { items.push_back(item); });
  CHECK(items.size() == 5 && items[0].integer() == 1 && items[1].number() == -2500);
  CHECK(items[2].string() == "x\n\u00e9" && items[3].is_null() && items[4].boolean());
  CHECK(json.at("b").is_object() && !json.find("c"));
  CHECK_THROWS(Error, "'c' is missing", json.at("c"));
  CHECK_THROWS(Error, "expected an integer", items[1].integer());
  CHECK_THROWS(Error, "a character is missing or wrong", items[0].string());
  CHECK_THROWS(Error, "there are several", json.only());
  for (const char* const bad :
       {"", "[1,]", "{\"a\" 1}", "nul", "01x", "\"\\x\"", "[1] 2", "1e999"}) {
    CHECK_THROWS(Error, "test: ", Json(bad, "test"));
  }
  CHECK_THROWS(Error, "too deep", Json(std::string(1000, '['), "test"));
}

RL_TEST(sizes_are_expressions) {
  const exported::Symbols symbols{{"s0", 7}, {"s1", 3}};
  const auto value = [&](const char* text) { return exported::value_of(text, symbols); };
  CHECK(value("s0") == 7 && value("Symbol('s1', positive=True, integer=True)") == 3);
  CHECK(value("Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(-1))") == 13);
  CHECK(value("FloorDiv(s0, s1)") == 2 && value("Mod(s0, s1)") == 1 &&
        value("Max(s0, s1, 9)") == 9);
  CHECK(!value("s2") && !value("Pow(s0, 2)") && !value("Add(s0") && !value("") && !value("s0)"));
  CHECK(!value("Mul(s0, 9223372036854775807)") && !value("FloorDiv(s0, 0)"));
  CHECK(exported::symbol_in("Symbol('s0', positive=True)") == "s0");
  CHECK(exported::symbol_in("Add(s0, 1)").empty());
}

RL_TEST(a_program_runs) {
  const exported::Program program = load(file(model));
  CHECK((program.argument_names() == std::vector<std::string>{"x"}) && program.result_count() == 2);
  CHECK(program.tensors().size() == 1 && program.tensors()[0].first == "layer.weight");
  const Tensor x = ones({4, 3});
  const auto result = program.run({x}).toGenericDict();
  CHECK(result.at("rows").toInt() == 4);
  const Tensor y = result.at("y").toTensor();
  CHECK((equal(y, tensor({10.f, 4.f}).expand({4, 2})) && !y.requires_grad()));
  CHECK_THROWS(Error, "the size s0 is 1, and the program was exported for at least 2",
               program.run({ones({1, 3})}));
  CHECK_THROWS(Error, "at most 9", program.run({ones({10, 3})}));
  CHECK_THROWS(Error, "dimension 1 of the argument 'x' is 2", program.run({ones({4, 2})}));
  CHECK_THROWS(Error, "is of float64", program.run({x.to(kFloat64)}));
  CHECK_THROWS(Error, "1 argument by position, got 2", program.run({x, x}));
  CHECK_THROWS(Error, "0 arguments by name, got 1", program.run({x}, {{"more", x}}));
  CHECK_THROWS(Error, "expected a tensor", program.run({3}));
}

RL_TEST(one_program_runs_in_many_threads) {
  const exported::Program program = load(file(model));
  const Tensor x = ones({4, 3});
  const Tensor expected = program.run_flat({x})[0].toTensor();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; t++) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; i++) {
        wrong += !equal(program.run_flat({x})[0].toTensor(), expected);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(wrong == 0);
}

RL_TEST(pytorchs_name_runs_the_same) {
  const std::string path = str("/tmp/rushlight_exported_", getpid(), ".pt2");
  const std::string bytes = file(model);
  std::FILE* const out = std::fopen(path.c_str(), "wb");
  CHECK(std::fwrite(bytes.data(), 1, bytes.size(), out) == bytes.size());
  std::fclose(out);
  torch::nativert::ModelRunner runner(path, "model");
  CHECK(runner.numOutputs() == 2);
  CHECK(runner.run({torch::ones({2, 3})}).toGenericDict().size() == 2);
  CHECK(runner.runWithFlatInputsAndOutputs({torch::ones({2, 3})})[1].toInt() == 2);
  CHECK_THROWS(Error, "no model 'other'", torch::nativert::ModelRunner(path, "other"));
  std::remove(path.c_str());
}

RL_TEST(files_cut_short_are_refused) {
  const std::string bytes = file(model);
  for (size_t n = 0; n < bytes.size(); n += 37) {
    CHECK_THROWS(Error, "", load(bytes.substr(0, n)));
  }
  const std::string text = model;
  for (size_t n = 0; n < text.size(); n += 11) {
    CHECK_THROWS(Error, "this .pt2 file is damaged", load(file(text.substr(0, n))));
  }
}

RL_TEST_MAIN()
