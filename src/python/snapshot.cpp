// Snapshots of what a program can reach: which objects dicts, lists, cells and classes hold, for
// _dynamo/_surroundings.py.
#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "autograd/node.h"
#include "python/bindings.h"
#include "python/parser.h"

namespace rushlight::python {

namespace {

// Values that a program cannot tell apart: the same object, equal numbers, texts, tuples of such.
bool are_same(PyObject* a, PyObject* b) {
  if (a == b) {
    return true;
  }
  if (a == nullptr || b == nullptr || Py_TYPE(a) != Py_TYPE(b)) {
    return false;
  }
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a);
    const double y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (PyTuple_CheckExact(a)) {
    const Py_ssize_t n = PyTuple_GET_SIZE(a);
    bool same = n == PyTuple_GET_SIZE(b);
    for (Py_ssize_t i = 0; same && i < n; i++) {
      same = are_same(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));
    }
    return same;
  }
  if (PyMethod_Check(a)) {  // made anew whenever it is asked for
    return PyMethod_GET_SELF(a) == PyMethod_GET_SELF(b) &&
           PyMethod_GET_FUNCTION(a) == PyMethod_GET_FUNCTION(b);
  }
  if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyBytes_CheckExact(a) ||
      PyComplex_CheckExact(a)) {
    return check(PyObject_RichCompareBool(a, b, Py_EQ)) != 0;
  }
  return false;
}

bool is_number(PyObject* o) {
  return o != nullptr && (PyFloat_CheckExact(o) || PyLong_CheckExact(o));
}
bool is_number(PyObject* o, double value) {
  if (!is_number(o)) {
    return false;
  }
  const double own = PyFloat_AsDouble(o);
  if (PyErr_Occurred() != nullptr) {  // an int that is too large
    PyErr_Clear();
    return false;
  }
  return own == value;
}

bool is_tuple_of_numbers(PyObject* o) {
  bool numbers = o != nullptr && PyTuple_CheckExact(o);
  for (Py_ssize_t i = 0; numbers && i < PyTuple_GET_SIZE(o); i++) {
    numbers = is_number(PyTuple_GET_ITEM(o, i));
  }
  return numbers;
}

// What is looked at of an object.
enum class PartKind { Dict, Name, List, Set, Cell, Class, Members, Tensor };

PartKind kind_of(std::string_view name, PyObject* object) {
  struct Row {
    std::string_view name;
    PartKind kind;
    bool fits;
  };
  const Row rows[] = {
      {"dict", PartKind::Dict, PyDict_Check(object) != 0},
      {"name", PartKind::Name, PyDict_Check(object) != 0},  // one entry of a dict
      {"list", PartKind::List, PyList_Check(object) != 0},
      {"set", PartKind::Set, PySet_Check(object) != 0},
      {"cell", PartKind::Cell, PyCell_Check(object) != 0},
      {"class", PartKind::Class, true},                           // which one it is of
      {"members", PartKind::Members, PyType_Check(object) != 0},  // what a class defines
      {"tensor", PartKind::Tensor, is_tensor(object)},            // but its values
  };
  for (const Row& row : rows) {
    if (row.name == name && row.fits) {
      return row.kind;
    }
  }
  raise(PyExc_TypeError, str("no snapshot of the ", name, " of ", type_name(object)));
}

// One object and what it held.
class Part {
 public:
  Part(PartKind kind, PyObject* object, PyObject* key)
      : kind_(kind), object_(Object::borrow(object)), key_(Object::borrow(key)) {
    walk([&](PyObject* name, PyObject* value) {
      held_.push_back({Object::borrow(name), Object::borrow(value), false});
      return true;
    });
    state_ = state();
  }

  // The first entry that is no longer as it was; the number of entries where only their number has
  // changed; -1 where all is as it was.
  Py_ssize_t change() const {
    if (is_free_) {
      return -1;
    }
    size_t i = 0;
    const bool same = walk([&](PyObject* key, PyObject* value) {
      return i < held_.size() && held_[i].is_now(key, value) && ++i != 0;
    });
    if (!same || i != held_.size()) {
      return static_cast<Py_ssize_t>(i);
    }
    return state_ == state() ? -1 : 0;
  }

