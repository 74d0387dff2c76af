"""Functions that saved files name: they rebuild objects while unpickling."""


def _rebuild_parameter(data, requires_grad, backward_hooks):
    from rushlight.nn import Parameter

    return Parameter(data, requires_grad)  # hooks are never saved: the argument is an empty dict


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    parameter = _rebuild_parameter(data, requires_grad, backward_hooks)
    vars(parameter).update(state)
    return parameter
