// The C++ side of .pt files: dicts of tensors to a file and back.
#include <iterator>
#include <istream>
#include <ostream>
#include <unordered_map>

#include <rushlight/archive.h>

#include "serialize/pickled_tensors.h"

namespace rushlight {
namespace {

using namespace serialize;
using Kind = PickleNode::Kind;

std::string archive_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const size_t dot = name.rfind('.');
  const std::string stem = dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
  return stem.empty() ? "archive" : stem;
}

// ---- to a file ----

// What keeps the memory that is written.
class BytesSink : public Sink {
 public:
  explicit BytesSink(std::vector<char>& bytes) : bytes_(bytes) {}
  void write(const void* data, size_t n) override {
    const auto* const first = static_cast<const char*>(data);
    bytes_.insert(bytes_.end(), first, first + n);
  }

 private:
  std::vector<char>& bytes_;
};

// Containers in containers: deeper ones are refused, so that a cycle is no endless loop.
constexpr int max_depth = 100;

class Saver {
 public:
  void tensor(const Tensor& t) { tensors_.write(t); }
  void state(const StateDict& state) {
    p_.global("collections", "OrderedDict");
    p_.empty_tuple();
    p_.reduce();
    p_.mark();
    for (const auto& [name, t] : state) {
      p_.string(name);
      tensor(t);
    }
    p_.set_items();
  }
  void list(const std::vector<Tensor>& tensors) {
    p_.empty_list();
    p_.mark();
    for (const Tensor& t : tensors) {
      tensor(t);
    }
    p_.append_items();
  }
  void value(const IValue& v, int depth = 0) {
    RL_CHECK(depth <= max_depth, "containers are nested too deep to be saved");
    const auto put_all = [&](const IValue::Items& items) {
      for (const IValue& item : items) {
        value(item, depth + 1);
      }
    };
    if (v.isNone()) {
      p_.none();
    } else if (v.isTensor()) {
      tensor(v.toTensor());
    } else if (v.isBool()) {
      p_.boolean(v.toBool());
    } else if (v.isInt()) {
      p_.integer(v.toInt());
    } else if (v.isDouble()) {
      p_.real(v.toDouble());
    } else if (v.isString()) {
      p_.string(v.toStringRef());
    } else if (v.isTuple()) {
      p_.mark();
      put_all(v.items());
      p_.tuple();
    } else if (v.isList()) {
      p_.empty_list();
      p_.mark();
      put_all(v.toListRef());
      p_.append_items();
    } else if (v.isGenericDict()) {
      p_.empty_dict();
      p_.mark();
      for (const auto& [key, item] : v.dict_items()->pairs) {
        value(key, depth + 1);
        value(item, depth + 1);
      }
      p_.set_items();
    } else {
      throw TypeError("only None, numbers, strings, tensors and containers of them can be pickled");
    }
  }
  void write(std::vector<char>& bytes) {
    BytesSink sink(bytes);
    write(sink, "archive");
  }
  void write(const std::string& path) {
    AtomicFile file(path);
    write(file, archive_name(path));
    file.commit();
  }
  void write(std::ostream& stream) {
    StreamSink sink(stream);
    write(sink, "archive");
    RL_CHECK(stream.good(), "the stream that is saved to failed");
  }

 private:
  void write(Sink& sink, const std::string& name) {
    CheckpointWriter writer(sink, name);
    writer.add_objects(p_.finish());
    const std::vector<Storage>& storages = tensors_.storages();
    for (size_t i = 0; i < storages.size(); i++) {
      writer.add_storage(std::to_string(i), storages[i]);
    }
    writer.finish();
  }
  PickleWriter p_;
  TensorPickler tensors_{p_};
};

// ---- from a file ----

class Loader {
 public:
  explicit Loader(std::shared_ptr<Source> source)
      : reader_(std::move(source), false),
        bytes_(reader_.record("data.pkl")),
        pickle_(read_pickle(bytes_)) {}

