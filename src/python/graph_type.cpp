// Types of values of graphs as a Python type.
#include "python/graph.h"
#include "python/types.h"

namespace rushlight::python {

namespace {

extern PyTypeObject type_type;
extern PyTypeObject tensor_type_type;
bool is_type(PyObject* o) { return PyObject_TypeCheck(o, &type_type) != 0; }

struct Held {
  Type type;
  std::shared_ptr<const void> owner;
  std::shared_ptr<const graph::TensorFacts> facts;
};
struct TypeObject {
  PyObject_HEAD Held* held;
};
const Held& held(PyObject* self) { return *reinterpret_cast<TypeObject*>(self)->held; }
const Type& type_of_handle(PyObject* self) { return held(self).type; }
PyObject* wrap_part(PyObject* self, const Type& part) { return wrap_type(part, held(self).owner); }

const char* kind_name(Type::Kind kind) {
  constexpr const char* names[] = {
      "AnyType",       "TensorType",  "IntType",       "FloatType", "BoolType",     "NumberType",
      "StringType",    "IntType",     "DeviceObjType", "IntType",   "IntType",      "GeneratorType",
      "ListType",      "TupleType",   "DictType",      "ClassType", "OptionalType", "NoneType",
      "ComplexType",   "UnionType",   "FutureType",    "AwaitType", "RRefType",     "FunctionType",
      "StreamObjType", "StorageType", "ClassType",     "TupleType", "EnumType",     "InterfaceType",
      "VarType"};
  return names[static_cast<size_t>(kind)];
}
PyObject* kind(PyObject* self) { return text_result(kind_name(type_of_handle(self).kind)); }
PyObject* graph_text(PyObject* self) {
  const Held& it = held(self);
  return text_result(it.facts ? it.facts->str() : it.type.str());
}
PyObject* annotation(PyObject* self) { return text_result(type_of_handle(self).annotation()); }
PyObject* type_repr(PyObject* self) {
  return translate_errors([&] { return annotation(self); });
}
PyObject* get_annotation(PyObject* self, void*) {
  return translate_errors([&] { return annotation(self); });
}
Py_hash_t type_hash(PyObject* self) {
  const size_t hash = std::hash<std::string>()(type_of_handle(self).str());
  return static_cast<Py_hash_t>(hash >> 1);
}
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (!is_type(b) || (op != Py_EQ && op != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  const std::string x = held(a).facts ? held(a).facts->str() : "";
  const std::string y = held(b).facts ? held(b).facts->str() : "";
  return PyBool_FromLong((type_of_handle(a) == type_of_handle(b) && x == y) == (op == Py_EQ));
}
PyObject* is_subtype_of(PyObject* self, PyObject* other) {
  return translate_errors(
      [&] { return PyBool_FromLong(type_of_handle(self).is_subtype_of(unwrap_type(other))); });
}

// ---- parts ----

PyObject* elements(PyObject* self) {
  Object out = Object::check(PyList_New(0));
  for (const Type& part : type_of_handle(self).of) {
    const Object item = Object::check(wrap_part(self, part));
    check(PyList_Append(out.get(), item.get()));
  }
  return out.release();
}
template <size_t place, size_t count>
PyObject* part(PyObject* self) {
  const Type& type = type_of_handle(self);
  RL_CHECK(type.of.size() == count, "a type of ", count, " parts was expected, not ",
           type.annotation());
  return wrap_part(self, type.of[place]);
}
PyObject* name(PyObject* self) {
  const Type& type = type_of_handle(self);
  RL_CHECK(!type.name.empty(), type.annotation(), " has no name");
  return text_result(type.name.substr(type.name.rfind('.') + 1));
}
PyObject* qualified_name(PyObject* self) {
  RL_CHECK(!type_of_handle(self).name.empty(), type_of_handle(self).annotation(), " has no name");
  return text_result(type_of_handle(self).name);
}

// ---- tensors ----

const graph::TensorFacts* facts(PyObject* self) { return held(self).facts.get(); }
PyObject* ints(const std::optional<DimVector>& list) {
  if (!list) {
    Py_RETURN_NONE;
  }
  Object out = Object::check(PyList_New(0));
  for (const int64_t n : *list) {
    const Object item = Object::check(PyLong_FromLongLong(n));
    check(PyList_Append(out.get(), item.get()));
  }
  return out.release();
}
PyObject* sizes(PyObject* self) {
  return facts(self) == nullptr ? Py_NewRef(Py_None) : ints(facts(self)->sizes);
}
PyObject* strides(PyObject* self) {
  return facts(self) == nullptr ? Py_NewRef(Py_None) : ints(facts(self)->strides);
}
PyObject* dim(PyObject* self) {
  if (facts(self) == nullptr || !facts(self)->sizes) {
    Py_RETURN_NONE;
  }
  return PyLong_FromSize_t(facts(self)->sizes->size());
}
PyObject* dtype(PyObject* self) {
  return facts(self) == nullptr || !facts(self)->dtype ? Py_NewRef(Py_None)
                                                       : wrap(*facts(self)->dtype);
}
PyObject* scalar_type(PyObject* self) {
  return facts(self) == nullptr || !facts(self)->dtype
             ? Py_NewRef(Py_None)
             : text_result(enum_name(*facts(self)->dtype));
}
PyObject* device(PyObject* self) {
  return facts(self) == nullptr || !facts(self)->device ? Py_NewRef(Py_None)
                                                        : wrap(*facts(self)->device);
}
PyObject* requires_grad(PyObject* self) {
  return PyBool_FromLong(facts(self) != nullptr && facts(self)->requires_grad.value_or(false));
}

PyMethodDef type_methods[] = {
    {"kind", call_without_argument<kind>, METH_NOARGS, "The name of its kind, such as IntType."},
    {"str", call_without_argument<graph_text>, METH_NOARGS, "As a graph prints it."},
    {"isSubtypeOf", is_subtype_of, METH_O, "Whether its values are values of another type."},
    {"elements", call_without_argument<elements>, METH_NOARGS, "The types of a tuple's items."},
    {"containedTypes", call_without_argument<elements>, METH_NOARGS,
     "The types that it is made of."},
    {"getElementType", call_without_argument<part<0, 1>>, METH_NOARGS,
     "Of the items of a list or an optional."},
    {"getKeyType", call_without_argument<part<0, 2>>, METH_NOARGS, "Of the keys of a dict."},
    {"getValueType", call_without_argument<part<1, 2>>, METH_NOARGS, "Of the values of a dict."},
    {"name", call_without_argument<name>, METH_NOARGS, "The name of a class."},
    {"qualified_name", call_without_argument<qualified_name>, METH_NOARGS,
     "The whole name of a class."},
    {"sizes", call_without_argument<sizes>, METH_NOARGS,
     "The sizes that a tensor had; None: not known."},
    {"varyingSizes", call_without_argument<sizes>, METH_NOARGS,
     "The sizes that a tensor had; None: not known."},
    {"strides", call_without_argument<strides>, METH_NOARGS,
     "The strides that a tensor had; None: not known."},
    {"dim", call_without_argument<dim>, METH_NOARGS, "The number of dimensions; None: not known."},
    {"dtype", call_without_argument<dtype>, METH_NOARGS,
     "The dtype that a tensor had; None: not known."},
    {"scalarType", call_without_argument<scalar_type>, METH_NOARGS,
     "The dtype's name in graphs, such as Float."},
    {"device", call_without_argument<device>, METH_NOARGS,
     "The device that a tensor was on; None: not known."},
    {"requires_grad", call_without_argument<requires_grad>, METH_NOARGS,
     "Whether it wanted a gradient."},
    {},
};
PyGetSetDef type_properties[] = {
    {"annotation_str", get_annotation, nullptr, "As a program spells it.", nullptr},
    {},
};

PyObject* parse(PyObject*, PyObject* spelling) {
  return translate_errors([&] { return wrap_type(parse_type(text_view(spelling)), nullptr); });
}
PyMethodDef functions[] = {
    {"_parse_type", parse, METH_O, "The type that a text spells, as graphs or programs do."},
    {},
};

void delete_type(PyObject* self) {
  delete reinterpret_cast<TypeObject*>(self)->held;
  Py_TYPE(self)->tp_free(self);
}
PyTypeObject type_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C.Type",
    .tp_basicsize = sizeof(TypeObject),
    .tp_dealloc = delete_type,
    .tp_repr = type_repr,
    .tp_hash = type_hash,
    .tp_str = type_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "The type of a value of a graph: `int`, `List[int]`, `Tensor` …\n"
        "\n"
        "For an example see `Graph`.",
    .tp_richcompare = compare,
    .tp_methods = type_methods,
    .tp_getset = type_properties,
};

PyObject* any_tensor(PyObject*, PyObject*) {
  return translate_errors([&] { return wrap_type({Type::Kind::Tensor}, nullptr); });
}
PyMethodDef tensor_type_methods[] = {
    {"get", any_tensor, METH_NOARGS | METH_STATIC,
     "The type of a tensor of which nothing is known."},
    {},
};
PyTypeObject tensor_type_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C.TensorType",
    .tp_basicsize = sizeof(TypeObject),
    .tp_dealloc = delete_type,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "The type of a tensor, with what was known of it when it was seen.\n"
        "\n"
        "Example:\n"
        "    >>> torch.TensorType.get()\n"
        "    Tensor",
    .tp_methods = tensor_type_methods,
    .tp_base = &type_type,
};

}  // namespace

PyObject* wrap_type(Type type, std::shared_ptr<const void> owner,
                    std::shared_ptr<const graph::TensorFacts> facts) {
  PyTypeObject& of = type.is(Type::Kind::Tensor) ? tensor_type_type : type_type;
  PyObject* const out = check(of.tp_alloc(&of, 0));
  reinterpret_cast<TypeObject*>(out)->held =
      new Held{std::move(type), std::move(owner), std::move(facts)};
  return out;
}

const Type& unwrap_type(PyObject* o) {
  if (!is_type(o)) {
    raise(PyExc_TypeError, str("expected a Type, got ", type_name(o)));
  }
  return type_of_handle(o);
}
std::shared_ptr<const void> unit_of_type(PyObject* o) {
  unwrap_type(o);
  return held(o).owner;
}

void init_graph_types(PyObject* module) {
  add_type(module, type_type);
  add_type(module, tensor_type_type);
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace rushlight::python
