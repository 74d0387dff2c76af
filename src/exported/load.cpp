// Reading .pt2 files.
#include <unordered_map>

#include "core/allowance.h"
#include "exported/graph_reader.h"
#include "exported/program.h"
#include "serialize/checkpoint.h"

namespace rushlight::exported {

using serialize::Json;

namespace {

class Loader {
 public:
  Loader(serialize::CheckpointReader& archive, std::string model, std::optional<Device> device)
      : archive_(archive), model_(std::move(model)), device_(device) {}

  std::shared_ptr<const Loaded> run() {
    check_format();
    read_tensors("weights");
    read_tensors("constants");
    const std::string text = archive_.record("models/" + model_ + ".json");
    const Json record(text, damaged);
    const int64_t version = record.at("schema_version").at("major").integer();
    RL_CHECK(version == schema_version, "this .pt2 file is of schema ", version,
             "; this version reads schema ", schema_version);
    if (const std::optional<Json> ranges = record.find("range_constraints")) {
      ranges->members([&](const std::string& name, const Json& range) {
        out_->ranges.emplace_back(name, range_of(range));
      });
    }
    const Json module = record.at("graph_module");
    read_structure(module.at("module_call_graph"));
    read_graph(module);
    return out_;
  }

 private:
  static constexpr size_t nodes_anyway = 1000;
  static constexpr uint64_t bytes_anyway = uint64_t{1} << 26;

  void check_format() const {
    const std::string format = archive_.has_record("archive_format")
                                   ? archive_.record("archive_format")
                                   : std::string("none");
    RL_CHECK(format == "pt2", "this is no .pt2 file: its archive_format is ", format,
             ". torch::load and torch::jit::load read others");
    const std::string version = archive_.record("archive_version");
    RL_CHECK(version == "0", "Saved archive version ", version,
             " does not match: this version reads 0");
    RL_CHECK(archive_.has_record("models/" + model_ + ".json"), "this .pt2 file has no model '",
             model_, "'. Files of native code (AOTInductor) cannot be run");
  }

  // ---- tensors ----

  void read_tensors(const std::string& folder) {
    const std::string record = str("data/", folder, "/", model_, "_", folder, "_config.json");
    if (!archive_.has_record(record)) {
      return;
    }
    const std::string text = archive_.record(record);
    Json(text, damaged).at("config").members([&](const std::string& name, const Json& entry) {
      const std::optional<Json> pickled = entry.find("use_pickle");
      if (pickled && pickled->boolean()) {
        throw NotImplementedError(name + " is a pickle in this .pt2 file, which is not read");
      }
      const std::string path = entry.at("path_name").string();
      Tensor tensor = tensor_of(entry.at("tensor_meta"), folder, path);
      by_name_[name] = tensor;
      out_->tensors.emplace_back(name, std::move(tensor));
    });
  }

  Tensor tensor_of(const Json& meta, const std::string& folder, const std::string& path) {
    const std::string key = str(folder, "/", path, "/", meta.text());
    if (const auto found = same_.find(key); found != same_.end()) {
      return found->second;  // two names of one tensor
    }
    if (const std::optional<Json> layout = meta.find("layout")) {
      RL_CHECK_NOT_IMPLEMENTED(layout_numbered(layout->integer()) == kStrided,
                               "this .pt2 file has a sparse tensor, which is not read");
    }
    const auto sizes = known_sizes(meta.at("sizes"));
    const auto strides = known_sizes(meta.at("strides"));
    const std::optional<Json> offset = meta.find("storage_offset");
    const ScalarType dtype = dtype_numbered(meta.at("dtype").integer());
    const uint64_t bytes = archive_.record_size(str("data/", folder, "/", path));
    const Storage storage = archive_.storage(
        path, dtype, static_cast<int64_t>(bytes) / itemsize(dtype), "data/" + folder);
    Tensor made = serialize::tensor_on(storage, dtype, offset ? known_size(*offset).value_or(0) : 0,
                                       sizes, strides);
    const Device device = device_.value_or(device_of(meta.at("device")));
    if (device != made.device()) {
      made = made.to(device);
    }
    return same_[key] = made;
  }

  static DimVector known_sizes(const Json& list) {
    DimVector sizes;
    list.items([&](const Json& size) {
      const std::optional<int64_t> known = known_size(size);
      RL_CHECK(known.has_value(), damaged, ": a tensor of the file has an unknown size");
      sizes.push_back(*known);
    });
    return sizes;
  }

  // ---- signature ----

  static Range range_of(const Json& record) {
    const auto end = [&](const char* name) {
      const std::optional<Json> value = record.find(name);
      return value ? std::optional(value->integer()) : std::nullopt;
    };
    return {end("min_val"), end("max_val")};
  }

  // The first entry is the whole program's.
  void read_structure(const Json& calls) {
    std::optional<Json> signature;
    calls.items([&](const Json& call) {
      if (!signature) {
        signature = call.find("signature");
      }
    });
    RL_CHECK(signature.has_value(), damaged, ": it does not say how the program is called");
    out_->arguments = Tree::read(signature->at("in_spec").string());
    out_->results = Tree::read(signature->at("out_spec").string());
    const std::vector<Tree>& parts = out_->arguments.of;
    RL_CHECK(parts.size() == 2 && parts[0].kind == Tree::Kind::Tuple &&
                 parts[1].kind == Tree::Kind::Dict,
             damaged, ": arguments are a tuple and a dict");
  }

  const Tensor& tensor_named(const std::string& name) const {
    const auto found = by_name_.find(name);
    RL_CHECK(found != by_name_.end(), damaged, ": it has no tensor '", name, "'");
    return found->second;
  }

  // ---- graph ----

