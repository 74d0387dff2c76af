// jit.script: source of Python through the compiler of TorchScript. What free names mean is asked
// of Python (python/rushlight/jit/_compile.py), which answers in words: ("op", "aten::relu").
#include <rushlight/script.h>

#include "python/bindings.h"
#include "python/convert.h"
#include "python/script_values.h"
#include "script/code_writer.h"
#include "script/lower.h"

namespace rushlight::python {

namespace {

using script::Meaning;
using script::Resolver;

// The classes and functions of all programs that Python compiles; they live as long as the process.
graph::CompilationUnit& unit() {
  static const auto* const made =
      new std::shared_ptr<graph::CompilationUnit>(std::make_shared<graph::CompilationUnit>());
  return **made;
}

ClassType& class_named(const std::string& name) {
  ClassType* const found = unit().find_class(name);
  RL_CHECK(found != nullptr, "no class '", name, "' has been compiled");
  return *found;
}
graph::Function& function_named(const std::string& name) {
  graph::Function* const found = unit().find_function(name);
  RL_CHECK(found != nullptr, "no function '", name, "' has been compiled");
  return *found;
}

std::optional<Meaning> meaning_of(PyObject* answer, graph::Value* object);

Object asked(PyObject* object, const char* method, const std::string& a) {
  return Object::check(PyObject_CallMethod(object, method, "s", a.c_str()));
}

// What has names in Python: a module, a class.
class PythonSpace : public script::Space {
 public:
  explicit PythonSpace(PyObject* space) : space_(Object::borrow(space)) {}
  std::optional<Meaning> find(std::string_view name) override {
    return meaning_of(asked(space_.get(), "find", std::string(name)).get(), nullptr);
  }
  std::string describe() const override {
    const Object text = Object::check(PyObject_Str(space_.get()));
    return string_of(text.get());
  }

