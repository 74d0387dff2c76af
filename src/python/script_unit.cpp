// _C._ProgramUnit: classes, objects and functions of programs, from text, graphs and Python code.
#include "python/script_unit.h"

#include <algorithm>

#include "python/bindings.h"
#include "python/graph.h"
#include "script/code_writer.h"
#include "script/match.h"
#include "script/prelude.h"

namespace rushlight::python {

using graph::CompilationUnit;

namespace {

struct UnitObject {
  PyObject_HEAD std::shared_ptr<CompilationUnit> unit;
};

extern PyTypeObject unit_type;

// _ProgramUnit(outer=None).
PyObject* new_unit(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* outer = nullptr;
  if (!PyArg_ParseTuple(args, "|O!:_ProgramUnit", &unit_type, &outer)) {
    return nullptr;
  }
  PyObject* const self = type->tp_alloc(type, 0);
  if (self != nullptr) {
    new (&reinterpret_cast<UnitObject*>(self)->unit) std::shared_ptr<CompilationUnit>(
        std::make_shared<CompilationUnit>(outer == nullptr ? nullptr : shared_unit_of(outer)));
  }
  return self;
}
void delete_unit(PyObject* self) {
  reinterpret_cast<UnitObject*>(self)->unit.~shared_ptr();
  Py_TYPE(self)->tp_free(self);
}

}  // namespace

CompilationUnit& unit_of(PyObject* self) { return *reinterpret_cast<UnitObject*>(self)->unit; }
std::shared_ptr<CompilationUnit> shared_unit_of(PyObject* self) {
  return reinterpret_cast<UnitObject*>(self)->unit;
}

ClassType& class_named(const CompilationUnit& unit, const std::string& name) {
  ClassType* const found = unit.find_class(name);
  RL_CHECK(found != nullptr, "no class '", name, "' has been compiled");
  return *found;
}

graph::Function& function_named(const CompilationUnit& unit, const std::string& name) {
  graph::Function* const found = unit.find_function(name);
  if (found == nullptr) {
    raise(PyExc_AttributeError, str("the unit has no function '", name, "'"));
  }
  return *found;
}

graph::Function& add_function(CompilationUnit& unit, ClassType* owner, const std::string& name,
                              graph::Schema schema, std::unique_ptr<graph::Graph> graph) {
  return owner != nullptr ? unit.add_method(*owner, name, std::move(schema), std::move(graph))
                          : unit.add_function(name, std::move(schema), std::move(graph));
}

namespace {

// Arguments of a method of the type, by a format of Python's.
template <class... A>
void parse(PyObject* args, const char* format, A*... to) {
  if (!PyArg_ParseTuple(args, format, to...)) {
    throw PythonError();
  }
}
ClassType* owner_of(PyObject* self, PyObject* name) {
  return name == Py_None ? nullptr : &class_named(unit_of(self), string_of(name));
}

// ---- classes and objects ----

PyObject* add_class(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    const char* name = nullptr;
    const char* form = nullptr;
    parse(args, "ss:add_class", &name, &form);
    constexpr std::pair<std::string_view, ClassType::Form> forms[] = {
        {"class", ClassType::Form::Class},
        {"module", ClassType::Form::Module},
        {"tuple", ClassType::Form::NamedTuple},
        {"enum", ClassType::Form::Enum},
        {"interface", ClassType::Form::Interface},
        {"module interface", ClassType::Form::Interface}};
    const auto* const found = std::find_if(std::begin(forms), std::end(forms),
                                           [&](const auto& row) { return row.first == form; });
    RL_CHECK(found != std::end(forms), "classes are of no form '", form, "'");
    unit_of(self).add_class(found->second, name).of_modules = found->first == "module interface";
    return Py_NewRef(Py_None);
  });
}

// A type as text, or as what values of graphs have, whose unit lives as long.
Type type_from(CompilationUnit& unit, PyObject* o) {
  if (PyUnicode_Check(o)) {
    return parse_type(text_view(o), &unit);
  }
  unit.keep(unit_of_type(o));
  return unwrap_type(o);
}

