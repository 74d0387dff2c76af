// Returns, breaks and continues: names that begin with '$' say what has happened, so that branches
// and loops carry them as they carry the program's names. `$result` is what is returned,
// `$returned` whether, `$doneN` whether the rest of the body of N loops is skipped, `$stopN`
// whether its loop ends.
#include "script/lower.h"

namespace rushlight::script {

using NodeKind = graph::Kind;
using TypeKind = Type::Kind;

std::string Lowering::flag_name(const char* what) const { return str("$", what, loops_); }

graph::Value* Lowering::flag(const char* what) {
  const Variable* const found = find_variable(flag_name(what));
  return found != nullptr ? found->meaning.value : constant(false, Type{TypeKind::Bool});
}

void Lowering::set_flag(const char* what) {
  scope_->own[flag_name(what)] = {Meaning::of_value(constant(true, Type{TypeKind::Bool})), {}};
}

graph::Value* Lowering::uninitialized(const Type& type) {
  return graph_->append(NodeKind::Uninitialized)->output()->set_type(type);
}

Exit Lowering::return_statement(const Stmt& s) {
  graph::Value* result = s.value ? value(*s.value, returns_ ? &*returns_ : nullptr) : none();
  if (returns_) {
    graph::Value* const fitting = convert_value(*graph_, result, *returns_);
    if (fitting == nullptr) {
      fail(s.span, str("Return value was annotated as having type ", returns_->annotation(),
                       ", but it is of type ", result->type.annotation()));
    }
    result = fitting;
  } else {
    const std::optional<Type> both = returned_ ? unify(*returned_, result->type) : result->type;
    if (!both) {
      fail(s.span, str("Previous return statement returned ", returned_->annotation(),
                       ", but this one returns ", result->type.annotation(),
                       ". Annotate the function with a Union"));
    }
    returned_ = both;
  }
  scope_->own["$result"] = {Meaning::of_value(result), {}};
  set_flag("done");
  if (loops_ > 0) {
    set_flag("stop");
    scope_->own["$returned"] = {Meaning::of_value(constant(true, Type{TypeKind::Bool})), {}};
  }
  return Exit::Always;
}

Exit Lowering::leave_loop(const Stmt& s) {
  if (loops_ == 0) {
    fail(s.span, "break and continue must be inside of a loop");
  }
  set_flag("done");
  if (s.kind == Stmt::Kind::Break) {
    set_flag("stop");
  }
  return Exit::Always;
}

// The end of a function: its graph returns what was returned, or None.
void Lowering::finish(Exit exit, const Function& function, std::optional<Type>& returns) {
  const Variable* const found = find_variable("$result");
  graph::Value* result = found != nullptr ? found->meaning.value : nullptr;
  if (exit == Exit::Raises && result == nullptr) {
    result = uninitialized(returns_.value_or(Type{TypeKind::None}));
  } else if (exit != Exit::Always && exit != Exit::Raises) {
    if (returns_ && !returns_->may_be_none()) {
      throw Error(str("Function was not annotated as having type None, but '", function.name,
                      "' may end without a return"));
    }
    if (exit == Exit::Sometimes) {
      Condition left;
      left.value = flag("done");
      result = select_value(left, [&] { return result; }, [&] { return none(); }, {}, "the result");
    } else {
      result = none();
    }
  }
  if (returns_ && !(result->type == *returns_)) {
    returns = *returns_;
  } else {
    returns = result->type;
  }
  graph_->add_output(result);
}

}  // namespace rushlight::script
