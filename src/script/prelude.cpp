// The prelude, which is text of the language.
#include "script/prelude.h"

#include <algorithm>

#include "script/lower.h"

namespace rushlight::script {

namespace {

constexpr const char* source = R"(
def _native_multi_head_attention(query: Tensor, key: Tensor, value: Tensor, embed_dim: int,
    num_head: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor,
    mask: Optional[Tensor]=None, need_weights: bool=True, average_attn_weights: bool=True,
    mask_type: Optional[int]=None) -> Tuple[Tensor, Tensor]:
  n = query.size(0)
  width = embed_dim // num_head
  weights = qkv_weight.chunk(3)
  biases = qkv_bias.chunk(3)
  q = torch.linear(query, weights[0], biases[0]).view(n, -1, num_head, width).transpose(1, 2)
  k = torch.linear(key, weights[1], biases[1]).view(n, -1, num_head, width).transpose(1, 2)
  v = torch.linear(value, weights[2], biases[2]).view(n, -1, num_head, width).transpose(1, 2)
  scores = torch.matmul(q, k.transpose(-2, -1)) / float(width) ** 0.5
  if mask is not None:
    hidden = mask.to(11)
    if mask_type is not None and mask_type == 1:
      hidden = hidden.view(n, 1, 1, -1)
    scores = scores.masked_fill(hidden, float("-inf"))
  shares = torch.softmax(scores, -1)
  joined = torch.matmul(shares, v).transpose(1, 2).reshape(n, -1, embed_dim)
  out = torch.linear(joined, proj_weight, proj_bias)
  if not need_weights:
    return out, uninitialized(Tensor)
  if average_attn_weights:
    return out, shares.mean(1)
  return out, shares

def _pack_padded_sequence(input: Tensor, lengths: Tensor,
    batch_first: bool) -> Tuple[Tensor, Tensor]:
  x = input.transpose(0, 1) if batch_first else input
  falling = lengths.numel() < 2 or bool((lengths[1:] <= lengths[:-1]).all())
  if lengths.numel() != x.size(1) or not falling or int(lengths.min()) <= 0:
    raise RuntimeError(f"lengths are positive, one for each of {x.size(1)} sequences, and do not grow")
  steps = int(lengths[0])
  if steps > x.size(0):
    raise RuntimeError(f"a sequence of {steps} steps in a tensor of {x.size(0)}")
  runs = torch.arange(steps).unsqueeze(1) < lengths.unsqueeze(0)
  return x[:steps][runs.to(x.device)], runs.sum(1)

def _pad_packed_sequence(data: Tensor, batch_sizes: Tensor, batch_first: bool,
    padding_value: number, total_length: int) -> Tuple[Tensor, Tensor]:
  steps = batch_sizes.size(0)
  if total_length > 0 and total_length < steps:
    raise RuntimeError(f"total_length is {total_length}, and the longest sequence has {steps} steps")
  n = int(batch_sizes[0])
  sizes = [max(steps, total_length), n] + data.size()[1:]
  out = torch.full(sizes, padding_value, dtype=data.dtype, device=data.device)
  runs = torch.arange(n).unsqueeze(0) < batch_sizes.unsqueeze(1)
  out[:steps][runs.to(data.device)] = data
  return out.transpose(0, 1) if batch_first else out, runs.sum(0)

def mH(self: Tensor) -> Tensor:
  return self.transpose(-2, -1).conj()

def matrix_H(self: Tensor) -> Tensor:
  if self.dim() == 0:
    return self
  if self.dim() != 2:
    raise RuntimeError("tensor.H is only supported on matrices")
  return self.transpose(0, 1).conj()

def complex(real: Tensor, imag: Tensor) -> Tensor:
  return torch.view_as_complex(torch.stack([real, imag], -1))

def div_0_3(self: Tensor, other: Tensor) -> Tensor:
  if self.is_floating_point() or other.is_floating_point():
    return torch.true_divide(self, other)
  return torch.div(self, other, rounding_mode="trunc")

def div_number_0_3(self: Tensor, other: number) -> Tensor:
  if self.is_floating_point() or isinstance(other, float):
    return torch.true_divide(self, other)
  return torch.div(self, other, rounding_mode="trunc")

def div__0_3(self: Tensor, other: Tensor) -> Tensor:
  if self.is_floating_point() or other.is_floating_point():
    return self.true_divide_(other)
  return self.div_(other, rounding_mode="trunc")

def div__number_0_3(self: Tensor, other: number) -> Tensor:
  if self.is_floating_point() or isinstance(other, float):
    return self.true_divide_(other)
  return self.div_(other, rounding_mode="trunc")

def full_0_4(size: List[int], fill_value: number, *, dtype: Optional[int]=None,
    layout: Optional[int]=None, device: Optional[Device]=None,
    pin_memory: Optional[bool]=None) -> Tensor:
  if dtype is None and not isinstance(fill_value, complex):
    dtype = 6
  return torch.full(size, fill_value, dtype=dtype, layout=layout, device=device,
                    pin_memory=pin_memory)

def linspace_0_7(start: number, end: number, steps: Optional[int], *, dtype: Optional[int]=None,
    layout: Optional[int]=None, device: Optional[Device]=None,
    pin_memory: Optional[bool]=None) -> Tensor:
  count = 100 if steps is None else steps
  return torch.linspace(start, end, count, dtype=dtype, layout=layout, device=device,
                        pin_memory=pin_memory)

def logspace_0_8(start: number, end: number, steps: Optional[int], base: float=10.0, *,
    dtype: Optional[int]=None, layout: Optional[int]=None, device: Optional[Device]=None,
    pin_memory: Optional[bool]=None) -> Tensor:
  count = 100 if steps is None else steps
  return torch.logspace(start, end, count, base, dtype=dtype, layout=layout, device=device,
                        pin_memory=pin_memory)
)";

class OpNames : public Resolver {
 public:
  std::optional<Meaning> find(std::string_view name) override { return op_name(name); }
  std::optional<Meaning> member(const Type&, graph::Value*, std::string_view) override {
    return {};
  }
  std::optional<std::vector<std::string>> submodules(const Type&) override { return {}; }
};

struct Parsed {
  Text text;
  Body body;
};
const Parsed& prelude_body() {
  static const auto* const made = [] {
    auto* const out = new Parsed();
    out->text = std::make_shared<graph::Source>(graph::Source{source, "prelude"});
    out->body = parse(out->text);
    return out;
  }();
  return *made;
}

}  // namespace

