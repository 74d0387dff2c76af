// Sampler: the next token, drawn from what a network says of all tokens.
#include <rushlight/language.h>

#include <algorithm>
#include <cmath>

#include <rushlight/factories.h>
#include <rushlight/ops.h>
#include <rushlight/thread_state.h>

namespace rushlight::language {
namespace {

Tensor penalised(const Tensor& logits, const std::vector<int64_t>& seen, double less) {
  if (less == 1 || seen.empty()) {
    return logits;
  }
  const std::set<int64_t> all(seen.begin(), seen.end());
  const Tensor tokens = tensor(std::vector<int64_t>(all.begin(), all.end()));
  const Tensor found = logits.index_select(0, tokens);
  return logits.index_copy(0, tokens, rushlight::where(found > 0, found / less, found * less));
}

}  // namespace

void Sampler::check() const {
  const auto expect = [](const char* name, double value, bool good) {
    RL_CHECK_VALUE(good, "Sampler: ", name, " cannot be ", value);
  };
  expect("temperature", temperature, temperature >= 0 && std::isfinite(temperature));
  expect("top_k", static_cast<double>(top_k), top_k >= 0);
  expect("top_p", top_p, top_p >= 0 && top_p <= 1);
  expect("repetition_penalty", repetition_penalty,
         repetition_penalty > 0 && std::isfinite(repetition_penalty));
}

int64_t Sampler::operator()(const Tensor& logits, const std::vector<int64_t>& seen) const {
  check();
  const NoGradGuard guard;
  Tensor x = penalised(logits.to(kFloat32), seen, repetition_penalty);
  if (temperature == 0) {
    return x.argmax().item<int64_t>();
  }
  const int64_t count = x.size(0);
  Tensor tokens;
  if (top_k != 0) {
    std::tie(x, tokens) = x.topk(std::min(top_k, count));
  } else if (top_p < 1) {
    std::tie(x, tokens) = x.sort(-1, true);
  } else {
    tokens = rushlight::arange(count);
  }
  Tensor likely = (x / temperature).softmax(0);
  if (top_p < 1) {
    Tensor keep = (likely.cumsum(0) - likely) < top_p;
    keep.narrow(0, 0, 1).fill_(true);  // the likeliest is kept whatever the limit
    likely = likely * keep;
  }
  const int64_t drawn = rushlight::multinomial(likely, 1, false, generator).item<int64_t>();
  return tokens.select(0, drawn).item<int64_t>();
}

}  // namespace rushlight::language
