// Python's collector counts how many of the references to an object come from other objects that it
// knows. A cycle that goes through tensors and nodes of C++ it cannot see: `ctx.result = result` of
// a custom function is one, a hook that knows its tensor another.
//
// For each full collection every tensor and node that can be reached from a Python object gets a
// shadow: a Python object with as many references as C++ counts, which visits the shadows of what
// it refers to, and the Python objects that C++ keeps there. Python's collector then sees the graph
// as it is, finds what nobody holds from outside, and clears it: the shadow of a node drops what it
// saved and its hooks, that of a tensor its grad and its hooks. With the end of the collection
// shadows go.
//
// Nothing else may change the graph meanwhile: while a thread computes without the GIL, a
// collection goes without shadows, and finds what it finds.
#include "python/cycles.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <string_view>
#include <unordered_map>

#include "core/sparse.h"
#include "python/autograd.h"
#include "python/numpy.h"

namespace rushlight::python {

int threads_without_gil = 0;
bool showing_cycles = false;

HoldsPython::~HoldsPython() = default;

namespace {

struct ShadowObject {
  const PyObject_HEAD Shadow* shadow;  // null once the collection is over
};

std::atomic<bool> any_tie{false};

}  // namespace

struct Shadow {
  explicit Shadow(TensorImpl& impl) : tensor(&impl) {}
  explicit Shadow(Node& n) : node(&n) {}
  int32_t use_count() const { return tensor ? tensor->use_count() : node->use_count(); }

  Ref<TensorImpl> tensor;  // one of these
  Ref<Node> node;
  PyObject* holder = nullptr;  // its Python object, where that refers to it …
  bool holds_holder = false;   // … and where it has a reference to that as well
  int32_t references = 0;      // to it, our own aside
  int32_t seen = 0;            // of these, from what has a shadow or is a Python object
  ShadowObject* object = nullptr;
};

namespace {

// ---- what refers to what ----

// f(TensorImpl*), f(Node*) or f(PyObject*) for each counted reference, also for null ones.
template <class F>
void each_object(const HoldsPython* holder, const F& f) {
  if (holder != nullptr) {
    const auto [first, second] = holder->python_objects();
    f(first);
    f(second);
  }
}

template <class Hook, class F>
void each_object(const std::shared_ptr<Hook>& hook, const F& f) {
  if (hook.use_count() == 1) {
    each_object(dynamic_cast<const HoldsPython*>(hook.get()), f);
  }
}

template <class F>
void each_reference(const TensorImpl& impl, const F& f) {
  f(impl.view().root.get());
  f(buffer_owner(impl));
  if (const auto* sparse = dynamic_cast<const SparseTensor*>(impl.special())) {
    f(sparse->first().impl());
    f(sparse->second().impl());
    f(sparse->values().impl());
  }
  const AutogradMeta* meta = impl.autograd();
  if (meta == nullptr) {
    return;
  }
  f(meta->grad.impl());
  f(meta->grad_fn.get());
  f(meta->dual.get());
  if (meta->hooks == nullptr) {
    return;
  }
  f(meta->hooks->retained_by.get());
  for (const auto& hook : meta->hooks->tensor_hooks) {
    each_object(hook, f);
  }
  for (const auto& hook : meta->hooks->accumulate_hooks) {
    each_object(hook, f);
  }
}

template <class F>
void each_reference(Node& node, const F& f) {
  for (const Edge& edge : node.edges()) {
    f(edge.node.get());
  }
  for (size_t i = 0; i < node.num_saved(); i++) {
    SavedSearch found;
    node.saved_tensor(i).pack(found);
    f(found.tensor);
    f(found.node);
    each_object(dynamic_cast<const HoldsPython*>(found.packed), f);
  }
  for (size_t i = 0; i < node.num_values(); i++) {
    node.value(i).for_each_tensor([&](const Tensor& t) { f(t.impl()); });
  }
  f(owned_context_of(node));
  const Node::Extra* extra = node.extra();
  if (extra == nullptr) {
    return;
  }
  f(extra->wrapped.get());
  f(extra->parent.get());
  f(static_cast<PyObject*>(extra->metadata));
  for (const auto& [output_nr, hook] : extra->output_hooks) {
    each_object(hook, f);
  }
  for (const auto& hook : extra->pre_hooks) {
    each_object(hook, f);
  }
  for (const auto& hook : extra->post_hooks) {
    each_object(hook, f);
  }
}

template <class F>
void each_reference(const Shadow& shadow, const F& f) {
  if (shadow.node) {
    each_reference(*shadow.node, f);
    return;
  }
  each_reference(std::as_const(*shadow.tensor), f);
  if (shadow.holds_holder) {
    f(shadow.holder);
  } else if (shadow.tensor->owns_python()) {
    f(shadow.tensor->python());
  }
}

// ---- the shadows of one collection ----

// What refers to nothing, and is referred to once, needs no shadow.
bool may_be_in_cycle(const TensorImpl& impl) {
  return impl.use_count() > 1 || impl.autograd() != nullptr || impl.is_view() ||
         impl.owns_python() || impl.special() != nullptr;
}

class Collection {
 public:
  Collection() = default;
  void fill() {
    find_holders();
    for (size_t i = 0; i < shadows_.size(); i++) {  // grows meanwhile
      each_reference(shadows_[i], Counting{*this});
    }
    for (Shadow& shadow : shadows_) {
      show(shadow);
    }
  }

