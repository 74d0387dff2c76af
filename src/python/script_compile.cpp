// Text to functions of a unit. What free names mean is asked of Python
// (python/rushlight/jit/_meanings.py), which answers in words: ("op", "aten::relu").
#include "python/bindings.h"
#include "python/script_unit.h"
#include "script/lower.h"
#include "script/prelude.h"

namespace rushlight::python {

namespace {

using graph::CompilationUnit;
using script::Meaning;

// ---- names that Python answers for ----

std::optional<Meaning> meaning_of(const CompilationUnit& unit, PyObject* answer,
                                  graph::Value* object);

Object asked(PyObject* object, const char* method, std::string_view a) {
  return Object::check(PyObject_CallMethod(object, method, "s", std::string(a).c_str()));
}

// What has names in Python: a module, a class.
class PythonSpace : public script::Space {
 public:
  PythonSpace(const CompilationUnit& unit, PyObject* space)
      : unit_(unit), space_(Object::borrow(space)) {}
  std::optional<Meaning> find(std::string_view name) override {
    return meaning_of(unit_, asked(space_.get(), "find", name).get(), nullptr);
  }
  std::string describe() const override {
    const Object text = Object::check(PyObject_Str(space_.get()));
    return string_of(text.get());
  }

 private:
  const CompilationUnit& unit_;
  Object space_;
};

// A value with the text of its type, or with None: by what it is.
Meaning constant_of(const CompilationUnit& unit, PyObject* about) {
  PyObject* const given = PyTuple_GetItem(about, 0);
  PyObject* const text = PyTuple_GetItem(about, 1);
  const Type wanted = text == Py_None ? Type() : parse_type(text_view(text), &unit);
  const IValue value = to_script(given, wanted, "a constant");
  return Meaning::of_constant(value, text == Py_None ? rushlight::type_of(value) : wanted);
}

// The answers: None, or a tuple of a word and what it is about.
std::optional<Meaning> meaning_of(const CompilationUnit& unit, PyObject* answer,
                                  graph::Value* object) {
  if (answer == Py_None) {
    return {};
  }
  RL_CHECK_TYPE(PyTuple_Check(answer) && PyTuple_GET_SIZE(answer) == 2,
                "an answer to the compiler is a pair");
  const std::string word = string_of(PyTuple_GET_ITEM(answer, 0));
  PyObject* const about = PyTuple_GET_ITEM(answer, 1);
  if (word == "constant") {
    return constant_of(unit, about);
  }
  if (word == "enum") {  // a class and the name of a member
    ClassType& type = class_named(unit, string_of(PyTuple_GetItem(about, 0)));
    const IValue* const member = type.find_constant(text_view(PyTuple_GetItem(about, 1)));
    RL_CHECK(member != nullptr, "the enum ", type.name, " has no such member");
    return Meaning::of_constant(*member, Type::of_class(type));
  }
  if (word == "space") {
    return Meaning::of_space(std::make_shared<PythonSpace>(unit, about));
  }
  if (word == "unit function") {  // of another unit, which the asker keeps
    return Meaning::of_function(
        function_named(unit_of(PyTuple_GetItem(about, 0)), string_of(PyTuple_GetItem(about, 1))));
  }
  if (word == "tuple" || word == "overloads") {  // of answers
    std::vector<Meaning> parts;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(about); i++) {
      const std::optional<Meaning> part = meaning_of(unit, PyTuple_GET_ITEM(about, i), object);
      RL_CHECK(part.has_value(), "a part of a tuple means nothing");
      parts.push_back(*part);
    }
    const bool tuple = word == "tuple";
    return Meaning::list(tuple ? Meaning::Kind::Tuple : Meaning::Kind::Overloads, "",
                         std::move(parts));
  }
  const std::string text = string_of(about);
  if (word == "op") {
    return Meaning::named(Meaning::Kind::Op, text);
  }
  if (word == "ops") {  // the space of all ops, "torch" or "ops"
    return script::op_name(text);
  }
  if (word == "special") {
    return Meaning::named(Meaning::Kind::Special, text);
  }
  if (word == "function") {
    return Meaning::of_function(function_named(unit, text));
  }
  if (word == "class") {
    return Meaning::of_type(Type::of_class(class_named(unit, text)));
  }
  if (word == "type") {
    return Meaning::of_type(parse_type(text, &unit), Meaning::Kind::TypeName);
  }
  if (word == "method") {
    Meaning out = Meaning::named(Meaning::Kind::Method, text);
    out.value = object;
    return out;
  }
  if (word == "property") {  // the method that gives its value
    Meaning out = Meaning::named(Meaning::Kind::Property, text);
    out.value = object;
    return out;
  }
  throw Error("the compiler does not know the answer '" + word + "'");
}

// Asks a Python object: find(name), member(class, name), submodules(class), fallback(parameter).
class PythonResolver : public script::Resolver {
 public:
  PythonResolver(const CompilationUnit& unit, PyObject* scope) : unit_(unit), scope_(scope) {}
  std::optional<Meaning> find(std::string_view name) override {
    return meaning_of(unit_, asked(scope_, "find", name).get(), nullptr);
  }
  std::optional<Meaning> member(const Type& of, graph::Value* object,
                                std::string_view name) override {
    const Object answer = Object::check(PyObject_CallMethod(
        scope_, "member", "ss", of.definition->name.c_str(), std::string(name).c_str()));
    return meaning_of(unit_, answer.get(), object);
  }
  std::optional<std::vector<std::string>> submodules(const Type& of) override {
    const Object answer = asked(scope_, "submodules", of.definition->name);
    if (answer.get() == Py_None) {
      return {};
    }
    const Object items = Object::check(PySequence_Fast(answer.get(), "names of submodules"));
    std::vector<std::string> out;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); i++) {
      out.push_back(string_of(PySequence_Fast_GET_ITEM(items.get(), i)));
    }
    return out;
  }
  std::optional<Type> annotation(const std::string& parameter) override {
    const Object answer = asked(scope_, "annotation", parameter);
    return answer.get() == Py_None ? std::nullopt
                                   : std::optional(parse_type(text_view(answer.get()), &unit_));
  }
  std::optional<IValue> fallback(const std::string& parameter, const Type& type) override {
    const Object answer = asked(scope_, "fallback", parameter);
    if (answer.get() == Py_None) {
      return {};
    }
    try {
      return to_script(PyTuple_GetItem(answer.get(), 0), type, "the default of " + parameter);
    } catch (const PythonError&) {
      PyErr_Clear();
      throw Error(str("Expected a default value of type ", type.annotation(), " for '", parameter,
                      "', and it is of another. A parameter without an annotation is a Tensor"));
    }
  }

 private:
  const CompilationUnit& unit_;
  PyObject* scope_;  // for as long as the compiler runs
};