bool has_prelude_function(const std::string& name) {
  return std::any_of(prelude_body().body.begin(), prelude_body().body.end(),
                     [&](const Stmt& s) { return s.function->name == name; });
}

graph::Function* prelude_function(graph::CompilationUnit& unit, const std::string& name) {
  const std::string full = "__torch__.prelude." + name;
  if (graph::Function* const known = unit.find_function(full)) {
    return known;
  }
  for (const Stmt& s : prelude_body().body) {
    if (s.function->name == name) {
      OpNames names;
      graph::Schema schema = signature(*s.function, prelude_body().text, names, std::nullopt);
      std::optional<Type> returns = schema.results.at(0).type;
      Lowering lowering(unit, names, prelude_body().text, newest_version);
      std::unique_ptr<graph::Graph> graph = lowering.lower(*s.function, schema, returns);
      return &unit.add_function(full, std::move(schema), std::move(graph));
    }
  }
  return nullptr;
}

std::optional<std::string> name_in_version(const std::string& name, int64_t version, int tensors,
                                           bool has_mode) {
  if (version < 4 && tensors > 0 && !has_mode && (name == "aten::div" || name == "aten::div_")) {
    return name.substr(6) + (tensors == 2 ? "_0_3" : "_number_0_3");
  }
  constexpr std::tuple<std::string_view, int64_t, const char*> others[] = {
      {"aten::full", 5, "full_0_4"},
      {"aten::linspace", 8, "linspace_0_7"},
      {"aten::logspace", 9, "logspace_0_8"}};
  for (const auto& [op, first, form] : others) {
    if (op == name && version < first) {
      return form;
    }
  }
  return {};
}

namespace {
// torch.relu, ops.prim.device, ops.aten.add.
class OpSpace : public Space {
 public:
  OpSpace(std::string space, std::string shown)
      : space_(std::move(space)), shown_(std::move(shown)) {}
  std::optional<Meaning> find(std::string_view name) override {
    const std::string full = str(space_, "::", name);
    if (full == "prim::RaiseException") {
      return Meaning::named(Meaning::Kind::Special, "raise");
    }
    if (full == "aten::wait") {
      return Meaning::named(Meaning::Kind::Special, "wait");
    }
    return Meaning::named(Meaning::Kind::Op, full);
  }
  std::string describe() const override { return shown_; }

 private:
  std::string space_;
  std::string shown_;
};

class AllOps : public Space {
 public:
  std::optional<Meaning> find(std::string_view name) override {
    return Meaning::of_space(std::make_shared<OpSpace>(std::string(name), str("ops.", name)));
  }
  std::string describe() const override { return "ops"; }
};
}  // namespace

std::optional<Meaning> op_name(std::string_view name) {
  if (name == "torch") {
    return Meaning::of_space(std::make_shared<OpSpace>("aten", "torch"));
  }
  if (name == "ops") {
    return Meaning::of_space(std::make_shared<AllOps>());
  }
  return {};
}

}  // namespace rushlight::script
