"""Variable, which has been Tensor's other name since they became one."""

import rushlight
from rushlight import _C

__all__ = ["Variable"]


class _VariableMeta(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, _C.TensorBase)


class Variable(metaclass=_VariableMeta):
    """`Variable(data, requires_grad=False)` is a tensor on the same memory."""

    def __new__(cls, data=None, requires_grad=False, volatile=None):
        tensor = rushlight.empty(0) if data is None else data.detach()
        return tensor.requires_grad_() if requires_grad else tensor
