"""What the rules of the table mean: autocast, forward derivatives and batches, carried out by Python on one call.

It is the specification of what C++ does with the keys `autocast=`, `jvp=` and `batch=` (docs/adding-an-op.md);
test_rules.py holds every op to it. A call is an op and its arguments by their names in the schema.
"""

import collections.abc

import rushlight
from gen import derivatives, rules, table
from tests.ops.harness import bound, default_of, function_of, tensors_of
from tests.ops.rule_functions import FUNCTIONS

Tensor = rushlight.Tensor
DIMS = ("dim", "dims", "dim0", "dim1", "dim2", "dimension")


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
    names = derivatives.result_names(op)
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


def zeros_of(value):
    return (
        [zeros_of(v) for v in value]
        if isinstance(value, (list, tuple))
        else rushlight.zeros_like(value)
    )


def number_like(t, result):
    """A tangent as a tangent of `result` has to be: its dtype, its size."""
    if t.dtype.is_complex and not result.dtype.is_complex:
        t = rushlight.real(t)
    return t.to(result.dtype).expand(result.shape)


def own_gradient(op, values, name, result, given):
    """The entry's `grad` for one argument, with `given` in the place of the gradient of one result."""
    x = values[name].detach()
    if given.dtype.is_complex and not x.dtype.is_complex:
        x = x.to(given.dtype)
    x.requires_grad_()
    with rushlight.enable_grad():
        out = results_of(op, call(op, values | {name: x}))[result]
        return rushlight.autograd.grad(out, x, given)[0]


def _elementwise(op, values, tangents, results):
    (result,) = results
    found = results[result]
    wide = {a.name: values[a.name] for a in op.tensors if isinstance(values.get(a.name), Tensor)}
    wide = values | {n: t.expand(found.shape).clone() for n, t in wide.items()}
    total = rushlight.zeros_like(found)
    for name, t in tangents.items():
        given = t.to(found.dtype).expand(found.shape).conj()
        total = total + number_like(own_gradient(op, wide, name, result, given).conj(), found)
    return {result: total}


def _reduced(op, values, tangents, results):
    ((name, t),) = tangents.items()
    x = values[name]
    dims = values.get("dim")
    dims = list(range(x.dim())) if dims is None or dims == [] else dims
    found = {}
    for result, y in results.items():
        slope = own_gradient(op, values, name, result, rushlight.ones_like(y))
        summed = (slope.conj() * t).sum(dims, keepdim=bool(values.get("keepdim")))
        found[result] = number_like(summed.reshape(y.shape), y)
    return found


def _linear(op, values, tangents, results, args):
    zeros = {a: zeros_of(values[a]) for a in args if values.get(a) is not None}
    return results_of(op, call(op, values | zeros | tangents))


def _twice(op, values, tangents, results):
    """The derivative of the gradient by what is given to it."""
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


def _expression(op, rule, values, tangents, results, everything):
    known = values | everything | {f"{n}_t": t for n, t in tangents.items()}
    if rule.formulas.keys() <= results.keys():
        return {
            n: number_like(evaluate(text, known), results[n]) for n, text in rule.formulas.items()
        }
    (result,) = results
    total = rushlight.zeros_like(results[result])
    for name in tangents:
        if name not in rule.formulas:
            raise NotImplementedError(f"derivative of {op.name} by {name}")
        total = total + number_like(evaluate(rule.formulas[name], known), total)
    return {result: total}


def tangent(op, values, tangents, kind=None):
    """The tangents of an op's differentiable results, by name, from those of arguments.

    `kind` is another rule than the op's own: "twice" fits all.
    """
    rule = rules.tangent(op) if kind is None else rules.Rule(kind)
    args, named = rules.differentiable(op)
    everything = results_of(op, call(op, values))
    results = {n: everything[n] for n in named}
    if rule.kind == "zero":
        return {n: zeros_of(t) for n, t in results.items()}
    if rule.kind == "linear":
        found = _linear(op, values, tangents, results, args)
    elif rule.kind == "multilinear":
        (result,) = results
        parts = [call(op, values | {n: t}) for n, t in tangents.items()]
        found = {result: sum(parts[1:], parts[0])}
    elif rule.kind == "expression":
        found = _expression(op, rule, values, tangents, results, everything)
    else:
        found = {"elementwise": _elementwise, "reduced": _reduced, "twice": _twice}[rule.kind](
            op, values, tangents, results
        )
    return {n: found[n] for n in named}


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
