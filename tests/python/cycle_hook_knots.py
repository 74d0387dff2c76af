"""More knots: by hooks, metadata of nodes, what is saved, and modules."""

import types
from collections import OrderedDict

import rushlight as torch
from rushlight.autograd import graph
from rushlight.utils.checkpoint import checkpoint
from tests.python.cycle_knots import KNOTS, Layer, Sub, Tied, function_with, knot, leaf

__all__ = ["KNOTS"]


# ---- hooks of tensors ----


@knot
def hook_knows_its_result(w):
    y = leaf() * 2
    y.register_hook(lambda g: g if (y, w) else None)
    return y


@knot
def hook_knows_a_later_result(w):
    y = leaf() * 2
    z = y.sin()
    y.register_hook(function_with(z=z, w=w))
    return z


@knot
def hook_knows_its_leaf(w):
    x = leaf()
    x.register_hook(lambda g: g if (x, w) else None)
    return x


@knot
def hook_of_a_leaf_knows_a_result(w):
    x = leaf()
    x.register_hook(function_with(y=(x * x).sum(), w=w))
    return (x * 2).sum()


@knot
def hook_knows_its_handle(w):
    y = leaf() * 2
    state = {"y": y, "w": w}
    state["handle"] = y.register_hook(function_with(state=state))
    return y


@knot
def bound_method_as_a_hook(w):
    owner = types.SimpleNamespace(y=leaf() * 2, w=w)
    owner.y.register_hook(types.MethodType(lambda self, g: None, owner))
    return owner.y


@knot
def hooks_of_two_outputs(w):
    a, b = (leaf() * 2)[:2].unbind()
    a.register_hook(function_with(other=b, w=w))
    b.register_hook(function_with(other=a))
    return a


@knot
def replaced_dict_of_hooks(w):
    y = leaf() * 2
    y._backward_hooks = OrderedDict({0: function_with(y=y, w=w)})
    return y


@knot
def hook_of_a_tensor_that_retains(w):
    y = leaf() * 2
    y.retain_grad()
    y.register_hook(function_with(y=y, w=w))
    return y


@knot
def hook_of_a_subclass(w):
    y = torch.ones(3).as_subclass(Sub).requires_grad_() * 2
    y.register_hook(function_with(y=y, w=w))
    return y


@knot
def hook_of_a_view(w):
    base = leaf() * 2
    view = base[1:]
    view.register_hook(function_with(base=base, view=view, w=w))
    return view


@knot
def hook_after_accumulation_knows_its_leaf(w):
    x = leaf()
    x.register_post_accumulate_grad_hook(function_with(x=x, w=w))
    return x


@knot
def hook_after_accumulation_knows_a_result(w):
    x = leaf()
    y = (x * x).sum()
    x.register_post_accumulate_grad_hook(function_with(y=y, w=w))
    return y


@knot
def multi_grad_hook(w):
    x = leaf()
    a, b = x * 2, x * 3
    graph.register_multi_grad_hook([a, b], function_with(both=(a, b), w=w))
    return a + b


@knot
def multi_grad_hook_for_any(w):
    x = leaf()
    a, b = x * 2, x * 3
    graph.register_multi_grad_hook([a, b], function_with(both=(a, b), w=w), mode="any")
    return a + b


# ---- hooks of nodes, metadata ----


@knot
def hook_of_a_node_knows_a_result(w):
    y = leaf() * 2
    y.grad_fn.register_hook(function_with(y=y, w=w))
    return y


@knot
def hook_of_a_node_knows_the_node(w):
    y = leaf() * 2
    y.grad_fn.register_hook(function_with(node=y.grad_fn, w=w))
    return y


@knot
def hook_before_a_node_knows_the_node(w):
    y = leaf() * 2
    y.grad_fn.register_prehook(function_with(node=y.grad_fn, w=w))
    return y


@knot
def hook_of_an_inner_node_knows_the_last(w):
    y = leaf() * 2
    z = y.sin().cos()
    y.grad_fn.register_prehook(function_with(node=z.grad_fn, w=w))
    return z


@knot
def hook_of_an_accumulator(w):
    y = leaf() * 2
    accumulator = y.grad_fn.next_functions[0][0]
    accumulator.register_hook(function_with(accumulator=accumulator, y=y, w=w))
    return y


@knot
def hook_of_a_context(w):
    y = Tied.apply(leaf(), lambda *_: None)
    y.grad_fn.register_hook(function_with(y=y, w=w))
    return y


@knot
def metadata_has_a_result(w):
    y = leaf() * 2
    y.grad_fn.metadata.update(y=y, w=w)
    return y


@knot
def metadata_has_the_node(w):
    y = leaf() * 2
    y.grad_fn.metadata.update(node=y.grad_fn, w=w)
    return y


@knot
def metadata_has_an_edge(w):
    y = leaf() * 2
    z = y * 3
    y.grad_fn.metadata.update(edge=graph.get_gradient_edge(z), w=w)
    return z


@knot
def metadata_has_a_saved_tensor(w):
    y = leaf().sin()
    y.grad_fn.metadata.update(raw=y.grad_fn._raw_saved_self, w=w)
    return y


# ---- what is saved ----


@knot
def packed_knows_the_result(w):
    box = [w]

    def pack(t):
        return t.detach(), box

    with graph.saved_tensors_hooks(pack, lambda packed: packed[0]):
        y = leaf().sin()
    box.append(y)
    return y


@knot
def unpack_knows_the_result(w):
    box = [w]
    with graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: (box, t)[1]):
        y = leaf().sin()
    box.append(y)
    return y


@knot
def packed_by_hand(w):
    y = leaf().sin()
    y.grad_fn._raw_saved_self.register_hooks(lambda t: (t, y, w), lambda packed: packed[0])
    return y


@knot
def saved_on_the_cpu(w):
    x = leaf()
    with graph.save_on_cpu():
        y = x.sin()
    x.y, x.w = y, w
    return y


@knot
def checkpoint_knows_its_result(w):
    box = [w]
    y = checkpoint(lambda x: (box, x.sin())[1], leaf() * 2, use_reentrant=False)
    box.append(y)
    return y


@knot
def checkpoint_that_enters_again(w):
    box = [w]
    y = checkpoint(lambda x: (box, x.sin())[1], leaf() * 2, use_reentrant=True)
    box.append(y)
    return y


# ---- modules ----


@knot
def module_keeps_its_output(w):
    layer = Layer()
    layer.out, layer.w = layer(torch.ones(3)), w
    layer.weight.layer = layer
    return layer.out


@knot
def module_hook_knows_the_module(w):
    layer = Layer()
    layer.register_full_backward_hook(function_with(layer=layer, w=w))
    return layer(leaf())


@knot
def forward_hook_keeps_the_output(w):
    layer = Layer()
    layer.w = w
    layer.register_forward_hook(lambda m, _, out: setattr(m.weight, "out", (m, out)))
    return layer(torch.ones(3))


@knot
def parameter_hook_is_a_method_of_its_module(w):
    layer = Layer()
    layer.w = w
    layer.weight.register_hook(layer.hook)
    return layer(torch.ones(3))


@knot
def module_with_hooks_of_all_kinds(w):
    layer = Layer()
    layer.w = w
    layer.register_full_backward_pre_hook(function_with(layer=layer))
    layer.register_forward_pre_hook(function_with(layer=layer))
    layer.weight.register_post_accumulate_grad_hook(layer.hook)
    out = layer(leaf())
    layer.out = out
    return out
