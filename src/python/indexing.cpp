// t[index] and t[index] = value.
//
// An index is read into steps, each a view (select, slice, unsqueeze), and into index tensors with
// their dimensions. One step is one op. Several are one view of the final geometry where nothing is
// recorded, and a chain of ops where it is. Index tensors then go to the ops `index` and
// `index_put_`.
#include <rushlight/ops.h>

#include <rushlight/forward.h>

#include "core/op_support.h"
#include "core/refusals.h"
#include "core/sparse.h"
#include "python/bindings.h"
#include "python/factory.h"
#include "python/numpy.h"
#include "python/parser.h"
#include "python/torch_function.h"
#include "python/trace.h"

namespace rushlight::python {

namespace {

struct Step {
  enum class Kind : uint8_t { Select, Slice, Unsqueeze } kind;
  int64_t dim;  // in the tensor as it is at this step
  int64_t start;
  int64_t stop;
  int64_t step;
};

// An index tensor stands at `dim` of the tensor after all steps; a mask covers as many dimensions
// as it has.
struct IndexTensor {
  int64_t dim;
  int64_t covers;
  Tensor tensor;
};

struct Index {
  static constexpr size_t max_steps = 128;
  Step steps[max_steps];
  size_t count = 0;
  std::vector<IndexTensor> tensors;

  void add(const Step& s) {
    RL_CHECK_INDEX(count < max_steps, "too many indices: at most ", max_steps);
    steps[count++] = s;
  }
};

// ---- reading ----

Tensor checked_index(Tensor t) {
  if (!is_integral(t.dtype()) && t.dtype() != kBool) {
    refuse_index(t);
  }
  if (t.dtype() == kByte) {
    static bool warned = false;
    warn_once(warned,
              "indexing with dtype torch.uint8 is now deprecated: bytes count as a mask. Make it "
              "one with .bool(), or numbers with .long()");
    return rushlight::to(t, kBool);
  }
  return t;
}

// A list or an array as an index tensor.
Tensor index_of_data(PyObject* o) {
  Tensor t = is_numpy_array(o) ? from_numpy(o) : of_sequences(o, std::nullopt);
  if (t.numel() == 0 && is_floating(t.dtype())) {
    t = make_empty(t.sizes(), kInt64, kCPU);  // an empty list
  }
  return checked_index(std::move(t));
}

// What one index is, decided before anything is applied.
struct Item {
  enum class Kind : uint8_t { Int, Slice, None, Ellipsis, Bool, Tensor } kind = Kind::None;
  PyObject* object = nullptr;
  int64_t value = 0;
  Tensor tensor;
};

Item read_item(PyObject* o) {
  if (PyLong_CheckExact(o)) {
    return {Item::Kind::Int, o, to_int(o), {}};
  }
  if (PySlice_Check(o)) {
    return {Item::Kind::Slice, o, 0, {}};
  }
  if (o == Py_None) {
    return {Item::Kind::None, o, 0, {}};
  }
  if (o == Py_Ellipsis) {
    return {Item::Kind::Ellipsis, o, 0, {}};
  }
  if (PyBool_Check(o) || is_numpy_bool(o)) {
    return {Item::Kind::Bool, o, check(PyObject_IsTrue(o)), {}};
  }
  if (is_tensor(o)) {
    const Tensor& t = unwrap(o);
    if (t.dim() == 0 && is_integral(t.dtype()) && t.dtype() != kByte && !t.is_meta()) {
      return {Item::Kind::Int, o, t.item().toLong(), {}};
    }
    return {Item::Kind::Tensor, o, 0, checked_index(t)};
  }
  if (is_int(o)) {
    return {Item::Kind::Int, o, to_int(o), {}};
  }
  if (is_nested(o) || is_numpy_array(o) || PyUnicode_Check(o) || PyBytes_Check(o)) {
    return {Item::Kind::Tensor, o, 0, index_of_data(o)};
  }
  throw IndexError(
      str("only integers, slices (`:`), ellipsis (`...`), None, and tensors of integers or bools "
          "are indices, not ",
          type_name(o)));
}

int64_t dims_covered(const Item& item) {
  switch (item.kind) {
    case Item::Kind::Int:
    case Item::Kind::Slice:
      return 1;
    case Item::Kind::Tensor:
      return item.tensor.dtype() == kBool ? item.tensor.dim() : 1;
    default:
      return 0;
  }
}

// A list stands for a tuple where an item of it is itself an index.
bool is_tuple_of_indices(PyObject* index) {
  if (PyTuple_Check(index)) {
    return true;
  }
  if (!PyList_Check(index) || PyList_GET_SIZE(index) >= 32) {
    return false;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(index); i++) {
    PyObject* o = PyList_GET_ITEM(index, i);
    if (is_tensor(o) || PySlice_Check(o) || o == Py_None || o == Py_Ellipsis || is_nested(o)) {
      static bool warned = false;
      if (!PySlice_Check(o) && o != Py_None && o != Py_Ellipsis) {
        warn_once(warned,
                  "Using a non-tuple sequence for multidimensional indexing is deprecated: "
                  "use x[tuple(seq)] instead of x[seq].");
      }
      return true;
    }
  }
  return false;
}

// An index while it is read: only the lengths of the tensor are needed. In a trace bounds stay as
// they are written, for the program may run with other sizes.
struct Reading {
  const Tensor& self;
  Index& out;
  int64_t specified = 0;  // dimensions of self that items stand for
  int64_t from = 0;       // dimension of self
  int64_t to = 0;         // dimension of the result so far

