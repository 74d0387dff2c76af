"""What the rules of the table mean: autocast, forward derivatives and batches, carried out by Python on one call.

It is the specification of what C++ does with the keys `autocast=` and `batch=` (docs/adding-an-op.md);
test_rules.py holds every op to it, and to what tangents are. A call is an op and its arguments by their names in the schema.
"""

import collections.abc

import rushlight
from gen import rules, table
from rushlight.autograd import forward_ad
from tests.ops.harness import bound, default_of, function_of, tensors_of
from tests.ops.rule_functions import FUNCTIONS

Tensor = rushlight.Tensor


def call(op, values):
    """Runs an op on arguments by name; those that have their default are left out."""
    if op.inplace_only:  # what is written is a copy
        values = values | {"self": values["self"].clone()}
    given, named, gap = [], {}, False
    for arg in op.args:
        value = values.get(arg.name)
        if arg.type.base == "options":
            named |= value or {}
            continue
        default = arg.default is not None and value is default_of(arg)
        if arg.keyword_only or gap or default:
            gap = True
            if not default:
                named[arg.name] = value
        else:
            given.append(value)
    return function_of(rushlight, op)(*given, **named)


def results_of(op, value):
    """Results by name; of a list, the list."""
    names = op.result_names
    return {names[0]: value} if len(names) == 1 else dict(zip(names, value, strict=True))


class Names(collections.abc.Mapping):
    """What an expression sees: arguments, results, tangents, the functions of rule_functions.py and ops."""

    def __init__(self, values):
        self._values = {"true": True, "false": False, "none": None} | values

    def __getitem__(self, name):
        if name in self._values:
            return self._values[name]
        if name in FUNCTIONS:
            return FUNCTIONS[name]
        ops = [op for op in table.load() if op.name == name]
        fits = lambda op, n: sum(a.default is None for a in op.args) <= n <= len(op.args)

        def run(*args):
            op = next(op for op in ops if fits(op, len(args)))
            return call(op, bound(op, args, {}))

        return run

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)


def evaluate(text, values):
    return eval(text, {"__builtins__": {}}, Names(values))


# ---- autocast ----


def cast(op, values, device="cpu", dtype=rushlight.bfloat16):
    """The arguments of a call as autocast gives them to the op."""
    rule = rules.autocast(op).get(device)
    floats = [t.dtype for t in tensors_of(list(values.values())) if t.dtype.is_floating_point]
    if rule is None or not floats:
        return values
    if rule == "lower":
        to = dtype
    elif rule == "float32":
        to = rushlight.float32
    else:  # the widest of those that are there
        to = floats[0]
        for other in floats:
            to = rushlight.promote_types(to, other)

    def changed(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(changed, value))
        fits = (
            isinstance(value, Tensor)
            and value.dtype.is_floating_point
            and value.dtype != rushlight.float64
        )
        wanted = fits and (
            rule != "float32" or value.dtype in (rushlight.float16, rushlight.bfloat16)
        )
        return value.to(to) if wanted else value

    return {name: changed(value) for name, value in values.items()}


# ---- forward derivatives ----


def unpacked(value):
    """Tangents, zeros where there are none; of a list, a list."""
    if isinstance(value, (list, tuple)):
        return [unpacked(v) for v in value]
    tangent = forward_ad.unpack_dual(value).tangent
    return rushlight.zeros_like(value) if tangent is None else tangent


def duals(values, tangents):
    """The arguments, some with tangents; inside a dual level."""

    def dual(value, t):
        if isinstance(value, (list, tuple)):
            return [dual(v, u) for v, u in zip(value, t, strict=True)]
        return forward_ad.make_dual(value, t)

    return values | {n: dual(values[n], t) for n, t in tangents.items()}


def tangent(op, values, tangents):
    """The tangents of an op's differentiable results, by name, from those of arguments."""
    with forward_ad.dual_level():
        out = results_of(op, call(op, duals(values, tangents)))
        return {n: unpacked(out[n]) for n in rules.differentiable(op)[1]}


def tangent_in_place(op, values, tangents):
    """The tangent of `self` once the op has written it."""
    with forward_ad.dual_level():
        given = duals(values, tangents)
        given["self"] = given["self"].clone()
        rest = {a.name: given[a.name] for a in op.args if a.name in given and a.name != "self"}
        if (method := getattr(given["self"], op.inplace_name, None)) is not None:
            method(**rest)
        else:
            space = rushlight.ops.rushlight if op.own else rushlight.ops.aten
            getattr(space, op.inplace_name)(given["self"], **rest)
        return unpacked(given["self"])


def twice(op, values, tangents):
    """The same as the derivative of the gradient by what is given to it."""
    everything = results_of(op, call(op, values))
    results = {n: everything[n] for n in rules.differentiable(op)[1]}
    inputs = {n: [t.detach().requires_grad_() for t in tensors_of([values[n]])] for n in tangents}
    given = {n: v if isinstance(values[n], (list, tuple)) else v[0] for n, v in inputs.items()}
    flat = [t for v in inputs.values() for t in v]
    with rushlight.enable_grad():
        out = results_of(op, call(op, values | given))
        flat_out = [t for n in results for t in tensors_of([out[n]])]
        wanted = [t for t in flat_out if t.requires_grad]
        blank = [rushlight.zeros_like(t).requires_grad_() for t in wanted]
        back = rushlight.autograd.grad(wanted, flat, blank, create_graph=True, allow_unused=True)
        pairs = zip(back, tensors_of(list(tangents.values())), strict=True)
        pairs = [(g, t) for g, t in pairs if g is not None and g.requires_grad]
        found = [None] * len(wanted)
        if pairs:
            seeds = [t for _, t in pairs]
            found = rushlight.autograd.grad([g for g, _ in pairs], blank, seeds, allow_unused=True)
    given = iter(found)
    found = [(next(given) if t.requires_grad else None) for t in flat_out]
    found = iter(
        rushlight.zeros_like(t) if g is None else g for g, t in zip(found, flat_out, strict=True)
    )
    return {
        n: mapped(lambda _: next(found), list(v) if isinstance(v, tuple) else v)
        for n, v in results.items()
    }


# ---- batches ----


def mapped(change, value):
    """A change of the tensors of an argument, which may be a list."""
    if isinstance(value, (list, tuple)):
        return [mapped(change, v) for v in value]
    return change(value) if isinstance(value, Tensor) else value


def slices(op, values, names, place, batch):
    """What vmap has to give: the op on one slice after the other."""
    each = []
    for i in range(batch):
        one = lambda t, i=i: t.select(min(place, t.dim() - 1), i)
        each.append(call(op, {n: mapped(one, v) if n in names else v for n, v in values.items()}))
    return stacked(each)


def stacked(each):
    if isinstance(each[0], (list, tuple)):
        return [stacked(results) for results in zip(*each, strict=True)]
    return rushlight.stack(each)


def by_vmap(op, values, names, place):
    given = {n: values[n] for n in names}
    dims = mapped(lambda t: min(place, t.dim() - 1), list(given.values()))
    whole = lambda v: v if isinstance(v, (int, list)) else None
    dims = dict(zip(given, map(whole, dims), strict=True))
    return rushlight.vmap(lambda batched: call(op, values | batched), in_dims=(dims,))(given)
