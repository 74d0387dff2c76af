// The objects of quantised layers that programs hold, classes.quantized: what they compute is
// Python (python/rushlight/ao/nn/quantized/_programs.py).
#include "python/packed_layers.h"

#include <rushlight/custom_class.h>
#include <rushlight/schema.h>

#include "kernels/qparams.h"
#include "python/common.h"

namespace rushlight::python {

namespace {

struct PackedLayer : CustomClassHolder {
  PackedLayer(Tensor weight, std::optional<Tensor> bias, IValue layer)
      : weight(std::move(weight)), bias(std::move(bias)), layer(std::move(layer)) {}
  Tensor weight;
  std::optional<Tensor> bias;
  IValue layer;  // an object of Python
};
struct PackedLinear final : PackedLayer {
  using PackedLayer::PackedLayer;
};
struct PackedConv2d final : PackedLayer {
  using PackedLayer::PackedLayer;
};
struct PackedConv3d final : PackedLayer {
  using PackedLayer::PackedLayer;
};

// The parameters of a recurrent layer in one direction, as archives have them: the kind of weights,
// biases, numbers, and the packed weights of inputs and of states.
using CellState = std::tuple<std::string, std::vector<Tensor>, std::vector<double>,
                             std::vector<int64_t>, std::vector<intrusive_ptr<PackedLinear>>>;
struct PackedCell final : CustomClassHolder {
  explicit PackedCell(CellState state) : state(std::move(state)) {}
  CellState state;
};

// A packed weight from what archives have of it: (weight, bias).
intrusive_ptr<PackedLinear> linear_from(const IValue& state) {
  RL_CHECK(state.isTuple() && state.items().size() == 2,
           "a packed linear layer is restored from a weight and a bias");
  const OpInfo* const pack = find_op_named("quantized::linear_prepack");
  RL_CHECK(pack != nullptr, "the ops of quantised layers have not been imported");
  const std::vector<Value> made = call(*pack, {state.items()[0], state.items()[1]});
  return made.at(0).to<intrusive_ptr<PackedLinear>>();
}

template <class T>
class_<T> bind(const char* name) {
  using Self = const intrusive_ptr<T>&;
  class_<T> out("quantized", name);
  out.def(init<Tensor, std::optional<Tensor>, IValue>())
      .def("unpack", [](Self self) { return std::make_tuple(self->weight, self->bias); })
      .def_property("layer", [](Self self) { return self->layer; });
  return out;
}

// _choose_qparams(low, high, first, last, symmetric, reduce_range, single): (scale, zero point).
PyObject* qparams(PyObject*, PyObject* args) {
  return translate_errors([&] {
    double low = 0;
    double high = 0;
    long long first = 0;
    long long last = 0;
    int symmetric = 0;
    int reduce_range = 0;
    int single = 0;
    if (PyArg_ParseTuple(args, "ddLLppp", &low, &high, &first, &last, &symmetric, &reduce_range,
                         &single) == 0) {
      throw PythonError();
    }
    const Qparams q = choose_qparams(low, high,
                                     {.first = first,
                                      .last = last,
                                      .symmetric = symmetric != 0,
                                      .reduce_range = reduce_range != 0,
                                      .single = single != 0});
    return check(Py_BuildValue("dL", q.scale, static_cast<long long>(q.zero_point)));
  });
}

PyMethodDef functions[] = {
    {"_choose_qparams", qparams, METH_VARARGS, "Scale and zero point of codes for a range."}, {}};

}  // namespace

void init_packed_layers(PyObject* module) {
  check(PyModule_AddFunctions(module, functions));
  bind<PackedLinear>("LinearPackedParamsBase")
      .def_pickle(
          [](const intrusive_ptr<PackedLinear>& self) {
            return std::make_tuple(self->weight, self->bias);
          },
          linear_from);
  class_<PackedCell>("rnn", "CellParamsBase")
      .def(init<CellState>())
      .def_property("state", [](const intrusive_ptr<PackedCell>& self) { return self->state; })
      .def_pickle([](const intrusive_ptr<PackedCell>& self) { return self->state; },
                  [](CellState state) { return make_intrusive<PackedCell>(std::move(state)); });
  bind<PackedConv2d>("Conv2dPackedParamsBase");
  bind<PackedConv3d>("Conv3dPackedParamsBase");
}

}  // namespace rushlight::python