// add_attribute(class, name, type, kind, (default,) or None): a field of a named tuple may have a
// default.
PyObject* add_attribute(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    const char* of = nullptr;
    const char* name = nullptr;
    PyObject* type = nullptr;
    const char* kind = nullptr;
    PyObject* fallback = Py_None;
    parse(args, "ssOs|O:add_attribute", &of, &name, &type, &kind, &fallback);
    ClassType::Attribute attribute;
    attribute.name = name;
    attribute.type = type_from(unit_of(self), type);
    attribute.is_parameter = std::string_view(kind) == "parameter";
    attribute.is_buffer = std::string_view(kind) == "buffer";
    if (fallback != Py_None) {
      attribute.fallback = to_script(PyTuple_GetItem(fallback, 0), attribute.type, name);
    }
    class_named(unit_of(self), of).add_attribute(std::move(attribute));
    return Py_NewRef(Py_None);
  });
}

// add_constant(class, name, value, type): of enums a member, of other classes a constant.
PyObject* add_constant(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    const char* of = nullptr;
    const char* name = nullptr;
    PyObject* given = nullptr;
    const char* text = nullptr;
    parse(args, "ssOs:add_constant", &of, &name, &given, &text);
    ClassType& type = class_named(unit_of(self), of);
    const Type of_value = parse_type(text, &unit_of(self));
    IValue value = to_script(given, of_value, name);
    if (type.form == ClassType::Form::Enum) {
      if (type.attributes.empty()) {
        type.add_attribute({"name", Type{Type::Kind::String}});
        type.add_attribute({"value", of_value});
      }
      const auto member = make_intrusive<rushlight::Object>(type, nullptr);
      member->slots = {IValue(std::string(name)), value};
      value = member->value();
    }
    type.constants.emplace_back(name, std::move(value));
    return Py_NewRef(Py_None);
  });
}

// set_hooks(class, names of methods before forward, names of those behind it).
PyObject* set_hooks(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    const char* of = nullptr;
    PyObject* before = nullptr;
    PyObject* behind = nullptr;
    parse(args, "sO!O!:set_hooks", &of, &PyList_Type, &before, &PyList_Type, &behind);
    ClassType& type = class_named(unit_of(self), of);
    const auto take = [](PyObject* names, std::vector<std::string>& to) {
      to.clear();
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names); i++) {
        to.push_back(string_of(PyList_GET_ITEM(names, i)));
      }
    };
    take(before, type.pre_hooks);
    take(behind, type.hooks);
    return Py_NewRef(Py_None);
  });
}

PyObject* new_object(PyObject* self, PyObject* name) {
  return translate_errors([&] {
    return wrap_object(unit_of(self).create(class_named(unit_of(self), string_of(name))));
  });
}

PyObject* type_named(PyObject* self, PyObject* text) {
  return translate_errors(
      [&] { return wrap_type(parse_type(text_view(text), &unit_of(self)), shared_unit_of(self)); });
}

// keep(unit): one whose functions are called by this one's.
PyObject* keep(PyObject* self, PyObject* other) {
  return translate_errors([&] {
    RL_CHECK_TYPE(PyObject_TypeCheck(other, &unit_type), "keep() takes a unit");
    unit_of(self).keep(shared_unit_of(other));
    return Py_NewRef(Py_None);
  });
}

PyObject* has_class(PyObject* self, PyObject* name) {
  return translate_errors(
      [&] { return PyBool_FromLong(unit_of(self).find_class(string_of(name)) != nullptr); });
}

PyObject* has_method(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    const char* of = nullptr;
    const char* name = nullptr;
    parse(args, "ss:has_method", &of, &name);
    return PyBool_FromLong(class_named(unit_of(self), of).find_method(name) != nullptr);
  });
}

// ---- functions ----

