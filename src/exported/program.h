// What a .pt2 file holds, and programs from any source of bytes.
#pragma once

#include <rushlight/exported.h>
#include <rushlight/graph_function.h>

#include "exported/sizes.h"
#include "exported/tree.h"
#include "serialize/file.h"

namespace rushlight::exported {

// An argument as the signature has it.
struct Input {
  std::string name;
  bool is_constant = false;  // the program was made for this value
  IValue constant;
  Type::Kind kind = Type::Kind::Tensor;
  std::optional<TensorFacts> facts;
  std::string symbol;  // of an int
};

struct Loaded {
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::vector<Input> inputs;
  std::vector<std::pair<std::string, Range>> ranges;
  Tree arguments;  // a tuple of those by position and a dict of those by name
  Tree results;
  std::unique_ptr<graph::Function> function;
};

RL_API Program load_source(std::shared_ptr<serialize::Source> source, std::optional<Device> device,
                           const std::string& model);

}  // namespace rushlight::exported