  void read_graph(const Json& module) {
    auto made = std::make_unique<graph::Graph>();
    // A node takes more than forty bytes; conditions of loops are read twice.
    size_t left = nodes_anyway + module.text().size() / 16;
    GraphReader reader(*made, device_, left);
    const Json record = module.at("graph");
    const Json signature = module.at("signature");
    graph::Schema schema;
    schema.name = "forward";
    std::unordered_map<std::string, Json> facts;
    record.at("tensor_values").members([&](const std::string& name, const Json& value) {
      facts.emplace(name, value);
    });
    signature.at("input_specs").items([&](const Json& spec) {
      const auto [kind, value] = spec.only();
      if (kind == "parameter" || kind == "buffer" || kind == "tensor_constant") {
        const std::string name = value.at("arg").at("name").string();
        const Tensor& tensor = tensor_named(value.at(kind + "_name").string());
        reader.define(name, made->constant(tensor)->set_name(name));
        return;
      }
      Input input = input_of(kind, value, facts, record);
      if (!input.is_constant) {
        const Type type{input.kind};
        reader.define(input.name, made->add_input(type, input.name));
        schema.arguments.push_back({input.name, type});
      }
      out_->inputs.push_back(std::move(input));
    });
    RL_CHECK(out_->inputs.size() == out_->arguments.leaf_count(), damaged, ": it has ",
             out_->inputs.size(), " inputs for ", out_->arguments.leaf_count(), " arguments");
    const std::vector<graph::Value*> outputs = reader.read(record);
    add_outputs(*made, reader, signature.at("output_specs"), outputs);
    RL_CHECK(made->outputs().size() == out_->results.leaf_count(), damaged, ": it has ",
             made->outputs().size(), " outputs for ", out_->results.leaf_count(), " results");
    made->verify();
    out_->function =
        std::make_unique<graph::Function>("forward", std::move(schema), std::move(made));
    // What cannot run is refused now; what is known beforehand is computed, if that takes little.
    uint64_t bytes = bytes_anyway;
    for (const auto& [name, tensor] : out_->tensors) {
      bytes += 2 * tensor.storage()->nbytes();
    }
    const Allowance limited(bytes, 1000);
    out_->function->program();
  }

  static Input input_of(const std::string& kind, const Json& value,
                        const std::unordered_map<std::string, Json>& facts, const Json& graph) {
    Input input;
    if (kind == "constant_input") {
      input.name = value.at("name").string();
      input.is_constant = true;
      input.constant = constant_of(value.at("value"));
      return input;
    }
    const auto [form, named] =
        kind == "user_input" ? value.at("arg").only() : std::pair(kind, value);
    if (form == "as_tensor") {
      input.name = named.at("name").string();
      const auto found = facts.find(input.name);
      RL_CHECK(found != facts.end(), damaged, ": it does not say what '", input.name, "' is");
      input.facts.emplace(found->second);
    } else if (form == "as_sym_int") {
      input.name = named.at("as_name").string();
      input.kind = Type::Kind::Int;
      const std::optional<Json> known = graph.at("sym_int_values").find(input.name);
      if (known && known->find("as_expr")) {
        input.symbol = symbol_in(known->at("as_expr").at("expr_str").string());
      }
    } else if (form == "as_sym_float") {
      input.name = named.at("as_name").string();
      input.kind = Type::Kind::Float;
    } else {
      throw NotImplementedError("the program takes an argument of kind " + form +
                                ", which is not read");
    }
    return input;
  }

  static IValue constant_of(const Json& record) {
    const auto [kind, value] = record.only();
    if (kind == "as_int") {
      return value.integer();
    }
    if (kind == "as_float") {
      return number_of(value);
    }
    if (kind == "as_bool") {
      return value.boolean();
    }
    return kind == "as_string" ? IValue(value.string()) : IValue();
  }

  // What the program writes is written behind all else.
  void add_outputs(graph::Graph& made, const GraphReader& reader, const Json& specs,
                   const std::vector<graph::Value*>& outputs) {
    size_t place = 0;
    specs.items([&](const Json& spec) {
      const auto [kind, value] = spec.only();
      RL_CHECK(place < outputs.size(), damaged, ": its graph has too few outputs");
      graph::Value* const output = outputs[place++];
      if (kind == "user_output") {
        made.add_output(output);
      } else if (kind == "buffer_mutation" || kind == "parameter_mutation") {
        const char* const field = kind == "buffer_mutation" ? "buffer_name" : "parameter_name";
        made.append("aten::copy_", {made.constant(tensor_named(value.at(field).string())), output,
                                    made.constant(false)});
      } else if (kind == "user_input_mutation") {
        made.append("aten::copy_", {reader.value_named(value.at("user_input_name").string()),
                                    output, made.constant(false)});
      } else {
        throw NotImplementedError("the program has an output of kind " + kind +
                                  ", which is not read");
      }
    });
    RL_CHECK(place == outputs.size(), damaged, ": its graph has too many outputs");
  }

  serialize::CheckpointReader& archive_;
  std::string model_;
  std::optional<Device> device_;
  std::shared_ptr<Loaded> out_ = std::make_shared<Loaded>();
  std::unordered_map<std::string, Tensor> by_name_;
  std::unordered_map<std::string, Tensor> same_;
};

}  // namespace

Program load_source(std::shared_ptr<serialize::Source> source, std::optional<Device> device,
                    const std::string& model) {
  serialize::CheckpointReader archive(std::move(source), false);
  return Program(Loader(archive, model, device).run());
}

Program load(const std::string& path, std::optional<Device> device, const std::string& model) {
  return load_source(serialize::open_source(path, false), device, model);
}

Program load(std::istream& stream, std::optional<Device> device, const std::string& model) {
  return load_source(serialize::stream_source(stream), device, model);
}

}  // namespace rushlight::exported