// define_graph(class or None, name, graph, [(argument, (default,) or None)] or None): the function
// is a copy of the graph, whose inputs say the types; without names they are those of the inputs.
PyObject* define_graph(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    PyObject* owner = nullptr;
    const char* name = nullptr;
    PyObject* given = nullptr;
    PyObject* rows = Py_None;
    parse(args, "OsO|O:define_graph", &owner, &name, &given, &rows);
    std::unique_ptr<graph::Graph> graph = unwrap_graph(given)->clone();
    graph->verify();
    RL_CHECK(graph->outputs().size() == 1, "a function gives one value, not ",
             graph->outputs().size(), ": make a tuple of them");
    ClassType* const type = owner_of(self, owner);
    RL_CHECK(type == nullptr ||
                 (!graph->inputs().empty() && graph->inputs()[0]->type == Type::of_class(*type)),
             "the first input of a method's graph is its object");
    graph::Schema schema;
    schema.name = name;
    for (graph::Value* const input : graph->inputs()) {
      schema.arguments.push_back({input->name(), input->type});
    }
    if (rows != Py_None) {
      RL_CHECK(PyList_Check(rows) &&
                   static_cast<size_t>(PyList_GET_SIZE(rows)) == schema.arguments.size(),
               "a row is wanted for each input");
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        graph::Argument& argument = schema.arguments[static_cast<size_t>(i)];
        PyObject* const row = PyList_GET_ITEM(rows, i);
        argument.name = string_of(PyTuple_GetItem(row, 0));
        PyObject* const fallback = PyTuple_GetItem(row, 1);
        if (fallback != Py_None) {
          argument.fallback = to_script(PyTuple_GetItem(fallback, 0), argument.type, argument.name);
        }
      }
    }
    schema.results.push_back({"", graph->outputs()[0]->type});
    add_function(unit_of(self), type, name, std::move(schema), std::move(graph));
    return Py_NewRef(Py_None);
  });
}

// The schema of [(name, type, (default,) or None)] and the text of a result.
graph::Schema schema_from(const CompilationUnit& unit, const char* name, PyObject* rows,
                          const char* result) {
  graph::Schema out;
  out.name = name;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
    const char* argument = nullptr;
    const char* type = nullptr;
    PyObject* fallback = nullptr;
    parse(PyList_GET_ITEM(rows, i), "ssO", &argument, &type, &fallback);
    out.arguments.push_back({argument, parse_type(type, &unit)});
    if (fallback != Py_None) {
      out.arguments.back().fallback =
          to_script(PyTuple_GetItem(fallback, 0), out.arguments.back().type, argument);
    }
  }
  out.results.push_back({"", parse_type(result, &unit)});
  return out;
}

// Calls Python with the values of a program.
class PythonFunction final : public graph::Function::Native {
 public:
  PythonFunction(PyObject* function, const graph::Schema& schema)
      : function_(Py_NewRef(function)),
        result_(schema.results[0].type),
        what_(schema.name + "() gives a value; the program") {
    for (const graph::Argument& argument : schema.arguments) {
      types_.push_back(argument.type);
    }
  }
  ~PythonFunction() override {
    if (Py_IsInitialized() != 0) {
      const WithGil gil;
      Py_DECREF(function_);
    }
  }
  std::vector<IValue> operator()(std::vector<IValue> arguments) override {
    const WithGil gil;
    try {
      const Object given = Object::check(PyTuple_New(static_cast<Py_ssize_t>(arguments.size())));
      for (size_t i = 0; i < arguments.size(); i++) {
        PyTuple_SET_ITEM(given.get(), static_cast<Py_ssize_t>(i),
                         check(from_script(arguments[i], types_.at(i))));
      }
      const Object made = Object::check(PyObject_CallObject(function_, given.get()));
      if (made.get() == Py_None && result_.is(Type::Kind::Tensor)) {
        return {IValue(Tensor())};  // whoever says nothing of a result seldom means a tensor
      }
      return {to_argument(made.get(), result_, what_)};
    } catch (const PythonError&) {
      throw CarriedError::take();
    }
  }

 private:
  PyObject* function_;
  std::vector<Type> types_;
  Type result_;
  std::string what_;
};

// define_native(class or None, name, source, file, line, scope, function): calls Python.
PyObject* define_native(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    PyObject* owner = nullptr;
    const char* name = nullptr;
    const char* source = nullptr;
    const char* file = nullptr;
    int line = 0;
    PyObject* scope = nullptr;
    PyObject* function = nullptr;
    parse(args, "OsssiOO:define_native", &owner, &name, &source, &file, &line, &scope, &function);
    graph::Schema schema =
        schema_of_source(unit_of(self), owner_of(self, owner), name, source, file, line, scope);
    auto native = std::make_unique<PythonFunction>(function, schema);
    add_function(unit_of(self), owner_of(self, owner), name, std::move(schema))
        .set_native(std::move(native));
    return Py_NewRef(Py_None);
  });
}