  StateDict run() {
    visit(pickle_.root, "", 0);
    return std::move(state_);
  }
  IValue run_value() { return value(pickle_.root, 0); }

 private:
  static constexpr int64_t max_visits = 10'000'000;

  const PickleNode& node(uint32_t id) const { return tensors_.node(id); }
  const PickleNode& item(const PickleNode& of, uint32_t i) const { return tensors_.item(of, i); }
  std::string_view function_name(const PickleNode& call) const {
    return tensors_.function_name(call);
  }
  Tensor tensor(const PickleNode& call) { return tensors_.tensor(call); }

  void visit(uint32_t id, const std::string& name, int depth) {
    // What is shared is visited each time, so that a small file could stand for a very large tree.
    visits_++;
    if (depth > max_depth || visits_ > max_visits) {
      throw UnpicklingError("containers in this file are nested too deep or too often");
    }
    const PickleNode& n = node(id);
    if (n.kind == Kind::Call) {
      const std::string_view function = function_name(n);
      if (function != "collections\nOrderedDict") {
        if (function.starts_with("torch._utils\n_rebuild_")) {
          state_.emplace_back(name, tensor(n));
        }
        return;
      }
    }
    if (n.kind == Kind::Tuple) {
      visit_list(n.value.items.first, n.value.items.count, 0, name, depth);
    }
    int64_t index = 0;
    pickle_.each_step(n, [&](const PickleStep& step) {
      if (step.kind == PickleStep::Kind::Append) {
        visit_list(step.first, step.count, index, name, depth);
        index += step.count;
      } else if (step.kind == PickleStep::Kind::SetItems) {
        visit_dict(step, name, depth);
      }
    });
  }

  // What a node stands for. Containers that are mentioned again are the same ones.
  IValue value(uint32_t id, int depth) {
    if (depth > max_depth) {
      throw UnpicklingError("containers in this file are nested too deep or hold themselves");
    }
    const PickleNode& n = node(id);
    switch (n.kind) {
      case Kind::None:
        return {};
      case Kind::Bool:
        return n.value.i != 0;
      case Kind::Int:
        return n.value.i;
      case Kind::Float:
        return n.value.d;
      case Kind::String:
      case Kind::OldString:
        return std::string(n.bytes());
      default:
        break;
    }
    const auto known = values_.find(id);
    if (known != values_.end()) {
      return known->second;
    }
    return values_.emplace(id, container(n, depth)).first->second;
  }

  IValue container(const PickleNode& n, int depth) {
    if (n.kind == Kind::Tuple) {
      IValue::Items items;
      for (uint32_t i = 0; i < n.value.items.count; i++) {
        items.push_back(value(pickle_.items[n.value.items.first + i], depth + 1));
      }
      return IValue::tuple(std::move(items));
    }
    bool is_dict = n.kind == Kind::Dict;
    if (n.kind == Kind::Call) {
      const std::string_view function = function_name(n);
      if (function.starts_with("torch._utils\n_rebuild_")) {
        return tensor(n);
      }
      if (function.starts_with("torch.jit._pickle\n")) {  // a list or dict with its type
        const PickleNode& arguments = item(n, 1);
        item(arguments, 0);
        return value(pickle_.items[arguments.value.items.first], depth + 1);
      }
      is_dict = function == "collections\nOrderedDict";
    }
    if (!is_dict && n.kind != Kind::List) {
      throw UnpicklingError("this file holds what is no number, string, tensor or container");
    }
    auto dict = make_intrusive<ivalue::DictItems>();
    IValue::Items list;
    pickle_.each_step(n, [&](const PickleStep& step) {
      const auto part = [&](uint32_t k) {
        return value(pickle_.items[step.first + k], depth + 1);
      };
      if (is_dict && step.kind == PickleStep::Kind::SetItems) {
        for (uint32_t k = 0; k + 1 < step.count; k += 2) {
          IValue key = part(k);
          dict->insert(std::move(key), part(k + 1), true);
        }
      } else if (!is_dict && step.kind == PickleStep::Kind::Append) {
        for (uint32_t k = 0; k < step.count; k++) {
          list.push_back(part(k));
        }
      }
    });
    return is_dict ? IValue::dict(std::move(dict)) : IValue::list(std::move(list));
  }