  // Puts back what the object held; classes stay as they are, and so does what may differ.
  void restore() const {
    PyObject* const o = object_.get();
    if (is_free_ ||
        std::any_of(held_.begin(), held_.end(), [](const Held& h) { return h.is_free; })) {
      return;
    }
    switch (kind_) {
      case PartKind::Dict:
        PyDict_Clear(o);
        for (const Held& one : held_) {
          check(PyDict_SetItem(o, one.key.get(), one.value.get()));
        }
        break;
      case PartKind::Name:
        if (held_.at(0).value) {
          check(PyDict_SetItem(o, key_.get(), held_[0].value.get()));
        } else {
          check(PyDict_DelItem(o, key_.get()));  // it was not there
        }
        break;
      case PartKind::List:
        check(PyList_SetSlice(o, 0, PyList_GET_SIZE(o), held_list().get()));
        break;
      case PartKind::Set:
        check(PySet_Clear(o));
        for (const Held& one : held_) {
          check(PySet_Add(o, one.value.get()));
        }
        break;
      case PartKind::Cell:
        check(PyCell_Set(o, held_.at(0).value.get()));
        break;
      case PartKind::Class:
      case PartKind::Members:
      case PartKind::Tensor:
        break;
    }
  }

  // What differs from the same part of a snapshot before may differ again; it is not kept alive.
  void free_what_differs(const Part& before) {
    bool comparable = !before.is_free_ && held_.size() == before.held_.size();
    for (size_t i = 0; comparable && i < held_.size(); i++) {
      comparable = are_same(held_[i].key.get(), before.held_[i].key.get());
    }
    if (!comparable || state_ != before.state_) {
      is_free_ = true;
      held_.clear();
      return;
    }
    for (size_t i = 0; i < held_.size(); i++) {
      const Held& then = before.held_[i];
      if (then.is_free || !are_same(held_[i].value.get(), then.value.get())) {
        held_[i].is_free = true;
        if (!is_number(held_[i].value.get()) && !is_tuple_of_numbers(held_[i].value.get())) {
          held_[i].value = Object();
        }
      }
    }
  }

  // Calls f(name, index) for each entry that was one number in the snapshot before and is another
  // one now; the index is that of an item where the entry is a tuple, else null.
  template <class F>
  void find_number(const Part& before, double then, double now, const F& f) const {
    for (size_t i = 0; i < std::min(held_.size(), before.held_.size()); i++) {
      PyObject* const value = held_[i].value.get();
      PyObject* const earlier = before.held_[i].value.get();
      if (held_[i].key.get() != before.held_[i].key.get()) {
        continue;
      }
      const auto name_of = [&] {
        return kind_ == PartKind::List ? Object::check(PyLong_FromSize_t(i))
                                       : Object::borrow(name(i));
      };
      if (is_number(value, now) && is_number(earlier, then)) {
        f(name_of(), Object());
      } else if (is_tuple_of_numbers(value) && is_tuple_of_numbers(earlier)) {
        const Py_ssize_t n = std::min(PyTuple_GET_SIZE(value), PyTuple_GET_SIZE(earlier));
        for (Py_ssize_t k = 0; k < n; k++) {
          if (is_number(PyTuple_GET_ITEM(value, k), now) &&
              is_number(PyTuple_GET_ITEM(earlier, k), then)) {
            f(name_of(), Object::check(PyLong_FromSsize_t(k)));
          }
        }
      }
    }
  }

