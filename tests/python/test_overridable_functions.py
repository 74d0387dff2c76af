"""Which functions `__torch_function__` is offered, those of programs among them."""

import types

import rushlight as torch


class Own:
    """No tensor, but it answers as one."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, types


def own_function(a, b=None):
    if torch.overrides.has_torch_function((a, b)):
        return torch.overrides.handle_torch_function(own_function, (a, b), a, b=b)
    return "plain"


def test_functions_of_ones_own_can_be_overridden():
    o = torch.overrides
    assert own_function(1) == "plain" and own_function(Own())[0] is own_function
    assert o.has_torch_function_unary(Own()) and not o.has_torch_function_unary(torch.ones(1))
    assert o.has_torch_function_variadic(1, Own()) and not o.has_torch_function_variadic(1, 2)
    assert o.is_tensor_like(Own()) and not o.is_tensor_like(3)
    assert o.is_tensor_method_or_property(torch.Tensor.add)
    assert not o.is_tensor_method_or_property(torch.add)
    assert torch.add in o.get_overridable_functions()[torch]
    testing = o.get_testing_overrides()
    assert callable(testing[torch.add])

    @o.wrap_torch_function(lambda x: (x,))
    def wrapped(x):
        return "plain"

    assert wrapped(3) == "plain" and wrapped(Own())[1] == (Own,)
    with o.enable_reentrant_dispatch(), torch._C.DisableTorchFunctionSubclass():
        assert torch.ones(1).add(1).item() == 2


def test_questions_initialisations_and_properties_are_offered():
    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "seen"

    x = torch.ones(2, 2).as_subclass(Seen)
    testing = torch.overrides.get_testing_overrides()
    calls = {
        torch.is_complex: (),
        torch.is_floating_point: (),
        torch.numel: (),
        torch.nn.init.constant_: (1,),
        torch.nn.init.normal_: (),
        torch.nn.init.uniform_: (),
        torch.nn.init.kaiming_uniform_: (),
    }
    for function, rest in calls.items():
        assert function in testing and function(x, *rest) == "seen", function
    for name in dir(torch.Tensor):
        value = getattr(torch.Tensor, name)
        if isinstance(value, (types.GetSetDescriptorType, property)) and not name.startswith("_"):
            assert getattr(x, name) == "seen", name


def test_overloads_know_their_op():
    add = torch.ops.aten.add
    assert add.Tensor.overloadpacket is add.Tensor._overloadpacket is add