  static std::string join_name(const std::string& prefix, std::string_view name) {
    return prefix.empty() ? std::string(name) : str(prefix, '.', name);
  }

  void visit_list(uint32_t first, uint32_t count, int64_t index, const std::string& name,
                  int depth) {
    for (uint32_t k = 0; k < count; k++) {
      visit(pickle_.items[first + k], join_name(name, std::to_string(index + k)), depth + 1);
    }
  }

  void visit_dict(const PickleStep& step, const std::string& name, int depth) {
    for (uint32_t k = 0; k < step.count; k += 2) {
      const PickleNode& key = node(pickle_.items[step.first + k]);
      if (key.kind == Kind::String || key.kind == Kind::Int) {
        const std::string text =
            key.kind == Kind::Int ? std::to_string(key.value.i) : std::string(key.bytes());
        visit(pickle_.items[step.first + k + 1], join_name(name, text), depth + 1);
      }
    }
  }

  CheckpointReader reader_;
  std::string bytes_;
  Pickle pickle_;
  PickledTensors tensors_{reader_, pickle_, "data"};
  StateDict state_;
  std::unordered_map<uint32_t, IValue> values_;
  int64_t visits_ = 0;
};

}  // namespace

void save(const StateDict& state, const std::string& path) {
  Saver saver;
  saver.state(state);
  saver.write(path);
}

void save(const Tensor& tensor, const std::string& path) {
  Saver saver;
  saver.tensor(tensor);
  saver.write(path);
}

void save(const std::vector<Tensor>& tensors, const std::string& path) {
  Saver saver;
  saver.list(tensors);
  saver.write(path);
}

void save(const StateDict& state, std::ostream& stream) {
  Saver saver;
  saver.state(state);
  saver.write(stream);
}

void save(const Tensor& tensor, std::ostream& stream) {
  Saver saver;
  saver.tensor(tensor);
  saver.write(stream);
}

void save(const std::vector<Tensor>& tensors, std::ostream& stream) {
  Saver saver;
  saver.list(tensors);
  saver.write(stream);
}

namespace {
Tensor single_tensor(StateDict state, const std::string& where) {
  RL_CHECK(state.size() == 1, where, " holds ", state.size(), " tensors, not one");
  return std::move(state[0].second);
}
}  // namespace

StateDict load_state_dict(const std::string& path) {
  return Loader(open_source(path, false)).run();
}

StateDict load_state_dict(std::istream& stream) { return Loader(stream_source(stream)).run(); }

StateDict load_state_dict(const char* data, size_t n) {
  const auto owner = std::make_shared<std::string>(data, n);
  return Loader(memory_source(owner->data(), n, owner)).run();
}

std::vector<char> pickle_save(const IValue& value) {
  Saver saver;
  saver.value(value);
  std::vector<char> out;
  saver.write(out);
  return out;
}

IValue pickle_load(const std::vector<char>& data) {
  auto owner = std::make_shared<std::vector<char>>(data);
  return Loader(memory_source(owner->data(), owner->size(), owner)).run_value();
}

Tensor load_tensor(const std::string& path) {
  return single_tensor(load_state_dict(path), "the file " + path);
}

void load(Tensor& tensor, std::istream& stream) {
  tensor = single_tensor(load_state_dict(stream), "this stream");
}

void load(std::vector<Tensor>& tensors, std::istream& stream) {
  tensors.clear();
  for (auto& [name, tensor] : load_state_dict(stream)) {
    tensors.push_back(std::move(tensor));
  }
}

void load(Tensor& tensor, const std::string& path) { tensor = load_tensor(path); }

void load(std::vector<Tensor>& tensors, const std::string& path) {
  tensors.clear();
  for (auto& [name, tensor] : load_state_dict(path)) {
    tensors.push_back(std::move(tensor));
  }
}

}  // namespace rushlight
