// Carries out the rules of vmap (OpFunction::batch) on calls of which arguments have a batch.
#include "ops/batching.h"

#include <algorithm>
#include <mutex>
#include <set>

#include <rushlight/ops.h>

#include "core/iterator.h"
#include "core/op_support.h"

namespace rushlight::batching {

namespace {

// One call, and what its arguments are made of.
struct Call {
  const OpFunction& function;
  std::vector<Value> arguments;
  int64_t level = 0;
  int64_t batch = 0;
  uint64_t mask = 0;  // the arguments that have a batch

  bool has_batch(size_t i) const { return (mask >> i & 1) != 0; }
  bool writes() const {
    return !function.arguments().empty() && function.arguments()[0].type.written;
  }
  const char* name() const { return function.overloads[0].name; }
};

// What a tensor without a batch becomes beside those that have one.
enum class Lone : uint8_t { Left, One, Whole };

Tensor expand_slice(const Tensor& t, int64_t batch) {
  DimVector sizes(t.sizes());
  sizes.insert(0, batch);
  return t.unsqueeze(0).expand(sizes);
}

// The arguments without the level: tensors that have its batch have it in front.
std::vector<Value> unwrap_arguments(const Call& c, Lone covered, Lone others, uint64_t covers) {
  std::vector<Value> out = c.arguments;
  for (size_t i = 0; i < out.size(); i++) {
    const Lone said = (covers >> i & 1) != 0 ? covered : others;
    const Lone lone = said == Lone::Left && c.has_batch(i) ? Lone::Whole : said;  // a list
    out[i].change_tensors([&](const Tensor& t) {
      return level_of(t) == c.level ? value_of(t)
             : lone == Lone::Left   ? t
             : lone == Lone::One    ? t.unsqueeze(0)
                                    : expand_slice(t, c.batch);
    });
  }
  return out;
}

int64_t rank_of(const Value& v) {
  int64_t rank = -1;
  v.for_each_tensor([&](const Tensor& t) { rank = t.defined() ? std::max(rank, t.dim()) : rank; });
  return rank;
}
// The sizes of an input that a backward op is given: dimensions are those of that input.
const Value* input_sizes(const Call& c) {
  for (size_t i = 0; i < c.arguments.size(); i++) {
    if (is_size(c.function, i) && c.arguments[i].is<DimVector>()) {
      return &c.arguments[i];
    }
  }
  return nullptr;
}
// Of what dimensions are counted in: usually the first tensor of a call.
int64_t slice_rank(const Call& c) {
  if (const Value* sizes = input_sizes(c)) {
    return static_cast<int64_t>(sizes->get<DimVector>().size());
  }
  for (const Value& v : c.arguments) {
    if (const int64_t rank = rank_of(v); rank >= 0) {
      return rank;
    }
  }
  return 0;
}

// Dimensions of slices, counted behind the batch.
void count_behind(const Call& c, std::vector<Value>& arguments) {
  const int64_t rank = slice_rank(c);
  for (size_t i = 0; i < arguments.size(); i++) {
    Value& v = arguments[i];
    if (!is_dim(c.function, i) || v.is_none()) {
      continue;
    }
    if (v.is<DimVector>()) {
      DimVector dims = v.get<DimVector>();
      for (int64_t& d : dims) {
        d = wrap_dim(d, rank) + 1;
      }
      v = Value(std::move(dims));
    } else {
      v = Value(wrap_dim(v.get<int64_t>(), rank) + 1);
    }
  }
}

// Sizes have the batch in front where it leads.
void grow_sizes(const Call& c, std::vector<Value>& arguments) {
  for (size_t i = 0; i < arguments.size(); i++) {
    if (is_size(c.function, i) && arguments[i].is<DimVector>()) {
      DimVector sizes = arguments[i].get<DimVector>();
      sizes.insert(0, c.batch);
      arguments[i] = Value(std::move(sizes));
    }
  }
}

// Formats of images are those of slices, which batches with one dimension more do not have.
void drop_formats(std::vector<Value>& arguments) {
  for (Value& v : arguments) {
    if (v.is<MemoryFormat>() && (v.get<MemoryFormat>() == MemoryFormat::ChannelsLast ||
                                 v.get<MemoryFormat>() == MemoryFormat::ChannelsLast3d)) {
      v = Value(MemoryFormat::Contiguous);
    }
  }
}

std::vector<Value> run(const Call& c, std::vector<Value> arguments) {
  drop_formats(arguments);
  return c.function.call(arguments);
}

// ---- the rules ----

// 0-d slices take the dtype of the others, as they would if they had no batch.
void promote_numbers(const Call& c, std::vector<Value>& arguments) {
  std::vector<Tensor> operands;
  bool numbers = false;
  bool dimensioned = false;
  for (const Value& v : c.arguments) {
    if (v.is<Tensor>()) {
      const auto t = v.get<Tensor>();
      if (t.defined()) {
        operands.push_back(t);
        dimensioned |= t.dim() > 0;
        numbers |= t.dim() == 0 && level_of(t) == c.level;
      }
    }
  }
  if (!numbers || !dimensioned) {
    return;
  }
  const ScalarType common = result_type(operands);
  for (size_t i = 0; i < arguments.size(); i++) {
    if (c.has_batch(i) && c.arguments[i].is<Tensor>() && c.arguments[i].get<Tensor>().dim() == 0) {
      arguments[i].change_tensors([&](const Tensor& t) {
        const ScalarType wide = promote_types(t.dtype(), common);
        return wide != common && t.dtype() != kBool ? t.to(common) : t;
      });
    }
  }
}

std::vector<Value> align_batches(const Call& c) {
  std::vector<Value> arguments = unwrap_arguments(c, Lone::Left, Lone::Left, 0);
  int64_t rank = 0;
  for (const Value& v : c.arguments) {
    v.for_each_tensor(
        [&](const Tensor& t) { rank = t.defined() ? std::max(rank, t.dim()) : rank; });
  }
  for (size_t i = 0; i < arguments.size(); i++) {
    if (c.has_batch(i) && !(i == 0 && c.writes())) {
      arguments[i].change_tensors([&](Tensor t) {
        // Counted, since a mode may answer with a tensor of any rank.
        for (int64_t missing = rank + 1 - t.dim(); missing > 0; missing--) {
          t = t.unsqueeze(1);
        }
        return t;
      });
    }
  }
  promote_numbers(c, arguments);
  return run(c, std::move(arguments));
}

// The view of a tensor of which only its handler knows where elements lie: the same op, with its
// arguments counted behind the batch.
std::vector<Value> view_by_handler(const Call& c, const Tensor& x) {
  const std::string_view name = c.name();
  const int64_t rank = x.dim() - 1;
  if ((name == "t" && rank < 2) || (rank == 0 && (name == "transpose" || name == "squeeze"))) {
    return {Value(x)};
  }
  if (name == "t") {
    return {Value(x.transpose(1, 2))};
  }
  std::vector<Value> arguments = c.arguments;
  arguments[0] = Value(x);
  const auto put_in_front = [&](size_t i, int64_t v) {
    DimVector list = arguments[i].get<DimVector>();
    list.insert(0, v);
    arguments[i] = Value(std::move(list));
  };
  if (name == "unsqueeze") {
    arguments[1] = Value(wrap_dim(arguments[1].get<int64_t>(), rank + 1) + 1);
  } else if (name == "squeeze" && arguments.size() == 1) {
    DimVector ones;
    for (int64_t d = 1; d <= rank; d++) {
      if (x.size(d) == 1) {
        ones.push_back(d);
      }
    }
    return {Value(x.squeeze(ones))};
  } else if (name == "expand") {
    DimVector sizes = {c.batch};
    const auto missing = static_cast<int64_t>(arguments[1].get<DimVector>().size()) - rank;
    sizes.resize(static_cast<size_t>(std::max<int64_t>(missing, 0)) + 1, 1);
    for (int64_t d = 1; d <= rank; d++) {
      sizes.push_back(x.size(d));
    }
    arguments[0] = Value(missing > 0 ? x.view(sizes) : x);
    put_in_front(1, c.batch);
  } else if (name == "view") {
    put_in_front(1, c.batch);
  } else if (name == "as_strided") {
    put_in_front(1, c.batch);
    put_in_front(2, x.strides()[0]);
  } else {
    count_behind(c, arguments);
    if (name == "permute") {
      put_in_front(1, 0);
    }
  }
  return c.function.call(arguments);
}

// The geometry of a slice's view, with the batch's size and stride in front.
std::vector<Value> view(const Call& c) {
  const Tensor& x = value_of(c.arguments[0].get<Tensor>());
  if (is_special(all_of(x))) {
    return view_by_handler(c, x);
  }
  const Tensor& slice = c.arguments[0].get<Tensor>();
  auto impl = TensorImpl::make(x.storage(), x.dtype(), c.batch > 0 ? x.device() : Device(kMeta));
  impl->set_storage_offset(x.storage_offset());
  impl->set_sizes_and_strides(slice.sizes(), slice.strides());
  std::vector<Value> arguments = c.arguments;
  arguments[0] = Value(Tensor(std::move(impl)));
  std::vector<Value> results = c.function.call(arguments);
  for (Value& v : results) {
    v.change_tensors([&](const Tensor& out) {
      DimVector sizes(out.sizes());
      DimVector strides(out.strides());
      sizes.insert(0, c.batch);
      strides.insert(0, x.strides()[0]);
      return x.as_strided(sizes, strides, out.storage_offset());
    });
  }
  return results;
}

std::vector<Value> call_with_leading_batch(const Call& c, const Rule& rule) {
  if (rule.kind == Kind::Matrices) {
    const int64_t rank = rank_of(c.arguments[0]);
    RL_CHECK(rank >= 2, c.name(), ": The input tensor must have at least 2 dimensions, got ", rank);
  }
  std::vector<Value> arguments = unwrap_arguments(c, Lone::Whole, Lone::Left, rule.covers);
  grow_sizes(c, arguments);
  return run(c, std::move(arguments));
}

// Ops over dimensions: a number counts as one element where a dimension is named.
std::vector<Value> dims(const Call& c, const Rule& rule) {
  const Value* const sizes = input_sizes(c);
  bool numbers = sizes == nullptr;
  bool lone_number = false;  // one that meets vectors, as a row of one element
  // The gradient of an op on a number, which counts as one element.
  const bool of_number = !numbers && sizes->get<DimVector>().empty();
  const Value* wanted = nullptr;
  size_t at = 0;
  for (size_t i = 0; i < c.arguments.size(); i++) {
    if ((rule.covers >> i & 1) != 0) {
      c.arguments[i].for_each_tensor([&](const Tensor& t) {
        numbers &= !t.defined() || t.dim() == 0;
        lone_number |= sizes == nullptr && t.defined() && t.dim() == 0;
      });
    }
    if (is_dim(c.function, i)) {
      wanted = &c.arguments[i];
      at = i;
    }
  }
  std::vector<Value> arguments = unwrap_arguments(c, Lone::Whole, Lone::Left, rule.covers);
  grow_sizes(c, arguments);
  count_behind(c, arguments);
  if (of_number) {
    for (size_t i = 0; i < arguments.size(); i++) {
      if (is_size(c.function, i) && arguments[i].is<DimVector>()) {
        arguments[i] = Value(DimVector{c.batch, 1});
      }
    }
  }
  lone_number &= !numbers;
  if (numbers || of_number || lone_number) {
    for (size_t i = 0; i < arguments.size(); i++) {
      if ((rule.covers >> i & 1) != 0) {
        arguments[i].change_tensors(
            [&](const Tensor& t) { return lone_number && t.dim() > 1 ? t : t.unsqueeze(1); });
      }
    }
  }
  const bool everything =
      wanted != nullptr &&
      (wanted->is_none() || (wanted->is<DimVector>() && wanted->get<DimVector>().empty() &&
                             c.function.arguments()[at].type.size == 1));
  bool keepdim = false;
  if (everything) {  // all dimensions, as one
    arguments[0].change_tensors([](const Tensor& t) { return t.dim() > 1 ? t.flatten(1) : t; });
    arguments[at] = c.function.arguments()[at].type.is_list ? Value(DimVector{1}) : Value(1);
    for (size_t i = 0; i < arguments.size(); i++) {
      keepdim |=
          std::string_view(c.function.arguments()[i].name) == "keepdim" && arguments[i].get<bool>();
    }
  }
  const int64_t rank = slice_rank(c);
  std::vector<Value> results = run(c, std::move(arguments));
  for (Value& v : results) {
    v.change_tensors([&](const Tensor& t) {
      DimVector sizes = {c.batch};
      if (of_number) {
        return t.reshape({c.batch});
      }
      if (lone_number) {
        // Where there is a form in place, a result is like self; else like the indices.
        const Value& like = c.arguments[find_op(str(c.name(), "_")) != nullptr ? 0 : at + 1];
        return rank_of(like) == 0 ? t.reshape({c.batch}) : t;
      }
      if (!numbers && everything && keepdim) {
        sizes.resize(static_cast<size_t>(rank) + 1, 1);
      }
      return numbers || (everything && keepdim) ? t.reshape(sizes) : t;
    });
  }
  return results;
}

std::vector<Value> fold(const Call& c, const Rule& rule) {
  std::vector<Value> arguments = unwrap_arguments(c, Lone::Whole, Lone::Left, rule.covers);
  for (size_t i = 0; i < arguments.size(); i++) {
    if ((rule.covers >> i & 1) != 0) {
      arguments[i].change_tensors([](const Tensor& t) { return t.flatten(0, 1); });
    } else if (is_size(c.function, i) && arguments[i].is<DimVector>()) {
      DimVector sizes = arguments[i].get<DimVector>();
      sizes[0] *= c.batch;
      arguments[i] = Value(std::move(sizes));
    }
  }
  std::vector<Value> results = run(c, std::move(arguments));
  RL_CHECK(c.batch > 0, "vmap: ", c.name(), " needs a batch of at least one slice");
  for (Value& v : results) {
    v.change_tensors(
        [&](const Tensor& t) { return t.unflatten(0, {c.batch, t.size(0) / c.batch}); });
  }
  return results;
}

std::vector<Value> formula(const Call& c, const Rule& rule) {
  std::vector<Value> arguments = unwrap_arguments(c, Lone::One, Lone::One, rule.covers);
  const auto counts_dims = [](const ArgInfo& a) { return a.type.meaning == Meaning::Dim; };
  const bool has_dims = std::ranges::any_of(c.function.arguments(), counts_dims);
  // A number counts as one element where a dimension is named.
  const bool number = has_dims && c.arguments[0].is<Tensor>() && rank_of(c.arguments[0]) == 0;
  if (has_dims) {
    for (Value& v : arguments) {
      v.change_tensors([](const Tensor& t) { return t.dim() == 1 ? t.unsqueeze(1) : t; });
    }
  }
  count_behind(c, arguments);
  std::vector<Value> results = rule.formula(arguments, c.batch);
  if (number) {
    for (Value& v : results) {
      v.change_tensors([&](const Tensor& t) { return t.reshape({c.batch}); });
    }
  }
  return results;
}

void warn_once(const Call& c) {
  static std::mutex mutex;
  static auto& known = *new std::set<std::string>;
  {
    const std::lock_guard lock(mutex);
    if (!known.insert(c.name()).second && !fallback().warns_always) {
      return;
    }
  }
  warn(str("There is a performance drop because ", c.function.overloads[0].space, "::", c.name(),
           " has no batching rule: vmap computes it one slice after the other"));
}

std::vector<Value> stack_slices(std::vector<std::vector<Value>>& each) {
  std::vector<Value> results = each[0];
  for (size_t r = 0; r < results.size(); r++) {
    if (results[r].is<Tensor>()) {
      std::vector<Tensor> column;
      for (const std::vector<Value>& one : each) {
        column.push_back(one[r].get<Tensor>());
      }
      results[r] = column[0].defined() ? Value(stack(column)) : Value(Tensor());
    } else if (results[r].is<std::vector<Tensor>>()) {
      std::vector<Tensor> list;
      for (size_t k = 0; k < results[r].get<std::vector<Tensor>>().size(); k++) {
        std::vector<Tensor> column;
        for (const std::vector<Value>& one : each) {
          column.push_back(one[r].get<std::vector<Tensor>>().at(k));
        }
        list.push_back(stack(column));
      }
      results[r] = Value(std::move(list));
    }
  }
  return results;
}

std::vector<Value> slices(const Call& c) {
  RL_CHECK(fallback().enabled, "Batching rule not implemented for ", c.function.overloads[0].space,
           "::", c.name(), "; the fallback path is disabled");
  warn_once(c);
  RL_CHECK(c.batch > 0, "vmap: ", c.name(), " needs a batch of at least one slice");
  std::vector<std::vector<Value>> each;
  for (int64_t i = 0; i < c.batch; i++) {
    std::vector<Value> arguments = c.arguments;
    for (Value& v : arguments) {
      v.change_tensors(
          [&](const Tensor& t) { return level_of(t) == c.level ? value_of(t).select(0, i) : t; });
    }
    each.push_back(c.function.call(arguments));
  }
  return stack_slices(each);
}

const Rule& rule_for(const Call& c) {
  for (const Rule& rule : c.function.batch) {
    if ((c.mask & ~rule.covers) == 0) {
      return rule;
    }
  }
  static constexpr Rule none = {Kind::Slices, 0};
  return none;
}

std::vector<Value> apply_rule(const Call& c, const Rule& rule) {
  switch (rule.kind) {
    case Kind::View:
      return view(c);
    case Kind::Aligned:
      return align_batches(c);
    case Kind::Leading:
    case Kind::Matrices:
    case Kind::Random:
    case Kind::RandomLike:
      return call_with_leading_batch(c, rule);
    case Kind::Dims:
      return dims(c, rule);
    case Kind::Fold:
      return fold(c, rule);
    case Kind::Formula:
      return formula(c, rule);
    case Kind::Slices:
      return slices(c);
    case Kind::Refused:
      break;
  }
  throw Error(str("vmap: ", c.name(), ": ", rule.reason));
}

// A form that writes to its first argument.
std::vector<Value> in_place(const Call& c) {
  RL_CHECK(c.has_batch(0),
           "vmap: inplace arithmetic(self, *extra_args) is not possible because "
           "there exists a Tensor `other` in extra_args that has more elements than `self`: in ",
           c.name(),
           " `self` has no batch dimension and another argument has. It may be `self` "
           "was created or captured from outside of the function that vmap goes through; make it "
           "by an op on an argument of that function, or use the op that is not in place.");
  if (!c.arguments[0].is<Tensor>()) {  // lists, of which each tensor is written
    for (size_t i = 0; i < c.arguments.size(); i++) {
      if (c.has_batch(i) && c.function.arguments()[i].type.written) {
        c.arguments[i].for_each_tensor([&](const Tensor& t) {
          RL_CHECK(level_of(t) == c.level, "vmap: ", c.name(), ": `",
                   c.function.arguments()[i].name,
                   "` has tensors with a batch dimension and others without; in-place ops on lists "
                   "want all of a list to be made of arguments of the function that vmap goes "
                   "through");
        });
      }
    }
    return apply_rule(c, rule_for(c));
  }
  const Tensor self = c.arguments[0].get<Tensor>();
  if (c.function.functional == nullptr) {
    apply_rule(c, rule_for(c));
    const Tensor& value = value_of(self);
    if (!(value.sizes().slice(1, value.dim() - 1) == self.sizes())) {  // `resize_`
      take_value(self, of_level(value, c.level));
    }
  } else if (const Rule& rule = rule_for({*c.function.functional, {}, 0, 0, c.mask});
             rule.kind == Kind::Aligned) {
    align_batches(c);
  } else {
    Call made = {*c.function.functional, c.arguments, c.level, c.batch, c.mask};
    value_of(self).copy_(apply_rule(made, rule)[0].get<Tensor>());
  }
  return {Value(self)};
}

}  // namespace

Fallback& fallback() {
  static Fallback& fallback = *new Fallback;
  return fallback;
}

std::vector<Value> call_by_rules(const OpFunction& function, std::vector<Value> arguments) {
  Call c = {function, std::move(arguments)};
  for (const Value& v : c.arguments) {
    v.for_each_tensor([&](const Tensor& t) { c.level = std::max(c.level, level_of(t)); });
  }
  if (c.level == 0) {
    return function.call(c.arguments);
  }
  RL_CHECK(tls.backward_depth > 0 || depth_of(c.level) > 0,
           "vmap: your tensor may have escaped from inside a function being vmapped: a tensor with "
           "a batch dimension is used in ",
           c.name(), " after vmap has ended");
  for (size_t i = 0; i < c.arguments.size(); i++) {
    c.arguments[i].for_each_tensor([&](const Tensor& t) {
      if (level_of(t) == c.level) {
        c.mask |= uint64_t(1) << i;
        c.batch = value_of(t).size(0);
      }
    });
  }
  if (function.functional != nullptr && !c.writes()) {
    throw Error(str("Batching rule not implemented for aten::", c.name(),
                    ".out; the fallback path doesn't work on out= or view ops."));
  }
  if (c.writes()) {
    return in_place(c);
  }
  std::vector<Value> results = apply_rule(c, rule_for(c));
  for (Value& v : results) {
    // Some kernels give tensors without elements for what was not asked for.
    v.change_tensors([&](const Tensor& t) {
      return t.dim() > 0 && t.size(0) == c.batch ? of_level(t, c.level) : t;
    });
  }
  return results;
}

}  // namespace rushlight::batching
