#include "script/bound_classes.h"

#include <rushlight/custom_class.h>

namespace rushlight::script {

namespace {

class BoundMethod final : public graph::Function::Native {
 public:
  explicit BoundMethod(std::shared_ptr<const library::Method> method)
      : method_(std::move(method)) {}
  std::vector<IValue> operator()(std::vector<IValue> arguments) override {
    Stack stack = std::move(arguments);
    (*method_->kernel.function)(nullptr, stack);
    if (stack.size() == 1) {
      return {std::move(stack[0])};
    }
    return {stack.empty() ? IValue() : IValue::tuple(std::move(stack))};
  }

 private:
  std::shared_ptr<const library::Method> method_;
};

Type result_of(const std::vector<Type>& results) {
  return results.empty()       ? Type{Type::Kind::None}
         : results.size() == 1 ? results[0]
                               : Type::tuple(results);
}

}  // namespace

graph::Function* bound_method(graph::CompilationUnit& unit, const std::string& of,
                              const std::string& name) {
  const std::string full = of + "." + name;
  if (graph::Function* const known = unit.find_function(full)) {
    return known;
  }
  const library::ClassRecord* const record = library::find_class(of);
  if (record == nullptr) {
    return nullptr;
  }
  for (const std::shared_ptr<const library::Method>& method : record->methods) {
    if (method->name != name || method->is_static) {
      continue;
    }
    graph::Schema schema;
    schema.name = name;
    for (size_t i = 0; i < method->kernel.arguments.size(); i++) {
      graph::Argument& made =
          schema.arguments.emplace_back(graph::Argument{str("_", i), method->kernel.arguments[i]});
      if (i > 0 && i <= method->arguments.size()) {  // the object has no name
        made.name = method->arguments[i - 1].name_;
        made.fallback = method->arguments[i - 1].fallback_;
      }
    }
    schema.results.push_back({"", result_of(method->kernel.results)});
    graph::Function& made = unit.add_function(full, std::move(schema));
    made.set_native(std::make_unique<BoundMethod>(method));
    return &made;
  }
  return nullptr;
}

}  // namespace rushlight::script
