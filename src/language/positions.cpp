#include "language/positions.h"

#include <algorithm>
#include <cmath>

#include <rushlight/ops.h>

#include "language/metadata.h"

namespace rushlight::language {
namespace {

constexpr double pi = 3.14159265358979323846;

double scaling_number(const gguf::Metadata& metadata, const std::string& name, double otherwise) {
  const std::string key = "llama.rope." + name;
  if (!has(metadata, key)) {
    return otherwise;
  }
  const std::optional<double> found = number(metadata, key);
  RL_CHECK_VALUE(found && *found > 0 && *found < 2147483648.0, key, " must be a positive number");
  return *found;
}

}  // namespace

Scaling Scaling::of(const gguf::Metadata& metadata, int64_t context) {
  const double linear = scaling_number(metadata, "scale_linear", 1);
  Scaling s;
  s.factor = scaling_number(metadata, "scaling.factor", linear);
  s.kind = s.factor == 1 ? "none" : "linear";
  if (has(metadata, "llama.rope.scaling.type")) {
    const auto* const kind = find<std::string>(metadata, "llama.rope.scaling.type");
    RL_CHECK_VALUE(kind != nullptr && (*kind == "none" || *kind == "linear" || *kind == "yarn"),
                   "positions are scaled in the way '", kind == nullptr ? "" : *kind,
                   "'; those that are known are 'none', 'linear' and 'yarn'");
    s.kind = *kind;
  }
  if (s.kind == "none") {
    return {};
  }
  s.original = std::floor(
      scaling_number(metadata, "scaling.original_context_length", static_cast<double>(context)));
  s.attention = scaling_number(metadata, "scaling.attn_factor", 1) *
                scaling_number(metadata, "scaling.yarn_attn_factor", 1);
  s.fast = scaling_number(metadata, "scaling.yarn_beta_fast", 32);
  s.slow = scaling_number(metadata, "scaling.yarn_beta_slow", 1);
  s.share = scaling_number(metadata, "scaling.yarn_ext_factor", 1);
  return s;
}

double Scaling::size() const {
  return attention * (kind == "yarn" && factor > 1 ? 1 + 0.1 * std::log(factor) : 1);
}

Tensor Scaling::angles(int64_t turned, double base) const {
  const Tensor pairs = rushlight::arange(0, turned, 2, kFloat64) / turned;
  const Tensor angles = rushlight::pow(base, -pairs);
  if (kind == "none") {
    return angles;
  }
  if (kind == "linear") {
    return angles / factor;
  }
  // Which pair turns so often within the original positions.
  const auto pair_with = [&](double turns) {
    return static_cast<double>(turned) * std::log(original / (turns * 2 * pi)) /
           (2 * std::log(base));
  };
  const double first = std::max(std::floor(pair_with(fast)), 0.0);
  const double last = std::min(std::ceil(pair_with(slow)), static_cast<double>(turned - 1));
  const Tensor places = rushlight::arange(0, turned / 2, 1, kFloat64);
  const Tensor ramp = ((places - first) / std::max(0.001, last - first)).clamp(0, 1);
  const Tensor stays = (1 - ramp) * share;
  return angles * stays + angles / factor * (1 - stays);
}

}  // namespace rushlight::language