// ---- functions ----

// The graph of a function; its schema gets the result.
std::unique_ptr<graph::Graph> lowered(CompilationUnit& unit, script::Resolver& names,
                                      const script::Text& text, const script::Function& function,
                                      graph::Schema& schema, ClassType* defined) {
  std::optional<Type> returns;
  if (!schema.results.empty()) {
    returns = schema.results[0].type;
  }
  script::Lowering lowering(unit, names, text, script::newest_version);
  if (defined != nullptr) {
    lowering.defines(*defined);
  }
  std::unique_ptr<graph::Graph> out = lowering.lower(function, schema, returns);
  if (schema.results.empty()) {
    schema.results.push_back({"", *returns});
  }
  return out;
}

script::Text source_text(const char* source, const char* file, int first_line = 1) {
  return std::make_shared<graph::Source>(
      graph::Source{source, file, static_cast<size_t>(first_line)});
}

// What a function without a body of the language returns where it does not say: a tensor.
void add_default_result(graph::Schema& schema) {
  if (schema.results.empty()) {
    schema.results.push_back({"", Type{Type::Kind::Tensor}});
  }
}

// The function that a text is. What the language lacks is an error of its own in Python.
script::Body parse_function(const script::Text& text) {
  static PyObject* not_supported = nullptr;
  script::Body body;
  try {
    body = script::parse(text);
  } catch (const Error& error) {
    PyErr_SetString(import_attribute(not_supported, "rushlight.jit.frontend", "NotSupportedError"),
                    error.what());
    throw PythonError();
  }
  RL_CHECK(body.size() == 1 && body[0].kind == script::Stmt::Kind::Def,
           "expected the source of one function");
  return body;
}

}  // namespace