// define_raise(class or None, name, rows, result, message): a function that raises.
PyObject* define_raise(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    PyObject* owner = nullptr;
    const char* name = nullptr;
    PyObject* rows = nullptr;
    const char* result = nullptr;
    const char* message = nullptr;
    parse(args, "OsO!ss:define_raise", &owner, &name, &PyList_Type, &rows, &result, &message);
    graph::Schema schema = schema_from(unit_of(self), name, rows, result);
    auto graph = std::make_unique<graph::Graph>();
    for (const graph::Argument& argument : schema.arguments) {
      graph->add_input(argument.type, argument.name);
    }
    const auto text = [&](const char* words) {
      return graph->constant(std::string(words), Type{Type::Kind::String});
    };
    graph->append(graph::Kind::RaiseException, {text(message), text("builtins.RuntimeError")}, 0);
    graph->add_output(
        graph->append(graph::Kind::Uninitialized)->output()->set_type(schema.results[0].type));
    add_function(unit_of(self), owner_of(self, owner), name, std::move(schema), std::move(graph));
    return Py_NewRef(Py_None);
  });
}

// call(name, args, kwargs).
PyObject* call(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    const char* name = nullptr;
    PyObject* positional = nullptr;
    PyObject* named = nullptr;
    parse(args, "sO!O!:call", &name, &PyTuple_Type, &positional, &PyDict_Type, &named);
    return run_function(function_named(unit_of(self), name), {}, positional, named);
  });
}

PyObject* graph_of_function(PyObject* self, PyObject* name) {
  return translate_errors([&] {
    graph::Function& function = function_named(unit_of(self), string_of(name));
    return wrap_graph(keep_with_unit(function.shared_graph(), shared_unit_of(self)));
  });
}
PyObject* schema_of_function(PyObject* self, PyObject* name) {
  return translate_errors(
      [&] { return text_result(function_named(unit_of(self), string_of(name)).schema.str()); });
}
// signature(name): [(argument, type)] and the type of the result, as programs spell them.
PyObject* signature_of_function(PyObject* self, PyObject* name) {
  return translate_errors([&] {
    const graph::Schema& schema = function_named(unit_of(self), string_of(name)).schema;
    const Object rows = Object::check(PyList_New(0));
    for (const graph::Argument& argument : schema.arguments) {
      const Object row = Object::check(
          Py_BuildValue("(ss)", argument.name.c_str(), argument.type.annotation().c_str()));
      check(PyList_Append(rows.get(), row.get()));
    }
    const std::string result =
        schema.results.empty() ? "NoneType" : schema.results[0].type.annotation();
    return check(Py_BuildValue("(Os)", rows.get(), result.c_str()));
  });
}
// code(name): the text, and the constants that it names.
PyObject* code_of_function(PyObject* self, PyObject* name) {
  return translate_errors(
      [&] { return code_and_constants(function_named(unit_of(self), string_of(name))); });
}

// A module whose forward a function is, for archives, which hold modules alone.
PyObject* module_of(PyObject* self, PyObject* name) {
  return translate_errors([&] {
    CompilationUnit& unit = unit_of(self);
    graph::Function& function = function_named(unit, string_of(name));
    std::string full = "__torch__.PlaceholderModule";
    for (int i = 0; unit.find_class(full) != nullptr; i++) {
      full = str("__torch__.___torch_mangle_", i, ".PlaceholderModule");
    }
    ClassType& type = unit.add_class(ClassType::Form::Module, full);
    type.add_attribute({"training", Type{Type::Kind::Bool}});
    std::unique_ptr<graph::Graph> graph = function.graph().clone();
    graph->block().param_node()->insert_output(0, Type::of_class(type))->set_name("self");
    graph::Schema schema = function.schema;
    schema.name = "forward";
    schema.arguments.insert(schema.arguments.begin(), {"self", Type::of_class(type)});
    unit.add_method(type, "forward", std::move(schema), std::move(graph));
    const auto made = unit.create(type);
    made->slots[0] = true;
    return wrap_object(made);
  });
}

