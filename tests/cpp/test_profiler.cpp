// Profiles of C++ programs: events, tables, traces.
#include <torch/csrc/autograd/profiler.h>
#include <torch/torch.h>

#include <cstdio>
#include <sstream>
#include <string>

#include "check.h"

namespace {
size_t count(const torch::profiler::Profile& profile, const std::string& name) {
  size_t n = 0;
  for (const auto& event : profile.events()) {
    n += event.name == name ? 1 : 0;
  }
  return n;
}
size_t occurrences(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    n++;
  }
  return n;
}
}  // namespace

RL_TEST(ops_and_ranges_are_noted) {
  torch::profiler::Profile profile(/*with_shapes=*/true);
  const torch::Tensor x = torch::ones({2, 3}, torch::requires_grad());
  {
    RECORD_FUNCTION("my range", std::vector<c10::IValue>());
    (x * x).sum().backward();
  }
  profile.stop();
  x.exp();
  CHECK(count(profile, "my range") == 1);
  CHECK(count(profile, "aten::mul.Tensor") >= 1);
  CHECK(count(profile, "aten::exp") == 0);
  bool shapes = false;
  for (const auto& event : profile.events()) {
    CHECK(event.end >= event.begin && event.begin > 0);
    shapes = shapes || (event.name == "aten::mul.Tensor" && event.shapes.size() == 2 &&
                        event.shapes[0] == torch::IntArrayRef({2, 3}));
    CHECK(event.is_op == (event.name.rfind("aten::", 0) == 0));  // backward functions are ranges
  }
  CHECK(shapes);
  profile.stop();  // once more: nothing
}

RL_TEST(profiles_nest_and_sum) {
  torch::profiler::Profile outer;
  const torch::Tensor x = torch::ones({3});
  x.sin();
  {
    torch::profiler::Profile inner;
    x.sin();
    x.cos();
    inner.stop();
    CHECK(count(inner, "aten::sin") == 1 && count(inner, "aten::cos") == 1);
    CHECK(occurrences(inner.table(1), "\n") == 2);
  }
  outer.stop();
  CHECK(count(outer, "aten::sin") == 2);
  const std::string table = outer.table();
  CHECK(table.find("aten::sin") != std::string::npos);
  CHECK(table.find("         2 ") != std::string::npos);
}

RL_TEST(traces_are_written) {
  std::ostringstream text;
  {
    const torch::autograd::profiler::RecordProfile profile(text);
    RECORD_FUNCTION("a \"range\"\n", std::vector<c10::IValue>());
    torch::ones({2}).add(1);
  }
  CHECK(text.str().find("\"traceEvents\": [") != std::string::npos);
  CHECK(text.str().find("\"a \\\"range\\\"\\u000a\"") != std::string::npos);
  CHECK(occurrences(text.str(), "\"ph\": \"X\"") >= 2);
  CHECK(occurrences(text.str(), "{") == occurrences(text.str(), "}"));
  torch::profiler::Profile profile;
  CHECK_THROWS(rushlight::Error, "cannot write",
               profile.export_chrome_trace("/nowhere/trace.json"));
}

RL_TEST_MAIN()
