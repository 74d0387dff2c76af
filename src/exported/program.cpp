// Running programs of .pt2 files.
#include <rushlight/thread_state.h>

#include "exported/program.h"

namespace rushlight::exported {

namespace {

bool is_same(const IValue& a, const IValue& b) {
  if (a.isString() && b.isString()) {
    return a.toStringRef() == b.toStringRef();
  }
  if (a.isScalar() && b.isScalar()) {
    return a.isBool() == b.isBool() && a.toScalar().to<double>() == b.toScalar().to<double>();
  }
  return a.isNone() && b.isNone();
}

std::string text_of(const IValue& value) {
  return value.isString()   ? str("'", value.toStringRef(), "'")
         : value.isBool()   ? (value.toBool() ? "True" : "False")
         : value.isScalar() ? str(value.toScalar())
                            : value.kind_name();
}

std::string counted(size_t arguments) {
  return str(arguments, arguments == 1 ? " argument" : " arguments");
}

void check(const Input& input, const IValue& value, Symbols& symbols) {
  if (input.is_constant) {
    RL_CHECK(is_same(value, input.constant), "the argument '", input.name, "' is ", text_of(value),
             ", and the program was exported for ", text_of(input.constant), " alone");
  } else if (input.kind == Type::Kind::Tensor) {
    RL_CHECK(value.isTensor() && value.toTensor().defined(), "the argument '", input.name,
             "' is a ", value.kind_name(), ", expected a tensor");
    input.facts->check(value.toTensor(), input.name, symbols);
  } else if (input.kind == Type::Kind::Int) {
    RL_CHECK(value.isInt(), "the argument '", input.name, "' is a ", value.kind_name(),
             ", expected an int");
    if (!input.symbol.empty()) {
      const auto [known, fresh] = symbols.emplace(input.symbol, value.toInt());
      RL_CHECK(fresh || known->second == value.toInt(), "the argument '", input.name, "' is ",
               value.toInt(), ", and ", input.symbol, " is ", known->second, " elsewhere");
    }
  } else {
    RL_CHECK(value.isDouble(), "the argument '", input.name, "' is a ", value.kind_name(),
             ", expected a float");
  }
}

}  // namespace

std::vector<IValue> Program::run_flat(std::vector<IValue> arguments) const {
  const std::vector<Input>& inputs = loaded_->inputs;
  RL_CHECK(arguments.size() == inputs.size(), "the program takes ", counted(inputs.size()),
           ", got ", arguments.size());
  Symbols symbols;
  std::vector<IValue> given;
  for (size_t i = 0; i < inputs.size(); i++) {
    check(inputs[i], arguments[i], symbols);
    if (!inputs[i].is_constant) {
      given.push_back(std::move(arguments[i]));
    }
  }
  for (const auto& [expression, range] : loaded_->ranges) {
    const std::optional<int64_t> value = value_of(expression, symbols);
    RL_CHECK(!value || *value >= range.least.value_or(*value), "the size ", expression, " is ",
             *value, ", and the program was exported for at least ", *range.least);
    RL_CHECK(!value || *value <= range.most.value_or(*value), "the size ", expression, " is ",
             *value, ", and the program was exported for at most ", *range.most);
  }
  const NoGradGuard no_grad;
  return loaded_->function->run(std::move(given));
}

IValue Program::run(std::vector<IValue> arguments, const Kwargs& by_name) const {
  const Tree& positional = loaded_->arguments.of[0];
  const Tree& named = loaded_->arguments.of[1];
  RL_CHECK(arguments.size() == positional.of.size(), "the program takes ",
           counted(positional.of.size()), " by position, got ", arguments.size());
  std::vector<IValue> leaves;
  for (size_t i = 0; i < arguments.size(); i++) {
    positional.of[i].flatten(arguments[i], str("argument ", i), leaves);
  }
  for (size_t i = 0; i < named.of.size(); i++) {
    const std::string& name = named.keys[i].toStringRef();
    const auto found = by_name.find(name);
    RL_CHECK(found != by_name.end(), "the program takes an argument '", name, "' by name");
    named.of[i].flatten(found->second, str("argument '", name, "'"), leaves);
  }
  RL_CHECK(by_name.size() == named.of.size(), "the program takes ", counted(named.of.size()),
           " by name, got ", by_name.size());
  const std::vector<IValue> results = run_flat(std::move(leaves));
  size_t place = 0;
  return loaded_->results.unflatten(results, place);
}

std::vector<std::string> Program::argument_names() const {
  std::vector<std::string> names;
  for (const Input& input : loaded_->inputs) {
    names.push_back(input.name);
  }
  return names;
}

size_t Program::result_count() const { return loaded_->results.leaf_count(); }

const std::vector<std::pair<std::string, Tensor>>& Program::tensors() const {
  return loaded_->tensors;
}

std::string Program::graph_text() const { return loaded_->function->graph().str(); }

}  // namespace rushlight::exported