namespace {
// The schema of a function by its text, without a result where the text says none.
graph::Schema signature_of_source(CompilationUnit& unit, ClassType* owner, const char* name,
                                  const char* source, const char* file, int line, PyObject* scope) {
  const script::Text text = source_text(source, file, line);
  script::Body body = parse_function(text);
  PythonResolver resolver(unit, scope);
  const std::optional<Type> object =
      owner != nullptr ? std::optional(Type::of_class(*owner)) : std::nullopt;
  graph::Schema out = script::signature(*body[0].function, text, resolver, object);
  out.name = name;
  return out;
}

// A function that was declared because it calls itself gets its graph, others are added.
void define_function(CompilationUnit& unit, ClassType* owner, const std::string& name,
                     graph::Schema schema, std::unique_ptr<graph::Graph> graph) {
  const std::string full = owner != nullptr ? owner->name + "." + name : name;
  if (graph::Function* const declared = unit.find_function(full)) {
    RL_CHECK(!declared->has_graph(), "the function '", full, "' is defined already");
    declared->set_graph(std::move(graph));
    return;
  }
  add_function(unit, owner, name, std::move(schema), std::move(graph));
}
}  // namespace

graph::Schema schema_of_source(CompilationUnit& unit, ClassType* owner, const char* name,
                               const char* source, const char* file, int line, PyObject* scope) {
  graph::Schema out = signature_of_source(unit, owner, name, source, file, line, scope);
  add_default_result(out);
  return out;
}

// declare(class or None, name, source, file, line, scope): a function that calls itself exists
// before it has been compiled; its annotations say what it gives.
PyObject* declare_source(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    PyObject* owner = nullptr;
    const char* name = nullptr;
    const char* source = nullptr;
    const char* file = nullptr;
    int line = 0;
    PyObject* scope = nullptr;
    if (!PyArg_ParseTuple(args, "OsssiO:declare", &owner, &name, &source, &file, &line, &scope)) {
      throw PythonError();
    }
    CompilationUnit& unit = unit_of(self);
    ClassType* const type = owner == Py_None ? nullptr : &class_named(unit, string_of(owner));
    if (unit.find_function(type != nullptr ? type->name + "." + name : name) == nullptr) {
      graph::Schema schema = signature_of_source(unit, type, name, source, file, line, scope);
      RL_CHECK(!schema.results.empty(), "'", name,
               "' is called recursively. Recursive calls are not supported where the function does "
               "not say what it returns: annotate its result");
      add_function(unit, type, name, std::move(schema));
    }
    return Py_NewRef(Py_None);
  });
}

// The types of an overload in the place of a function's own.
void take_signature(script::Function& function, script::Function& overload) {
  function.parameters = std::move(overload.parameters);
  function.returns = std::move(overload.returns);
  function.type_comment = std::move(overload.type_comment);
}

// compile(name, source, file, line, scope, class or None, "method", "static" or "interface", source
// of an overload or None).
PyObject* compile_source(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    const char* name = nullptr;
    const char* source = nullptr;
    const char* file = nullptr;
    int line = 0;
    PyObject* scope = nullptr;
    PyObject* owner = nullptr;
    const char* form = nullptr;
    const char* overload = nullptr;
    if (!PyArg_ParseTuple(args, "sssiOOsz:compile", &name, &source, &file, &line, &scope, &owner,
                          &form, &overload)) {
      throw PythonError();
    }
    CompilationUnit& unit = unit_of(self);
    const script::Text text = source_text(source, file, line);
    script::Body body = parse_function(text);
    script::Function& function = *body[0].function;
    script::Text signature_text = text;
    if (overload != nullptr) {
      signature_text = source_text(overload, file);
      take_signature(function, *parse_function(signature_text)[0].function);
    }
    PythonResolver resolver(unit, scope);
    ClassType* const type = owner == Py_None ? nullptr : &class_named(unit, string_of(owner));
    const std::string_view kind = form;
    std::optional<Type> object;
    if (type != nullptr && kind != "static") {
      object = Type::of_class(*type);
      function.name = name;
    }
    graph::Schema schema = script::signature(function, signature_text, resolver, object);
    if (kind == "interface") {
      add_default_result(schema);
      add_function(unit, type, name, std::move(schema));
      return Py_NewRef(Py_None);
    }
    const bool defines = type != nullptr && type->form == ClassType::Form::Class &&
                         std::string_view(name).ends_with("__init__");
    std::unique_ptr<graph::Graph> graph =
        lowered(unit, resolver, text, function, schema, defines ? type : nullptr);
    define_function(unit, type, name, std::move(schema), std::move(graph));
    return Py_NewRef(Py_None);
  });
}

}  // namespace rushlight::python
