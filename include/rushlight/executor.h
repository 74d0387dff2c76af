// Runs graphs: a graph is turned once into an array of instructions over registers, which any
// number of threads may run at the same time.
#pragma once

#include <rushlight/graph_function.h>

namespace rushlight::graph {

struct Code;
class Machine;

// What prim::RaiseException throws; torch.jit.Error in Python.
class RL_API Raised : public Error {
 public:
  Raised(std::string what, std::string class_name, std::string text)
      : Error(std::move(what)), class_name_(std::move(class_name)), text_(std::move(text)) {}
  ~Raised() override;
  const std::string& class_name() const { return class_name_; }  // "builtins.ValueError"; may be ""
  const std::string& text() const { return text_; }              // what the program raised it with

 private:
  std::string class_name_;
  std::string text_;
};

class RL_API Program {
 public:
  // Keeps nothing of the graph but the classes and functions that it names. RuntimeError where it
  // has a node that cannot run.
  Program(const Graph& graph, std::string name);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  // One argument for each input. A value is freed behind its last use; lists and dicts are shared
  // with the caller. What fails says where, in the words of the program: RuntimeError, Raised,
  // or NotImplementedError where an op said that.
  std::vector<IValue> run(std::vector<IValue> arguments) const;
  // What fails is thrown as the op threw it.
  std::vector<IValue> run_plainly(std::vector<IValue> arguments) const;

  size_t size() const;  // the number of its instructions

 private:
  friend class Machine;
  // As a part of another run, whose error says where all of them were.
  std::vector<IValue> run_nested(std::vector<IValue> arguments) const;
  std::unique_ptr<const Code> code_;
};

}  // namespace rushlight::graph
