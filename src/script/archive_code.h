// The text of an archive as classes and functions, which are read when they are first named.
#pragma once

#include <rushlight/custom_class.h>

#include "script/lower.h"
#include "serialize/checkpoint.h"

namespace rushlight::script {

class ArchiveCode : public Resolver {
 public:
  ArchiveCode(const serialize::CheckpointReader& reader, graph::CompilationUnit& unit);
  // The values that text calls CONSTANTS.c0, ….
  void set_constants(IValue::Items constants) { constants_ = std::move(constants); }
  // "__torch__.models.Net"; RuntimeError where the archive has no such class.
  ClassType& class_named(const std::string& name);
  // Makes the graphs of all functions that have been named so far, and of those that they name.
  void compile();

  std::optional<Meaning> find(std::string_view name) override;
  std::optional<Meaning> member(const Type&, graph::Value*, std::string_view) override {
    return {};
  }
  std::optional<std::vector<std::string>> submodules(const Type&) override { return {}; }
  void spend(size_t n) override;

  // What a name behind a package is: "__torch__.torch.nn.functional", "relu".
  std::optional<Meaning> in_package(const std::string& package, std::string_view name);
  const IValue* constant(std::string_view name) const;  // "c0"; null where there is none

 private:
  // A file, parsed.
  struct File {
    Text text;
    Body body;
    std::unordered_map<std::string, const Stmt*> definitions;
  };
  // What is compiled later.
  struct Task {
    graph::Function* function;
    const Function* source;
    const File* file;
  };
  const File* file_of(const std::string& package);  // null where there is none
  ClassType& add_class(const std::string& name, const Class& source, const File& file);
  void fill(ClassType& type, const Class& source, const File& file);
  void add_field(ClassType& type, const Stmt& s, const File& file);
  void add_names(ClassType& type, const Stmt& s, const File& file);
  void add_method(ClassType& type, const Function& source, const File& file);
  graph::Function& add_function(const std::string& name, const Function& source, const File& file);

  const serialize::CheckpointReader& reader_;
  graph::CompilationUnit& unit_;
  int64_t version_ = 0;
  IValue::Items constants_;
  std::unordered_map<std::string, std::unique_ptr<File>> files_;
  std::vector<Task> tasks_;
  struct Unfilled {
    ClassType* type;
    const Class* source;
    const File* file;
  };
  std::vector<Unfilled> unfilled_;
  bool filling_ = false;
  size_t read_ = 0;   // bytes of text
  size_t spent_ = 0;  // on what has been made of them
  int depth_ = 0;
};

}  // namespace rushlight::script
