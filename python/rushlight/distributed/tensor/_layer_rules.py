"""The rules of distributed tensors for products and layers: which dims go together, as einsum's
letters. `_rules.py` says what a rule is.
"""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.distributed.tensor._rules import _R, _partials, everywhere, rule
from rushlight.distributed.tensor._spec import (
    local_shape_and_offset,
)
from rushlight.distributed.tensor.placement_types import Partial, Shard

# ---- products ----


def _letters(inputs, output, contracted):
    """Options of a product: each letter's dims are cut together; a contracted one leaves sums."""
    options = []
    for letter in dict.fromkeys("".join(inputs)):
        if letter in contracted:
            placed = tuple(
                Shard(dims.index(letter)) if letter in dims else Partial() for dims in inputs
            )
            options.append((placed, (Partial(),)))
        else:
            placed = tuple(Shard(dims.index(letter)) if letter in dims else _R for dims in inputs)
            options.append((placed, (Shard(output.index(letter)),)))
    return options


_PRODUCTS = {
    "mm": "mk,kn->mn",
    "bmm": "bmk,bkn->bmn",
    "mv": "mk,k->m",
    "dot": "k,k->",
    "outer": "m,n->mn",
}


@rule(" ".join(_PRODUCTS))
def _product(call):
    inputs, _, output = _PRODUCTS[call.name].partition("->")
    names = inputs.split(",")
    options = _letters(names, output, set("".join(names)) - set(output))
    # A factor that is yet to be summed leaves a product that is.
    options += [((Partial(), _R), (Partial(),)), ((_R, Partial()), (Partial(),))]
    return [*options, everywhere(call)]


@rule("addmm baddbmm addmv")
def _added_product(call):
    """A product and what it is added to, which is broadcast."""
    name = {"addmm": "mm", "baddbmm": "bmm", "addmv": "mv"}[call.name]
    inputs, _, output = _PRODUCTS[name].partition("->")
    own = call.tensors[0]
    shape = call.metas()[0].shape
    options = []
    for placed, (result,) in _letters(inputs.split(","), output, {"k"}):
        first: Any = result
        if isinstance(result, Shard):
            d = result.dim - len(shape) + own.ndim
            first = Shard(d) if d >= 0 and own.shape[d] == shape[result.dim] else _R
        options.append(((first, *placed), (result,)))
    return [*options, everywhere(call)]


@rule("linear")
def _linear(call):
    x, weight = call.tensors[:2]
    if weight.ndim != 2 or call.args[0] is not _source(call, 0):
        return None
    batch = "abcdefgh"[: x.ndim - 1]
    inputs = [batch + "k", "nk", "n"][: len(call.tensors)]
    return [*_letters(inputs, batch + "n", {"k"}), everywhere(call)]


def _source(call, k):
    """The argument at a place, where it is a tensor."""
    return call.args[k] if isinstance(call.args[k], Tensor) else None


@rule("_matmul matmul")
def _matmul(call):
    a, b = call.tensors[:2]
    if a.ndim < 2 or b.ndim < 2 or len(call.tensors) != 2:
        return None
    dims = max(a.ndim, b.ndim) - 2
    shape = call.metas()[0].shape
    batch = "abcdefgh"[:dims]

    def letters_of(t, last):
        own = t.ndim - 2
        letters = batch[dims - own :]
        # A broadcast dim has no letter, so that it stays whole.
        return (
            "".join(
                c if t.shape[i] == shape[dims - own + i] else c.upper()
                for i, c in enumerate(letters)
            )
            + last
        )

    names = [letters_of(a, "mk"), letters_of(b, "kn")]
    options = [
        option
        for option, letter in zip(
            _letters(names, batch + "mn" + batch.upper(), {"k"}),
            dict.fromkeys("".join(names)),
            strict=True,
        )
        if not letter.isupper()
    ]
    return [*options, everywhere(call)]


# ---- layers ----


def _batch(call, dims, results, summed=()):
    """Dims of the first argument along which everything is by itself.

    Tensors of its number of dims are cut, others whole; results in `summed` are sums over them.
    """
    first = call.tensors[0]
    options = []
    for d in dims:
        inputs = tuple(
            Shard(d) if t.ndim == first.ndim and t.shape[d] == first.shape[d] else _R
            for t in call.tensors
        )
        outputs = tuple(Partial() if k in summed else Shard(d) for k in range(results))
        options.append((inputs, outputs))
    return [*options, everywhere(call, results)]