  int64_t size(int64_t dim) const { return self.sizes()[static_cast<size_t>(dim)]; }

  void select(int64_t place) {
    const int64_t size = this->size(from);
    RL_CHECK_INDEX(place >= -size && place < size, "index ", place,
                   " is out of bounds for dimension ", from, " with size ", size);
    const bool counts_back = place < 0 && current_trace == nullptr;
    out.add({Step::Kind::Select, to, counts_back ? place + size : place, 0, 1});
    from++;
  }

  void slice(PyObject* bounds) {
    const int64_t size = this->size(from);
    Py_ssize_t start, stop, step;
    check(PySlice_Unpack(bounds, &start, &stop, &step));
    RL_CHECK_VALUE(step > 0, "step must be greater than zero: slice step must be positive");
    if (current_trace == nullptr) {
      PySlice_AdjustIndices(size, &start, &stop, step);
    }
    const bool is_all = stop == (current_trace == nullptr ? size : PY_SSIZE_T_MAX);
    if (start != 0 || !is_all || step != 1) {
      out.add({Step::Kind::Slice, to, start, stop, step});
    }
    from++;
    to++;
  }

  void unsqueeze() {
    out.add({Step::Kind::Unsqueeze, to, 0, 0, 1});
    to++;
  }

  void skip() {
    from += self.dim() - specified;
    to += self.dim() - specified;
    specified = self.dim();  // a second ellipsis stands for nothing
  }

  // A new dimension of one element, of which those that `picked` says are taken.
  void pick(Tensor picked) {
    out.tensors.push_back({to, 1, std::move(picked)});
    unsqueeze();
  }

  void pick_if(bool taken) {
    Tensor picked = make_empty({taken ? 1 : 0}, kInt64, self.device());
    if (taken) {
      fill_raw(picked, Scalar(int64_t{0}));
    }
    pick(std::move(picked));
  }

  void gather(const Tensor& index, int64_t dims) {
    if (dims == 0) {  // a 0-d mask works as a bool does
      return pick(rushlight::reshape(index, {1}));
    }
    for (int64_t d = 0; d < dims && index.dtype() == kBool; d++) {
      RL_CHECK_INDEX(index.sizes()[static_cast<size_t>(d)] == size(from + d),
                     "The shape of the mask ", index.sizes(), " does not match dimension ",
                     from + d, " of the indexed tensor, whose shape is ", self.sizes());
    }
    out.tensors.push_back({to, dims, index});
    from += dims;
    to += dims;
  }