  // For the collector.
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(object_.get());
    Py_VISIT(key_.get());
    for (const Held& one : held_) {
      Py_VISIT(one.key.get());
      Py_VISIT(one.value.get());
    }
    return 0;
  }

  auto identity() const { return std::tuple(kind_, object_.get(), key_.get()); }
  PyObject* object() const { return object_.get(); }
  // The name of an entry; None where it has none.
  PyObject* name(size_t i) const {
    if (kind_ == PartKind::Name) {
      return key_.get();
    }
    return i < held_.size() && held_[i].key ? held_[i].key.get() : Py_None;
  }

 private:
  struct Held {
    Object key;  // may be null
    Object value;
    bool is_free;
    bool is_now(PyObject* other_key, PyObject* other) const {
      return (key.get() == other_key || are_same(key.get(), other_key)) &&
             (is_free || are_same(value.get(), other));
    }
  };
  // Of a tensor: its memory's owner, whether it wants a gradient, hooks on it.
  using State = std::tuple<const TensorImpl*, bool, size_t, size_t>;

  State state() const {
    if (kind_ != PartKind::Tensor || !unwrap(object_.get()).defined()) {
      return {};
    }
    const Tensor& t = unwrap(object_.get());
    const AutogradMeta* const meta = t.impl()->autograd();
    const AutogradMeta::Hooks* const hooks = meta != nullptr ? meta->hooks.get() : nullptr;
    return {t.impl(), t.requires_grad(), hooks != nullptr ? hooks->tensor_hooks.size() : 0,
            hooks != nullptr ? hooks->accumulate_hooks.size() : 0};
  }

  Object held_list() const {
    Object out = Object::check(PyList_New(0));
    for (const Held& one : held_) {
      check(PyList_Append(out.get(), one.value.get()));
    }
    return out;
  }

  // Calls f(key, value) for each entry, until it is false.
  template <class F>
  bool walk(const F& f) const {
    PyObject* const o = object_.get();
    switch (kind_) {
      case PartKind::Dict:
        return walk_dict(o, f);
      case PartKind::Name: {
        PyObject* const value = PyDict_GetItemWithError(o, key_.get());
        if (value == nullptr && PyErr_Occurred() != nullptr) {
          throw PythonError();
        }
        return f(nullptr, value);
      }
      case PartKind::List:
        return walk_list(o, f);
      case PartKind::Set:  // one that nobody touched gives its items in the same order
        return walk_list(Object::check(PySequence_List(o)).get(), f);
      case PartKind::Cell:
        return f(nullptr, PyCell_GET(o));
      case PartKind::Members:
#if PY_VERSION_HEX >= 0x030C0000
        return walk_dict(Object::check(PyType_GetDict(reinterpret_cast<PyTypeObject*>(o))).get(),
                         f);
#else
        return walk_dict(reinterpret_cast<PyTypeObject*>(o)->tp_dict, f);
#endif
      case PartKind::Class:
      case PartKind::Tensor:
        return f(nullptr, reinterpret_cast<PyObject*>(Py_TYPE(o)));
    }
    return true;
  }
  template <class F>
  static bool walk_list(PyObject* list, const F& f) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
      if (!f(nullptr, PyList_GET_ITEM(list, i))) {
        return false;
      }
    }
    return true;
  }
  template <class F>
  static bool walk_dict(PyObject* dict, const F& f) {
    Py_ssize_t at = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &at, &key, &value) != 0) {
      if (!f(key, value)) {
        return false;
      }
    }
    return true;
  }

  PartKind kind_;
  Object object_;
  Object key_;
  std::vector<Held> held_;
  State state_{};
  bool is_free_ = false;
};

using Snapshot = std::vector<Part>;

// The collector sees what a snapshot holds: a step may be part of what it can reach itself.
struct SnapshotObject {
  PyObject_HEAD Snapshot* parts;
};
extern PyTypeObject snapshot_type;

Snapshot& snapshot_in(PyObject* o) {
  if (!PyObject_TypeCheck(o, &snapshot_type) ||
      reinterpret_cast<SnapshotObject*>(o)->parts == nullptr) {
    raise(PyExc_TypeError, str("expected a snapshot, not ", type_name(o)));
  }
  return *reinterpret_cast<SnapshotObject*>(o)->parts;
}

int traverse_snapshot(PyObject* o, visitproc visit, void* arg) {
  if (const Snapshot* const parts = reinterpret_cast<SnapshotObject*>(o)->parts) {
    for (const Part& part : *parts) {
      if (const int stop = part.traverse(visit, arg); stop != 0) {
        return stop;
      }
    }
  }
  return 0;
}
int clear_snapshot(PyObject* o) {
  const std::unique_ptr<Snapshot> held(
      std::exchange(reinterpret_cast<SnapshotObject*>(o)->parts, nullptr));
  return 0;
}
void delete_snapshot(PyObject* o) {
  PyObject_GC_UnTrack(o);
  clear_snapshot(o);
  Py_TYPE(o)->tp_free(o);
}

PyTypeObject snapshot_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C._Snapshot",
    .tp_basicsize = sizeof(SnapshotObject),
    .tp_dealloc = delete_snapshot,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "How the objects that a program can reach were.",
    .tp_traverse = traverse_snapshot,
    .tp_clear = clear_snapshot,
};