@rule(
    "softmax log_softmax _softmax _log_softmax _softmax_backward_data _log_softmax_backward_data "
    "cumsum cumprod logcumsumexp cummax cummin sort topk flip roll kthvalue mode median glu"
)
def _along(call):
    """What goes along a dim and leaves the others to themselves."""
    first = call.tensors[0]
    dim = call.value("dim", call.value("dims"))
    if dim is None:
        return None
    dims = {d % max(first.ndim, 1) for d in ([dim] if isinstance(dim, int) else dim)}
    results = len(call.func._schema.returns)
    rest = [d for d in range(first.ndim) if d not in dims]
    if results and call.metas()[0] is not None and len(call.metas()[0].shape) != first.ndim:
        return None
    return _batch(call, rest, results)


@rule("native_layer_norm")
def _layer_norm(call):
    x = call.tensors[0]
    rows = range(x.ndim - len(call.value("normalized_shape")))
    return _batch(call, rows, 3)


@rule("native_layer_norm_backward")
def _layer_norm_backward(call):
    x = call.tensors[0]
    rows = range(x.ndim - len(call.value("normalized_shape")))
    return _batch(call, rows, 3, summed=(1, 2))


@rule("embedding")
def _embedding(call):
    """Rows by index: of a table that is cut by rows, those that are here, zeros for the others."""
    indices = call.tensors[1]
    options: list[Any] = [((_R, Shard(d)), (Shard(d),)) for d in range(indices.ndim)]
    options.append(((Shard(1), _R), (Shard(indices.ndim),)))
    options.append(((Shard(0), _R), (Partial(),)))

    call.runner = _rows_here
    return [*options, everywhere(call)]


def _rows_here(call, args, kwargs, mesh, targets, outputs):
    """Rows by index from this process's part of a table."""
    weight = call.tensors[0]
    here, (begin, _) = local_shape_and_offset(weight.shape, mesh, targets[0])
    if here[0] == weight.shape[0]:
        return call.func(*args, **kwargs)
    table, places = args[0], args[1] - begin
    outside = (places < 0) | (places >= here[0])
    if here[0] == 0:
        return table.new_zeros((*places.shape, here[1]))
    found = rushlight.nn.functional.embedding(places.masked_fill(outside, 0), table)
    return found.masked_fill(outside.unsqueeze(-1), 0)


@rule("embedding_dense_backward")
def _embedding_backward(call):
    grad, indices = call.tensors
    options: list[Any] = [((Shard(d), Shard(d)), (Partial(),)) for d in range(indices.ndim)]
    options.append(((Shard(grad.ndim - 1), _R), (Shard(1),)))
    options.append(((Partial(), _R), (Partial(),)))
    return [*options, everywhere(call)]


@rule("convolution")
def _convolution(call):
    inputs = (Shard(0), *(_R,) * (len(call.tensors) - 1))
    return [(inputs, (Shard(0),)), everywhere(call)]


@rule(
    "_max_pool _max_pool_values _max_pool_backward max_pool2d_with_indices avg_pool2d "
    "_adaptive_avg_pool2d"
)
def _pool(call):
    results = len(call.func._schema.returns)
    inputs = tuple(Shard(0) if t.ndim == call.tensors[0].ndim else _R for t in call.tensors)
    return [(inputs, (Shard(0),) * results), everywhere(call, results)]


@rule("cat stack")
def _cat(call):
    """Pieces along other dims."""
    first = call.tensors[0]
    dim = call.value("dim", 0)
    stacks = call.name == "stack"
    dim = dim % (first.ndim + stacks)
    if any(t.ndim != first.ndim for t in call.tensors):
        return None
    count = len(call.tensors)
    options: list[Any] = []
    for d in range(first.ndim):
        if stacks or d != dim:
            options.append(((Shard(d),) * count, (Shard(d + (stacks and d >= dim)),)))
    options += [((p,) * count, (p,)) for p in _partials(call) if type(p) is Partial]
    return [*options, everywhere(call)]