PyMethodDef methods[] = {
    {"compile", compile_source, METH_VARARGS,
     "compile(name, source, file, line, scope, class or None, form)"},
    {"declare", declare_source, METH_VARARGS,
     "declare(class or None, name, source, file, line, scope): of what calls itself"},
    {"define_graph", define_graph, METH_VARARGS,
     "define_graph(class or None, name, graph, [(argument, (default,) or None)] or None)"},
    {"define_native", define_native, METH_VARARGS,
     "define_native(class or None, name, source, file, line, scope, function)"},
    {"define_raise", define_raise, METH_VARARGS,
     "define_raise(class or None, name, rows, result, message)"},
    {"add_class", add_class, METH_VARARGS, "add_class(name, form)"},
    {"add_attribute", add_attribute, METH_VARARGS,
     "add_attribute(class, name, type, kind, (default,) or None)"},
    {"add_constant", add_constant, METH_VARARGS, "add_constant(class, name, value, type)"},
    {"set_hooks", set_hooks, METH_VARARGS, "set_hooks(class, [name before], [name behind])"},
    {"create", new_object, METH_O, "A new object of a class."},
    {"keep", keep, METH_O, "Keeps another unit, whose functions are called by this one's."},
    {"type", type_named, METH_O, "The type that a text spells, with the unit's classes."},
    {"has_class", has_class, METH_O, "Whether there is a class of that name."},
    {"has_method", has_method, METH_VARARGS, "has_method(class, name)"},
    {"call", call, METH_VARARGS, "call(name, args, kwargs)"},
    {"graph", graph_of_function, METH_O, "The graph of a function."},
    {"code", code_of_function, METH_O, "A function as text, and the constants that it names."},
    {"schema", schema_of_function, METH_O, "The schema of a function, as text."},
    {"signature", signature_of_function, METH_O, "[(argument, type)] and the result's type."},
    {"module_of", module_of, METH_O, "A module whose forward a function is."},
    {},
};
PyTypeObject unit_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C._ProgramUnit",
    .tp_basicsize = sizeof(UnitObject),
    .tp_dealloc = delete_unit,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Classes and functions of programs, which may name each other.",
    .tp_methods = methods,
    .tp_new = new_unit,
};

// ---- what Python asks the compiler ----

PyObject* is_known_op(PyObject*, PyObject* name) {
  return translate_errors([&] {
    const std::string op = string_of(name);
    return PyBool_FromLong(script::is_op(op) || (op.starts_with("aten::") &&
                                                 script::has_prelude_function(op.substr(6))));
  });
}

// _script_number(value, "dtype", "layout" or "memory_format"): what it is in programs.
PyObject* number_of(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject* value = nullptr;
    const char* kind = nullptr;
    parse(args, "Os:_script_number", &value, &kind);
    const std::string_view word = kind;
    if (word == "layout") {
      const IValue layout = to_value(value, Type{Type::Kind::Layout}, kind);
      return PyLong_FromLongLong(graph::number_of(layout.to<Layout>()));
    }
    if (word == "memory_format") {
      const IValue format = to_value(value, Type{Type::Kind::MemoryFormat}, kind);
      return PyLong_FromLongLong(static_cast<int64_t>(format.to<MemoryFormat>()));
    }
    const IValue dtype = to_value(value, Type{Type::Kind::ScalarType}, kind);
    return PyLong_FromLongLong(graph::number_of(dtype.to<ScalarType>()));
  });
}

PyMethodDef functions[] = {
    {"_script_has_op", is_known_op, METH_O, "Whether compiled code has the op 'aten::name'."},
    {"_script_number", number_of, METH_VARARGS, "_script_number(value, kind)"},
    {},
};

}  // namespace

void init_script_compile(PyObject* module) {
  ready(unit_type);
  add(module, "_ProgramUnit", reinterpret_cast<PyObject*>(&unit_type));
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace rushlight::python