  ~Collection() {
    for (Shadow& shadow : shadows_) {
      shadow.tensor.reset();
      shadow.node.reset();
    }
    for (const Shadow& shadow : shadows_) {
      if (shadow.holds_holder) {
        Py_DECREF(shadow.holder);
      }
    }
    for (const Shadow& shadow : shadows_) {
      if (shadow.object != nullptr) {
        hide(*shadow.object, shadow.references);
      }
    }
  }
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;

  const Shadow* find(const void* of) const {
    const auto it = places_.find(of);
    return it != places_.end() ? it->second : nullptr;
  }

 private:
  struct Counting {
    Collection& collection;
    void operator()(TensorImpl* impl) const {
      if (impl != nullptr && may_be_in_cycle(*impl)) {
        collection.shadow(*impl).seen++;
      }
    }
    void operator()(Node* node) const {
      if (node != nullptr) {
        collection.shadow(*node).seen++;
      }
    }
    void operator()(PyObject*) const {}
  };

  template <class T>
  Shadow& shadow(T& of) {
    Shadow*& place = places_[&of];
    if (place == nullptr) {
      place = &shadows_.emplace_back(of);
    }
    return *place;
  }

  // The Python objects of tensors and nodes. A context belongs to its node, and an object may to
  // its tensor; these may be held by what they hold.
  void find_holders() {
    static PyObject* get_objects = nullptr;
    const Object list =
        Object::check(PyObject_CallNoArgs(import_attribute(get_objects, "gc", "get_objects")));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); i++) {
      PyObject* o = PyList_GET_ITEM(list.get(), i);
      if (is_tensor(o)) {
        const auto* object = reinterpret_cast<TensorObject*>(o);
        const Tensor& t = object->tensor;
        if (t.defined() && may_be_in_cycle(*t.impl())) {
          hold(shadow(*t.impl()), o);
        } else if (object->lent != nullptr && object->lent->try_retain()) {
          shadow(*Ref<TensorImpl>::steal(object->lent));
        }
      } else if (is_node(o)) {
        const auto* object = reinterpret_cast<NodeObject*>(o);
        if (const Ref<Node> node = object->alive()) {
          Shadow& of = shadow(*node);
          if (object->owns) {
            hold(of, o);
          }
        }
      }
    }
  }

  static void hold(Shadow& shadow, PyObject* holder) {
    shadow.holder = holder;
    shadow.seen++;
    // A tensor that others keep takes its object over when that would die.
    if (shadow.tensor) {
      shadow.holds_holder = true;
      Py_INCREF(holder);
    }
  }

  static void show(Shadow& shadow);
  static void hide(ShadowObject& object, int32_t references) {
    auto* o = reinterpret_cast<PyObject*>(&object);
    object.shadow = nullptr;
    Py_SET_REFCNT(o, Py_REFCNT(o) - std::max(references, 1) + 1);
    Py_DECREF(o);
  }

  std::deque<Shadow> shadows_;
  std::unordered_map<const void*, Shadow*> places_;
};

std::unique_ptr<Collection> collection;

// ---- the Python object of a shadow ----

int traverse(PyObject* o, visitproc visit, void* arg) {
  const Shadow* shadow = reinterpret_cast<ShadowObject*>(o)->shadow;
  if (shadow == nullptr || threads_without_gil != 0) {
    return 0;
  }
  struct Visiting {
    visitproc visit;
    void* arg;
    int& status;
    void operator()(PyObject* object) const {
      if (status == 0 && object != nullptr) {
        status = visit(object, arg);
      }
    }
    void operator()(const Shadow* of) const {
      if (status == 0 && of != nullptr) {
        status = visit_shadow(*of, visit, arg);
      }
    }
    void operator()(TensorImpl* impl) const { (*this)(collection->find(impl)); }
    void operator()(Node* node) const { (*this)(collection->find(node)); }
  };
  int status = 0;
  each_reference(*shadow, Visiting{visit, arg, status});
  return status;
}

