// An op that a library defines: rows of the registry, made at run time.
#pragma once

#include <deque>

#include <rushlight/graph_function.h>
#include <rushlight/library.h>

namespace rushlight::library {

class Definition final : public OpFunction {
 public:
  // The text is "space::name.overload(Tensor x) -> Tensor"; RuntimeError where it is no schema.
  Definition(std::string text, uint32_t tags, std::string python_module);
  Definition(const Definition&) = delete;
  Definition& operator=(const Definition&) = delete;
  const OpInfo& row() const { return row_; }
  const std::string& python_module() const { return python_module_; }
  std::string full_name() const;

 private:
  TypeInfo type_info(const graph::Argument& argument);
  DefaultInfo default_info(const graph::Argument& argument);

  std::string text_;
  std::string python_module_;
  graph::Schema schema_;
  // What the rows point to stays where it is.
  std::deque<Type> types_;
  std::deque<Value> defaults_;
  std::vector<ArgInfo> arguments_;
  std::vector<ResultInfo> results_;
  batching::Rule rule_;
  OpInfo row_;
};

// Null where the op is the table's.
const Definition* definition_of(const OpInfo& op);

// Through modes, vmap, autocast, autograd, to the function that is registered (dispatch.cpp).
std::vector<Value> run_library_op(const OpFunction& self, const std::vector<Value>& arguments);

}  // namespace rushlight::library