 private:
  Object space_;
};

// The answers: None, or a tuple of a word and what it is about.
std::optional<Meaning> meaning_of(PyObject* answer, graph::Value* object) {
  if (answer == Py_None) {
    return {};
  }
  RL_CHECK_TYPE(PyTuple_Check(answer) && PyTuple_GET_SIZE(answer) == 2,
                "an answer to the compiler is a pair");
  const std::string word = string_of(PyTuple_GET_ITEM(answer, 0));
  PyObject* const about = PyTuple_GET_ITEM(answer, 1);
  if (word == "constant") {
    const IValue value = to_script(about, Type(), "a constant");
    return Meaning::of_constant(value, rushlight::type_of(value));
  }
  if (word == "enum") {  // a class and the name of a member
    ClassType& type = class_named(string_of(PyTuple_GetItem(about, 0)));
    const IValue* const member = type.find_constant(text_view(PyTuple_GetItem(about, 1)));
    RL_CHECK(member != nullptr, "the enum ", type.name, " has no such member");
    return Meaning::of_constant(*member, Type::of_class(type));
  }
  if (word == "space") {
    return Meaning::of_space(std::make_shared<PythonSpace>(about));
  }
  const std::string text = string_of(about);
  if (word == "op") {
    return Meaning::named(Meaning::Kind::Op, text);
  }
  if (word == "special") {
    return Meaning::named(Meaning::Kind::Special, text);
  }
  if (word == "function") {
    return Meaning::of_function(function_named(text));
  }
  if (word == "class") {
    return Meaning::of_type(Type::of_class(class_named(text)));
  }
  if (word == "type") {
    return Meaning::of_type(parse_type(text, &unit()), Meaning::Kind::TypeName);
  }
  if (word == "method") {
    Meaning out = Meaning::named(Meaning::Kind::Method, text);
    out.value = object;
    return out;
  }
  throw Error("the compiler does not know the answer '" + word + "'");
}

// Asks a Python object: find(name), member(class, name), submodules(class), fallback(parameter).
class PythonResolver : public Resolver {
 public:
  explicit PythonResolver(PyObject* scope) : scope_(scope) {}
  std::optional<Meaning> find(std::string_view name) override {
    return meaning_of(asked(scope_, "find", std::string(name)).get(), nullptr);
  }
  std::optional<Meaning> member(const Type& of, graph::Value* object,
                                std::string_view name) override {
    const Object answer = Object::check(PyObject_CallMethod(
        scope_, "member", "ss", of.definition->name.c_str(), std::string(name).c_str()));
    return meaning_of(answer.get(), object);
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
  std::optional<IValue> fallback(const std::string& parameter, const Type& type) override {
    const Object answer = asked(scope_, "fallback", parameter);
    if (answer.get() == Py_None) {
      return {};
    }
    return to_script(PyTuple_GetItem(answer.get(), 0), type, "the default of " + parameter);
  }

 private:
  PyObject* scope_;  // for as long as the compiler runs
};

// ---- classes ----

PyObject* new_class(PyObject*, PyObject* args) {
  return guarded([&] {
    const char* name = nullptr;
    const char* form = nullptr;
    if (!PyArg_ParseTuple(args, "ss:_script_class", &name, &form)) {
      throw PythonError();
    }
    constexpr std::pair<std::string_view, ClassType::Form> forms[] = {
        {"class", ClassType::Form::Class},
        {"module", ClassType::Form::Module},
        {"tuple", ClassType::Form::NamedTuple},
        {"enum", ClassType::Form::Enum},
        {"interface", ClassType::Form::Interface}};
    for (const auto& [word, one] : forms) {
      if (word == form) {
        unit().add_class(one, name);
      }
    }
    return Py_NewRef(Py_None);
  });
}

// _script_attribute(class, name, type, kind, (default,) or None).
PyObject* add_attribute(PyObject*, PyObject* args) {
  return guarded([&] {
    const char* of = nullptr;
    const char* name = nullptr;
    const char* type = nullptr;
    const char* kind = nullptr;
    PyObject* fallback = Py_None;
    if (!PyArg_ParseTuple(args, "ssss|O:_script_attribute", &of, &name, &type, &kind, &fallback)) {
      throw PythonError();
    }
    ClassType::Attribute attribute;
    attribute.name = name;
    attribute.type = parse_type(type, &unit());
    attribute.is_parameter = std::string_view(kind) == "parameter";
    attribute.is_buffer = std::string_view(kind) == "buffer";
    if (fallback != Py_None) {
      attribute.fallback = to_script(PyTuple_GetItem(fallback, 0), attribute.type, name);
    }
    class_named(of).add_attribute(std::move(attribute));
    return Py_NewRef(Py_None);
  });
}

// _script_constant(class, name, value): of enums a member, of other classes a constant.
PyObject* add_constant(PyObject*, PyObject* args) {
  return guarded([&] {
    const char* of = nullptr;
    const char* name = nullptr;
    PyObject* given = nullptr;
    if (!PyArg_ParseTuple(args, "ssO:_script_constant", &of, &name, &given)) {
      throw PythonError();
    }
    ClassType& type = class_named(of);
    IValue value = to_script(given, Type(), name);
    if (type.form == ClassType::Form::Enum) {
      if (type.attributes.empty()) {
        type.add_attribute({"name", Type{Type::Kind::String}});
        type.add_attribute({"value", rushlight::type_of(value)});
      }
      const auto member = make_intrusive<rushlight::Object>(type, nullptr);
      member->slots = {IValue(std::string(name)), value};
      value = member->value();
    }
    type.constants.emplace_back(name, std::move(value));
    return Py_NewRef(Py_None);
  });
}

PyObject* new_object(PyObject*, PyObject* name) {
  return guarded(
      [&] { return wrap_object(unit().create(class_named(std::string(text_view(name))))); });
}

// ---- functions ----

// Puts an error in the place of what a function does: jit.unused.
void leave_out(script::Function& function) {
  const auto text = std::make_shared<graph::Source>();
  text->text = "raise RuntimeError(\"a function that is marked as unused was called\")";
  function.body = script::parse(text);
}

// _script_compile(qualified name, source, file, line, scope, class or None): compiles the first
// function of the source. As a method of the class, whose name the qualified one begins with.
PyObject* compile(PyObject*, PyObject* args) {
  return guarded([&] {
    const char* name = nullptr;
    const char* source = nullptr;
    const char* file = nullptr;
    int line = 0;
    PyObject* scope = nullptr;
    PyObject* owner = nullptr;
    int unused = 0;
    if (!PyArg_ParseTuple(args, "sssiOO|p:_script_compile", &name, &source, &file, &line, &scope,
                          &owner, &unused)) {
      throw PythonError();
    }
    const auto text = std::make_shared<graph::Source>();
    text->text = source;
    text->file = file;
    text->first_line = static_cast<size_t>(line);
    script::Body body = script::parse(text);
    RL_CHECK(body.size() == 1 && body[0].kind == script::Stmt::Kind::Def,
             "expected the source of one function");
    script::Function& function = *body[0].function;
    if (unused != 0) {
      leave_out(function);
    }
    PythonResolver resolver(scope);
    ClassType* const type = owner == Py_None ? nullptr : &class_named(string_of(owner));
    std::optional<Type> self;
    if (type != nullptr) {
      self = Type::of_class(*type);
    }
    graph::Schema schema = script::signature(function, text, resolver, self);
    std::optional<Type> returns;
    if (!schema.results.empty()) {
      returns = schema.results[0].type;
    }
    script::Lowering lowering(unit(), resolver, text, script::newest_version);
    if (type != nullptr && function.name == "__init__" && type->form == ClassType::Form::Class) {
      lowering.defines(*type);
    }
    std::unique_ptr<graph::Graph> graph = lowering.lower(function, schema, returns);
    if (schema.results.empty()) {
      schema.results.push_back({"", *returns});
    }
    if (type != nullptr) {
      unit().add_method(*type, function.name, std::move(schema), std::move(graph));
    } else {
      unit().add_function(name, std::move(schema), std::move(graph));
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* call_function(PyObject*, PyObject* args) {
  return guarded([&] {
    const char* name = nullptr;
    PyObject* positional = nullptr;
    PyObject* named = nullptr;
    if (!PyArg_ParseTuple(args, "sO!O!:_script_call", &name, &PyTuple_Type, &positional,
                          &PyDict_Type, &named)) {
      throw PythonError();
    }
    return run_function(function_named(name), {}, positional, named);
  });
}

PyObject* text_of(const std::string& text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}
PyObject* function_graph(PyObject*, PyObject* name) {
  return guarded([&] { return text_of(function_named(string_of(name)).graph().str()); });
}
PyObject* function_schema(PyObject*, PyObject* name) {
  return guarded([&] { return text_of(function_named(string_of(name)).schema.str()); });
}
PyObject* function_code(PyObject*, PyObject* name) {
  return guarded([&] {
    script::Mentions mentions;
    return text_of(script::function_text(function_named(string_of(name)), mentions));
  });
}
PyObject* is_known_op(PyObject*, PyObject* name) {
  return guarded([&] { return PyBool_FromLong(script::is_op(string_of(name))); });
}

PyObject* has_method(PyObject*, PyObject* args) {
  return guarded([&] {
    const char* of = nullptr;
    const char* name = nullptr;
    if (!PyArg_ParseTuple(args, "ss:_script_has_method", &of, &name)) {
      throw PythonError();
    }
    return PyBool_FromLong(class_named(of).find_method(name) != nullptr);
  });
}

// _script_number(value, "dtype", "layout" or "memory_format"): what it is in programs.
PyObject* number_of(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* value = nullptr;
    const char* kind = nullptr;
    if (!PyArg_ParseTuple(args, "Os:_script_number", &value, &kind)) {
      throw PythonError();
    }
    const std::string_view word = kind;
    int64_t number = 0;
    if (word == "layout") {
      number = static_cast<int64_t>(to_value(value, Type{Type::Kind::Layout}, kind).to<Layout>());
    } else if (word == "memory_format") {
      number = static_cast<int64_t>(
          to_value(value, Type{Type::Kind::MemoryFormat}, kind).to<MemoryFormat>());
    } else {
      number = static_cast<int64_t>(
          to_value(value, Type{Type::Kind::ScalarType}, kind).to<ScalarType>());
    }
    return PyLong_FromLongLong(number);
  });
}

// A module whose forward a function is, for archives, which hold modules alone.
PyObject* module_of(PyObject*, PyObject* name) {
  return guarded([&] {
    graph::Function& function = function_named(string_of(name));
    std::string full = "__torch__.PlaceholderModule";
    for (int i = 0; unit().find_class(full) != nullptr; i++) {
      full = str("__torch__.___torch_mangle_", i, ".PlaceholderModule");
    }
    ClassType& type = unit().add_class(ClassType::Form::Module, full);
    type.add_attribute({"training", Type{Type::Kind::Bool}});
    std::unique_ptr<graph::Graph> graph = function.graph().clone();
    graph->block().param_node()->insert_output(0, Type::of_class(type))->set_name("self");
    graph::Schema schema = function.schema;
    schema.name = "forward";
    schema.arguments.insert(schema.arguments.begin(), {"self", Type::of_class(type)});
    unit().add_method(type, "forward", std::move(schema), std::move(graph));
    const auto made = unit().create(type);
    made->slots[0] = true;
    return wrap_object(made);
  });
}

PyMethodDef functions[] = {
    {"_script_has_method", has_method, METH_VARARGS, "_script_has_method(class, name)"},
    {"_script_number", number_of, METH_VARARGS, "_script_number(value, kind)"},
    {"_script_module_of", module_of, METH_O, "A module whose forward a function is."},
    {"_script_class", new_class, METH_VARARGS, "_script_class(name, form)"},
    {"_script_attribute", add_attribute, METH_VARARGS,
     "_script_attribute(class, name, type, kind, (default,) or None)"},
    {"_script_constant", add_constant, METH_VARARGS, "_script_constant(class, name, value)"},
    {"_script_object", new_object, METH_O, "A new object of a class."},
    {"_script_compile", compile, METH_VARARGS,
     "_script_compile(name, source, file, line, scope, class or None)"},
    {"_script_call", call_function, METH_VARARGS, "_script_call(name, args, kwargs)"},
    {"_script_graph", function_graph, METH_O, "The graph of a function, as text."},
    {"_script_schema", function_schema, METH_O, "The schema of a function, as text."},
    {"_script_code", function_code, METH_O, "A function as text."},
    {"_script_has_op", is_known_op, METH_O, "Whether compiled code has the op 'aten::name'."},
    {},
};

}  // namespace

void init_script_compile(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