  void read(const Item& item) {
    switch (item.kind) {
      case Item::Kind::Int:
        return select(item.value);
      case Item::Kind::Slice:
        return slice(item.object);
      case Item::Kind::None:
        return unsqueeze();
      case Item::Kind::Ellipsis:
        return skip();
      case Item::Kind::Bool:
        return pick_if(item.value != 0);
      case Item::Kind::Tensor:
        return gather(item.tensor, dims_covered(item));
    }
  }
};

void read_index(const Tensor& self, PyObject* index, Index& out) {
  Object held;
  if (!PyTuple_Check(index) && is_tuple_of_indices(index)) {
    held = Object::check(PySequence_Tuple(index));
    index = held.get();
  }
  PyObject* const single[] = {index};
  const Items tuple = items_of(index);
  const bool many = PyTuple_Check(index);
  PyObject* const* objects = many ? tuple.data : single;
  const Py_ssize_t n = many ? tuple.size : 1;

  // Most indices are short: these stand on the stack.
  constexpr Py_ssize_t few = 6;
  Item short_list[few];
  std::vector<Item> long_list(static_cast<size_t>(n > few ? n : 0));
  Item* items = n > few ? long_list.data() : short_list;
  Reading reading{self, out};
  for (Py_ssize_t i = 0; i < n; i++) {
    items[i] = read_item(objects[i]);
    reading.specified += dims_covered(items[i]);
  }
  const int64_t specified = reading.specified;
  RL_CHECK_INDEX(
      specified <= self.dim() || self.dim() != 0 || items[0].kind != Item::Kind::Int || n != 1,
      "invalid index of a 0-dim tensor, which has no dimension to index. tensor.item() gives its "
      "number");
  RL_CHECK_INDEX(specified <= self.dim(), "too many indices for tensor of dimension ", self.dim());
  for (Py_ssize_t i = 0; i < n; i++) {
    reading.read(items[i]);
  }
}

// ---- applying ----

Tensor apply_step(const Tensor& t, const Step& s) {
  switch (s.kind) {
    case Step::Kind::Select:
      return rushlight::select(t, s.dim, s.start);
    case Step::Kind::Slice:
      return rushlight::slice(t, s.dim, s.start, s.stop, s.step);
    default:
      return rushlight::unsqueeze(t, s.dim);
  }
}

// All steps as one view.
Tensor apply_geometry(const Tensor& t, const Index& index) {
  DimVector sizes = t.sizes();
  DimVector strides = t.strides();
  int64_t offset = t.storage_offset();
  for (size_t i = 0; i < index.count; i++) {
    const Step& s = index.steps[i];
    const auto d = static_cast<size_t>(s.dim);
    switch (s.kind) {
      case Step::Kind::Select:
        offset += s.start * strides[d];
        sizes.erase(d);
        strides.erase(d);
        break;
      case Step::Kind::Slice: {
        const int64_t length = s.stop > s.start ? (s.stop - s.start + s.step - 1) / s.step : 0;
        offset += length > 0 ? s.start * strides[d] : 0;
        sizes[d] = length;
        strides[d] *= s.step;
        break;
      }
      case Step::Kind::Unsqueeze:
        strides.insert(d, d < sizes.size() ? sizes[d] * strides[d] : 1);
        sizes.insert(d, 1);
        break;
    }
  }
  return rushlight::as_strided(t, sizes, strides, offset);
}

// The view that the steps make; `self` itself where there are none.
Tensor apply_steps(const Tensor& self, const Index& index, bool record) {
  if (index.count == 0) {
    return self;
  }
  if (index.count == 1) {
    return apply_step(self, index.steps[0]);
  }
  if (!record && tls.upper() == nullptr && !is_sparse(self)) {
    return apply_geometry(self, index);
  }
  Tensor t = apply_step(self, index.steps[0]);
  for (size_t i = 1; i < index.count; i++) {
    t = apply_step(t, index.steps[i]);
  }
  return t;
}

// The list that the ops take: a place for each dimension before the last index tensor, one for all
// that a mask covers.
std::vector<std::optional<Tensor>> index_list(const Index& index, Device device) {
  std::vector<std::optional<Tensor>> list;
  int64_t d = 0;
  for (const IndexTensor& t : index.tensors) {
    for (; d < t.dim; d++) {
      list.emplace_back();
    }
    list.emplace_back(t.tensor.device() == device
                          ? t.tensor
                          : rushlight::to(t.tensor, std::optional<Device>(device)));
    d += t.covers;
  }
  return list;
}

PyObject* get_item(PyObject* self, PyObject* key) {
  return translate_errors([&]() -> PyObject* {
    if (RL_UNLIKELY(mode_active() || overrides(self) || overrides(key))) {
      return call_torch_function_method("__getitem__", {self, key});
    }
    const Tensor& t = unwrap(self);
    if (PyLong_CheckExact(key) && t.dim() != 0) {
      const int64_t i = to_int(key);
      const int64_t size = t.sizes()[0];
      RL_CHECK_INDEX(i >= -size && i < size, "index ", i,
                     " is out of bounds for dimension 0 with size ", size);
      return wrap(rushlight::select(t, 0, i));
    }
    Index index;
    read_index(t, key, index);
    Tensor view = apply_steps(t, index, forward::is_differentiated(t));
    if (index.tensors.empty()) {
      return wrap(index.count == 0 ? rushlight::alias(t) : std::move(view));
    }
    const std::vector<std::optional<Tensor>> list = index_list(index, t.device());
    Tensor result;
    {
      const WithoutGil no_gil(t.numel() >= 16384);
      result = rushlight::index(view, list);
    }
    return wrap(std::move(result));
  });
}

// Leading dimensions of size 1 are dropped as far as the value has more dimensions than its place.
Tensor without_leading_ones(const Tensor& value, int64_t dims) {
  size_t drop = 0;
  while (value.dim() - static_cast<int64_t>(drop) > dims && value.sizes()[drop] == 1) {
    drop++;
  }
  return drop == 0
             ? value
             : rushlight::reshape(value, value.sizes().slice(drop, value.sizes().size() - drop));
}

// As copy_ or, of one number, fill_: other dtypes are converted.
void write(const Tensor& view, const Tensor& value, bool is_plain_number) {
  const WithoutGil no_gil(view.numel() >= 16384);
  if (is_plain_number || (value.dim() == 0 && value.is_cpu())) {
    if (!view.is_meta() && !is_special(view)) {  // as by copy_; fill_ itself takes them
      check_no_internal_overlap("copy_", view);
    }
    rushlight::fill_(view, value);
  } else {
    rushlight::copy_(view, without_leading_ones(value, view.dim()));
  }
}

void assign(const Tensor& t, PyObject* key, const Tensor& value, bool is_plain_number) {
  if (PyBool_Check(key)) {  // all of it or nothing
    if (key == Py_True) {
      write(rushlight::unsqueeze(t, 0), value, is_plain_number);
    } else if (is_plain_number) {
      value.item().check_fits(t.dtype());
    }
    return;
  }
  Index index;
  read_index(t, key, index);
  const bool record = forward::is_differentiated(t, value);
  const Tensor view = apply_steps(t, index, record);
  if (index.tensors.empty()) {
    write(view, value, is_plain_number);
    return;
  }
  const std::vector<std::optional<Tensor>> list = index_list(index, t.device());
  // A number takes the dtype of the tensor, as one element does behind a mask, as by masked_fill;
  // other tensors have to have it.
  const bool fills = !is_special(value) && !value.is_meta() && value.numel() == 1 &&
                     index.tensors.size() == 1 && index.tensors[0].tensor.dtype() == kBool;
  if (is_plain_number || (fills && value.dtype() != t.dtype())) {
    value.item().check_fits(t.dtype());
  }
  const ScalarType dtype = is_plain_number || fills ? t.dtype() : value.dtype();
  const Tensor cast = value.dtype() == dtype && value.device() == t.device()
                          ? value
                          : rushlight::to(value, std::optional<Device>(t.device()),
                                          std::optional<ScalarType>(dtype));
  const WithoutGil no_gil(t.numel() >= 16384);
  rushlight::index_put_(view, list, cast);
}

int set_item(PyObject* self, PyObject* key, PyObject* value) {
  return translate_errors_to_status([&] {
    if (value == nullptr) {
      raise(PyExc_TypeError, "Tensor does not support deleting items");
    }
    if (RL_UNLIKELY(mode_active() || overrides(self) || overrides(key) || overrides(value))) {
      Py_DECREF(check(call_torch_function_method("__setitem__", {self, key, value})));
      return;
    }
    const Tensor& t = unwrap(self);
    if (is_tensor(value)) {
      assign(t, key, unwrap(value), false);
    } else if (is_number(value)) {
      assign(t, key, make_number(to_scalar(value)), true);
    } else {
      raise(PyExc_TypeError, str("can't assign a ", type_name(value), " to a torch.",
                                 enum_name(t.dtype()), "Tensor"));
    }
  });
}

Py_ssize_t length(PyObject* self) { return tensor_base_type.tp_as_sequence->sq_length(self); }

PyMappingMethods mapping_slots = {
    .mp_length = length, .mp_subscript = get_item, .mp_ass_subscript = set_item};

}  // namespace

void add_indexing() { tensor_base_type.tp_as_mapping = &mapping_slots; }

}  // namespace rushlight::python
