// Ops outside of aten: those of C++ libraries, of programs, and torchvision's, which are ops here.
#include <rushlight/library.h>

#include "script/lower.h"

namespace rushlight::script {

using NodeKind = graph::Kind;
using TypeKind = Type::Kind;

namespace {

// "int a_h, int a_w, " for each of the names: torchvision's lengths over height and width.
std::string lengths_of_pairs(std::initializer_list<const char*> names) {
  std::string text;
  for (const char* const name : names) {
    text += str("int ", name, "_h, int ", name, "_w, ");
  }
  return text;
}

// Ops of torchvision by the schemas under which archives call them.
const std::vector<graph::Schema>& vision_schemas() {
  static const std::vector<graph::Schema> schemas = [] {
    const std::string pool =
        "(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width";
    const std::string pairs = lengths_of_pairs({"stride", "pad", "dilation"});
    return std::vector<graph::Schema>{
        graph::parse_schema(
            "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"),
        graph::parse_schema(
            str("torchvision::roi_align", pool, ", int sampling_ratio, bool aligned) -> Tensor")),
        graph::parse_schema(str("torchvision::roi_pool", pool, ") -> (Tensor, Tensor)")),
        graph::parse_schema(str("torchvision::deform_conv2d(Tensor input, Tensor weight, ",
                                "Tensor offset, Tensor mask, Tensor bias, ", pairs,
                                "int groups, int offset_groups, bool use_mask) -> Tensor"))};
  }();
  return schemas;
}

const OpInfo& rushlight_op(std::string_view name) {
  for (const OpInfo* const op : find_overloads(name)) {
    if (std::string_view(op->space) == "rushlight") {
      return *op;
    }
  }
  throw Error(str("the op ", name, " is missing"));
}

std::optional<graph::Schema> library_schema(const std::string& name) {
  for (const OpInfo* const op : overloads_named(name)) {
    if (library::is_defined_by_library(*op)) {
      return graph::schema_of(*op);
    }
  }
  return {};
}

}  // namespace

// Null where torchvision has no such op, or where it is none of those that are known here.
graph::Node* Lowering::vision_call(const std::string& name, const Arguments& arguments, Span span) {
  for (const graph::Schema& schema : vision_schemas()) {
    if (schema.qualified_name() != name) {
      continue;
    }
    std::string why;
    TypeVariables variables;
    std::optional<std::vector<Value*>> inputs =
        match_arguments(*graph_, schema, arguments, true, variables, &why);
    if (!inputs) {
      fail(span, str(schema.str(), ": ", why));
    }
    const std::vector<Value*>& in = *inputs;
    if (schema.name == "nms") {
      return graph_->insert(graph_->create(rushlight_op("nms"), in));
    }
    if (schema.name == "roi_align") {
      inputs->push_back(constant("align", Type{TypeKind::String}));
      return graph_->insert(graph_->create(rushlight_op("_roi_average"), in));
    }
    if (schema.name == "roi_pool") {
      return graph_->insert(graph_->create(rushlight_op("_roi_max"), in));
    }
    const auto pair = [&](size_t first) {
      return list_of({in[first], in[first + 1]}, nullptr, span);
    };
    Condition masked;
    masked.value = in[13];
    Value* const mask =
        select_value(masked, [&] { return in[3]; }, [&] { return none(); }, span, "the mask");
    Node* const node =
        graph_->create(rushlight_op("deform_conv2d"),
                       {in[0], in[2], in[1], in[4], pair(5), pair(7), pair(9), mask});
    return graph_->insert(node);
  }
  return nullptr;
}

// An op that is no function of the language. Where nobody has defined it, the program raises there:
// it may hold what never comes to that place. Its results count as one tensor, or as many as they
// are unpacked into.
Meaning Lowering::library_call(const std::string& name, const Arguments& arguments, Span span) {
  if (Node* const node = vision_call(name, arguments, span)) {
    return Meaning::of_value(result_of(*graph_, node));
  }
  const std::optional<graph::Schema> schema = library_schema(name);
  if (!schema) {
    Value* const message = constant(
        str("Unknown builtin op: ", name, ": no op and no function of the language has this name"),
        Type{TypeKind::String});
    graph_->append(NodeKind::RaiseException, {message, none()}, 0);
    Value* const out = uninitialized(Type{TypeKind::Tensor});
    unknown_.insert(out->node());
    return Meaning::of_value(out);
  }
  std::string why;
  TypeVariables variables;
  const auto inputs = match_arguments(*graph_, *schema, arguments, true, variables, &why);
  if (!inputs) {
    fail(span, str(schema->str(), ": ", why));
  }
  Node* const node = graph_->create(NodeKind::Library, *inputs, schema->results.size());
  node->library_name = schema->overload.empty() ? name : str(name, ".", schema->overload);
  for (size_t i = 0; i < schema->results.size(); i++) {
    node->output(i)->set_type(schema->results[i].type);
  }
  graph_->insert(node);
  return Meaning::of_value(result_of(*graph_, node));
}

}  // namespace rushlight::script
