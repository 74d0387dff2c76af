// Nodes as expressions of a program's text.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "script/code_writer.h"

namespace rushlight::script {

// Whether a name may stand as it is in a program.
bool is_identifier(std::string_view name);

class ExpressionWriter {
 public:
  explicit ExpressionWriter(Mentions& mentions) : mentions_(mentions) {}

 protected:
  using Value = graph::Value;
  using Node = graph::Node;
  std::string annotation(const Type& type);
  std::string new_number_name();
  std::string new_name(const Value& value);
  const std::string& name_of(Value* value);
  // What is written where a value is used: a literal, its expression, or its name.
  std::string use(Value* value);
  std::string use_of(Value* value);  // before a dot or a bracket
  std::string uses(const std::vector<Value*>& values, size_t first = 0);
  std::string member(Value* object, const std::string& name);
  std::string expression(Node& node);

  Mentions& mentions_;
  std::unordered_map<const Value*, std::string> names_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<const Node*, std::string> inlined_;  // waits for its one use

 private:
  std::string is_instance(Node& node);
  std::string annotate(const Type& type, const std::string& text);
  std::string list(Node& node);
  std::string dict(Node& node);
  std::string tuple(Node& node);
  std::string builtin(Node& node);
  std::string call(const graph::Schema& schema, const Node& node);

  int next_ = 0;
};

}  // namespace rushlight::script