void clear_tensor(TensorImpl& impl) {
  AutogradMeta* meta = impl.autograd();
  if (meta == nullptr) {
    return;
  }
  const Tensor grad = std::move(meta->grad);
  if (meta->hooks != nullptr) {
    const auto tensor_hooks = std::move(meta->hooks->tensor_hooks);
    const auto accumulate_hooks = std::move(meta->hooks->accumulate_hooks);
    meta->retains_grad = false;
    stop_retaining(*meta);
  }
}

void clear_node(Node& node) {
  node.release_saved();
  if (Node::Extra* extra = node.extra()) {
    const auto output_hooks = std::move(extra->output_hooks);
    const auto pre_hooks = std::move(extra->pre_hooks);
    const auto post_hooks = std::move(extra->post_hooks);
    if (void* metadata = std::exchange(extra->metadata, nullptr)) {
      extra->drop_metadata(metadata);
    }
  }
}

int clear(PyObject* o) {
  const Shadow* shadow = reinterpret_cast<ShadowObject*>(o)->shadow;
  if (shadow != nullptr && shadow->tensor) {
    clear_tensor(*shadow->tensor);
  } else if (shadow != nullptr && shadow->node) {
    clear_node(*shadow->node);
  }
  return 0;
}

void dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  PyObject_GC_Del(o);
}

PyTypeObject shadow_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C._Shadow",
    .tp_basicsize = sizeof(ShadowObject),
    .tp_dealloc = dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "Stands for a tensor or a node of C++'s during a collection.",
    .tp_traverse = traverse,
    .tp_clear = clear,
};

void Collection::show(Shadow& shadow) {
  auto* object = PyObject_GC_New(ShadowObject, &shadow_type);
  check(reinterpret_cast<PyObject*>(object));
  object->shadow = &shadow;
  shadow.references = shadow.use_count() - 1;
  shadow.object = object;
  Py_SET_REFCNT(reinterpret_cast<PyObject*>(object), std::max(shadow.references, 1));
  PyObject_GC_Track(object);
}

// gc calls it as each collection begins and ends.
PyObject* on_collection(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    const char* phase;
    PyObject* info;
    if (!PyArg_ParseTuple(args, "sO!:on_collection", &phase, &PyDict_Type, &info)) {
      throw PythonError();
    }
    showing_cycles = false;
    const std::unique_ptr<Collection> over = std::move(collection);
    const PyObject* generation = PyDict_GetItemString(info, "generation");
    const bool full = generation != nullptr && PyLong_Check(generation) &&
                      PyLong_AsLong(const_cast<PyObject*>(generation)) == 2;
    if (full && std::string_view(phase) == "start" && threads_without_gil == 0 &&
        any_tie.load(std::memory_order_relaxed) && !interpreter_ends()) {
      auto shown = std::make_unique<Collection>();
      shown->fill();
      collection = std::move(shown);
      showing_cycles = true;
    }
    Py_RETURN_NONE;
  });
}
PyMethodDef on_collection_method = {"_on_collection", on_collection, METH_VARARGS, nullptr};

const Shadow* shadow_in(const void* of, PyObject* holder) {
  const Shadow* found = collection->find(of);
  return found != nullptr && found->holder == holder ? found : nullptr;
}

}  // namespace

void note_tie() { any_tie.store(true, std::memory_order_relaxed); }

const Shadow* shadow_of(const TensorImpl& impl, PyObject* holder) {
  return shadow_in(&impl, holder);
}
const Shadow* shadow_of(const Node& node, PyObject* holder) { return shadow_in(&node, holder); }

// One that has got other references since, or more than it should have, counts as held from
// outside.
int visit_shadow(const Shadow& shadow, visitproc visit, void* arg) {
  const bool counted =
      shadow.seen <= shadow.references && shadow.use_count() == shadow.references + 1;
  return counted ? visit(reinterpret_cast<PyObject*>(shadow.object), arg) : 0;
}

void init_cycles() {
  ready(shadow_type);
  const Object gc = Object::check(PyImport_ImportModule("gc"));
  const Object callbacks = Object::check(PyObject_GetAttrString(gc.get(), "callbacks"));
  const Object function = Object::check(PyCFunction_New(&on_collection_method, nullptr));
  check(PyList_Append(callbacks.get(), function.get()));
}

}  // namespace rushlight::python