// Calls f for each part of a snapshot that an earlier one has, too.
template <class F>
void for_parts_of_both(Snapshot& snapshot, const Snapshot& before, const F& f) {
  std::map<decltype(std::declval<Part>().identity()), const Part*> known;
  for (const Part& part : before) {
    known.emplace(part.identity(), &part);
  }
  for (Part& part : snapshot) {
    if (const auto found = known.find(part.identity()); found != known.end()) {
      f(part, *found->second);
    }
  }
}

// _snapshot(parts): how objects are now; a part is a tuple of a kind, an object and a name (None
// but for "name").
PyObject* take_snapshot(PyObject*, PyObject* parts) {
  return translate_errors([&] {
    const Object list = Object::check(PySequence_List(parts));
    auto made = std::make_unique<Snapshot>();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); i++) {
      const char* kind;
      PyObject *object, *key;
      expect_tuple(PyList_GET_ITEM(list.get(), i), "a part of a snapshot");
      if (!PyArg_ParseTuple(PyList_GET_ITEM(list.get(), i), "sOO:_snapshot", &kind, &object,
                            &key)) {
        throw PythonError();
      }
      made->emplace_back(kind_of(kind, object), object, key);
    }
    PyObject* const out = check(snapshot_type.tp_alloc(&snapshot_type, 0));
    reinterpret_cast<SnapshotObject*>(out)->parts = made.release();
    return out;
  });
}
// _snapshot_change(snapshot): None where all is as it was, else the object that has changed and the
// name of the entry.
PyObject* snapshot_change(PyObject*, PyObject* snapshot) {
  return translate_errors([&]() -> PyObject* {
    for (const Part& part : snapshot_in(snapshot)) {
      if (const Py_ssize_t at = part.change(); at >= 0) {
        return Py_BuildValue("(OO)", part.object(), part.name(static_cast<size_t>(at)));
      }
    }
    Py_RETURN_NONE;
  });
}
// _restore_snapshot(snapshot): puts back what has changed.
PyObject* restore_snapshot(PyObject*, PyObject* snapshot) {
  return translate_errors([&]() -> PyObject* {
    for (const Part& part : snapshot_in(snapshot)) {
      if (part.change() >= 0) {
        part.restore();
      }
    }
    Py_RETURN_NONE;
  });
}
// _free_what_differs(snapshot, before): entries that are not as in the snapshot before may change.
PyObject* free_what_differs(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    PyObject *snapshot, *before;
    if (!PyArg_ParseTuple(args, "OO:_free_what_differs", &snapshot, &before)) {
      throw PythonError();
    }
    for_parts_of_both(snapshot_in(snapshot), snapshot_in(before),
                      [](Part& part, const Part& then) { part.free_what_differs(then); });
    Py_RETURN_NONE;
  });
}
// _places_of_number(snapshot, before, then, now): where one number was and another one is, as an
// owner, a name, and an index or None.
PyObject* places_of_number(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    PyObject *snapshot, *before;
    double then, now;
    if (!PyArg_ParseTuple(args, "OOdd:_places_of_number", &snapshot, &before, &then, &now)) {
      throw PythonError();
    }
    Object out = Object::check(PyList_New(0));
    for_parts_of_both(
        snapshot_in(snapshot), snapshot_in(before), [&](const Part& part, const Part& earlier) {
          part.find_number(earlier, then, now, [&](const Object& name, const Object& index) {
            const Object place = Object::check(
                PyTuple_Pack(3, part.object(), name.get(), index ? index.get() : Py_None));
            check(PyList_Append(out.get(), place.get()));
          });
        });
    return out.release();
  });
}

PyMethodDef functions[] = {
    {"_snapshot", take_snapshot, METH_O, nullptr},
    {"_snapshot_change", snapshot_change, METH_O, nullptr},
    {"_restore_snapshot", restore_snapshot, METH_O, nullptr},
    {"_free_what_differs", free_what_differs, METH_VARARGS, nullptr},
    {"_places_of_number", places_of_number, METH_VARARGS, nullptr},
    {},
};

}  // namespace

void init_snapshot(PyObject* module) {
  ready(snapshot_type);
  add(module, "_Snapshot", reinterpret_cast<PyObject*>(&snapshot_type));
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace rushlight::python
