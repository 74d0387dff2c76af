// Functions of text: jit.CompilationUnit.
#include "python/bindings.h"
#include "python/script_values.h"
#include "script/code_writer.h"
#include "script/lower.h"
#include "script/prelude.h"

namespace rushlight::python {

namespace {

using script::Meaning;

// A unit of functions; a name is looked for among them, then it is `torch` or `ops`.
struct Unit {
  std::shared_ptr<graph::CompilationUnit> functions = std::make_shared<graph::CompilationUnit>();
};

class UnitNames : public script::Resolver {
 public:
  explicit UnitNames(const graph::CompilationUnit& unit) : unit_(unit) {}
  std::optional<Meaning> find(std::string_view name) override {
    if (graph::Function* const function = unit_.find_function(name)) {
      return Meaning::of_function(*function);
    }
    return script::op_name(name);
  }
  std::optional<Meaning> member(const Type&, graph::Value*, std::string_view) override {
    return {};
  }
  std::optional<std::vector<std::string>> submodules(const Type&) override { return {}; }

 private:
  const graph::CompilationUnit& unit_;
};

struct UnitObject {
  PyObject_HEAD Unit unit;
};
graph::CompilationUnit& unit_of(PyObject* self) {
  return *reinterpret_cast<UnitObject*>(self)->unit.functions;
}

PyObject* new_unit(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const self = type->tp_alloc(type, 0);
  if (self != nullptr) {
    new (&reinterpret_cast<UnitObject*>(self)->unit) Unit();
  }
  return self;
}
void delete_unit(PyObject* self) {
  reinterpret_cast<UnitObject*>(self)->unit.~Unit();
  Py_TYPE(self)->tp_free(self);
}

graph::Function& function_of(PyObject* self, const char* name) {
  graph::Function* const found = unit_of(self).find_function(name);
  if (found == nullptr) {
    raise(PyExc_AttributeError, str("the unit has no function '", name, "'"));
  }
  return *found;
}

// define(source): compiles the functions of a text, in their order; their names.
PyObject* define(PyObject* self, PyObject* source) {
  return translate_errors([&] {
    graph::CompilationUnit& unit = unit_of(self);
    const auto text = std::make_shared<graph::Source>();
    text->text = string_of(source);
    text->file = "<string>";
    UnitNames names(unit);
    const Object out = Object::check(PyList_New(0));
    for (const script::Stmt& s : script::parse(text)) {
      if (s.kind != script::Stmt::Kind::Def) {
        throw Error("a unit has functions alone:\n" + script::range_of(text, s.span).excerpt());
      }
      graph::Schema schema = script::signature(*s.function, text, names, std::nullopt);
      std::optional<Type> returns;
      if (!schema.results.empty()) {
        returns = schema.results[0].type;
      }
      script::Lowering lowering(unit, names, text, script::newest_version);
      std::unique_ptr<graph::Graph> graph = lowering.lower(*s.function, schema, returns);
      if (schema.results.empty()) {
        schema.results.push_back({"", *returns});
      }
      unit.add_function(s.function->name, std::move(schema), std::move(graph));
      const Object name = Object::check(PyUnicode_FromString(s.function->name.c_str()));
      check(PyList_Append(out.get(), name.get()));
    }
    return Py_NewRef(out.get());
  });
}

// call(name, args, kwargs).
PyObject* call(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    const char* name = nullptr;
    PyObject* positional = nullptr;
    PyObject* named = nullptr;
    if (!PyArg_ParseTuple(args, "sO!O!:call", &name, &PyTuple_Type, &positional, &PyDict_Type,
                          &named)) {
      throw PythonError();
    }
    return run_function(function_of(self, name), {}, positional, named);
  });
}

// text(name, "graph", "schema" or "code").
PyObject* text(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    const char* name = nullptr;
    const char* what = nullptr;
    if (!PyArg_ParseTuple(args, "ss:text", &name, &what)) {
      throw PythonError();
    }
    graph::Function& function = function_of(self, name);
    const std::string_view kind = what;
    script::Mentions mentions;
    const std::string out = kind == "graph"    ? function.graph().str()
                            : kind == "schema" ? function.schema.str()
                                               : script::function_text(function, mentions);
    return PyUnicode_DecodeUTF8(out.data(), static_cast<Py_ssize_t>(out.size()), "replace");
  });
}

PyMethodDef methods[] = {
    {"define", define, METH_O, "Compiles the functions of a text; their names."},
    {"call", call, METH_VARARGS, "call(name, args, kwargs)"},
    {"text", text, METH_VARARGS, "text(name, 'graph', 'schema' or 'code')"},
    {},
};
PyTypeObject unit_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C._ProgramUnit",
    .tp_basicsize = sizeof(UnitObject),
    .tp_dealloc = delete_unit,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Functions of TorchScript that are compiled from text.",
    .tp_methods = methods,
    .tp_new = new_unit,
};

}  // namespace

void init_script_compile(PyObject* module) {
  ready(unit_type);
  add(module, "_ProgramUnit", reinterpret_cast<PyObject*>(&unit_type));
}

}  // namespace rushlight::python
