"""Functions that saved files name: they rebuild objects while unpickling."""

from rushlight import _C


def _rebuild_tensor(storage, dtype, offset, size, stride, requires_grad):
    return _C._tensor_on(storage, dtype, offset, size, stride).requires_grad_(requires_grad)


def _rebuild_subclass(kind, parts, state):
    from rushlight import Tensor

    tensor = _rebuild_tensor(*parts)
    if kind is not Tensor:
        tensor = tensor.as_subclass(kind)
    vars(tensor).update(state)
    return tensor


def _rebuild_generator(device, state):
    return _C.Generator(device).set_state(state)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    from rushlight.nn import Parameter

    return Parameter(data, requires_grad)  # hooks are never saved: the argument is an empty dict


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    parameter = _rebuild_parameter(data, requires_grad, backward_hooks)
    vars(parameter).update(state)
    return parameter
