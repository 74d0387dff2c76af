"""Makes the fuzzer's programs of what is done to a graph beside calling ops: `python -m tests.fuzz beside`.

Nodes called by hand, hooks that replace, resize and free, contexts and their attributes, wrappers without memory,
modes and classes that answer anything, memory that is exchanged between forward and backward, several threads. What the
words mean is in beside_names.py.
"""

import re

from tests.fuzz import beside_names as kinds
from tests.fuzz import programs

SETUP = programs.SETUP
NAMES = "tests.fuzz.beside_names"
# Python's own, of attributes, dicts and buffers that programs treat as they please.
ALSO_ALLOWED = (AttributeError, BufferError, KeyError, AssertionError, OverflowError)

# `{T}` a tensor, `{v}` the name of a variable, `{N}` a node, `{M}` a kind of value, `{H}` a kind of hook, `{any}` any
# value, `{L}` another line, `{sizes}` a list of numbers.
LINES = [
    *["{v} = recorded({op})"] * 12,
    *["by_hand({T}, '{M}', '{M}', path={path})"] * 8,
    *["{v} = recorded(function('{F}', '{B}', '{MD}').apply({T}))"] * 8,
    *["kept({T}.register_hook(hook('{H}')))"] * 3,
    *["kept({N}.register_hook(hook('{H}')))"] * 3,
    *["kept({N}.register_prehook(hook('{H}')))"] * 3,
    "kept({T}.register_post_accumulate_grad_hook(hook('{H}')))",
    "graph.register_multi_grad_hook([{T}, {T}], hook('{H}'))",
    "raw_hooks({T}, '{S}', '{H}', '{H}', path={path})",
    "raw_hooks({T}, '{S}', '{H}', '{H}')",
    *["{T}.sum().backward(retain_graph={bool})"] * 4,
    *["{T}.backward(made('{M}', {T}), retain_graph={bool}, create_graph={bool})"] * 4,
    "read(torch.autograd.grad({T}, [{T}, {T}], made('{M}', {T}), retain_graph={bool}, allow_unused=True))",
    "read(torch.autograd.grad(graph.GradientEdge({N}, {int}), {T}, made('{M}', {T}), retain_graph=True))",
    "torch.autograd.backward([graph.GradientEdge({N}, {int}), {T}], [made('{M}', {T})] * 2)",
    "{v} = within('{W}', lambda: {L})",
    "{v} = within('{W}', lambda: {T}.sin() * {T})",
    "asked({N})",
    "attribute({N}, '{CA}', {any})",
    "attribute({N}, '{CA}', made('{M}', {T}))",
    "called({N}, '{CM}', {any})",
    "called({N}, '{CM}')",
    "{N}.metadata.update(node={N}, t={T})",
    "{N}._set_sequence_nr({int})",
    "attribute({v}, 'data', made('{M}', {T}))",
    "attribute({v}, 'grad', made('{M}', {T}))",
    "attribute({v}, '_backward_hooks', {any})",
    "attribute({v}, 'requires_grad', {bool})",
    "{v}.set_(made('{M}', {T}))",
    "{v}.set_({T}.untyped_storage(), {int}, {sizes}, {sizes})",
    "{v}.untyped_storage().resize_({int})",
    "{v}.detach_()",
    "{v}.resize_({sizes})",
    "{v}.retain_grad()",
    "does('{D}', ({T},))",
    "torch.utils.swap_tensors({v}, {T})",
    "{v} = Memoryless({sizes}, '{A}', requires_grad={bool})",
    "{v} = Memoryless({sizes}, '{A}', {sizes}, {int})",
    "{v} = Memoryless([2**20, 2**20], '{A}')",
    "{v} = {T}.as_subclass(Function_); {v}.answer = '{A}'",
    "{v} = {T}.as_subclass(Memoryless); {v}.answer = '{A}'",
    "{v} = plainly(lambda: {T}.detach())",
    "read(plainly(lambda: {T}.{TM}))",
    "torch._C._take_geometry({T}, {T})",
    "{v} = {T}.{TM}",
    "{v} = read({T} {operator} {T})",
    "{v} = torch.from_dlpack(capsule({sizes}, {sizes}, code={int}, bits={bits}, lanes={int}, device={int}))",
    "{v} = torch.from_dlpack(capsule({small}, {small}))",
    "{v} = torch.from_dlpack(capsule({small}, None, ndim={int}))",
    "{v} = torch.from_dlpack({T})",
    "{v} = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack({T}))",
    "{v} = {T}.to_sparse()",
    "{v} = {T}.to_sparse_csr()",
    "{T}.{SP}.{TM}",
    "{T}.{SP}.resize_({sizes})",
    "{T}.{SP}.set_()",
    "{T}.{SP}.untyped_storage().resize_({int})",
    "{T}.{SP}.fill_({int})",
    "read({T}.to_dense())",
    "read({T}.coalesce())",
    "{v} = torch.sparse_coo_tensor({T}.{SP}, {T}, check_invariants=False)",
    "{v} = torch.nested.nested_tensor([{T}, {T}], layout={layout})",
    "{v} = torch.nested.as_nested_tensor([{T}, {T}], layout={layout})",
    "read({T}.unbind())",
    "threads(lambda: {L}, lambda: {L})",
    "threads(lambda: {T}.sum().backward(retain_graph=True), lambda: {T}.sum().backward(retain_graph=True), lambda: {L})",
    "threads(lambda: {T}.sum().backward(), lambda: {T}.sum().backward())",
    "gc.collect()",
    "read({v})",
    "repr({v})",
    "{v} = {T}[{index}]",
    "{v}.__setitem__({index}, {T})",
    "{v}.mul_({T})",
    "{v} = torch.autograd.forward_ad.make_dual({T}, {T}, level={int})",
    "{v} = dual(lambda: {L}, {T}, {T})",
    "{v} = torch.func.vmap(lambda t: {TV})({T})",
    "{v} = torch.func.grad(lambda t: {TV})({T})",
    "checkpointed(lambda t: {TV}, {T}, '{D}')",
]
# fmt: off
CONTEXT_ATTRIBUTES = [
    "to_save", "dirty_tensors", "non_differentiable", "saved_for_forward", "needs_input_grad", "materialize_grads",
    "metadata", "next_functions", "saved_tensors", "_forward_cls", "__class__", "__dict__", "x",
]
METHODS = [
    "save_for_backward", "save_for_forward", "mark_dirty", "mark_non_differentiable", "set_materialize_grads",
    "maybe_clear_saved_tensors", "register_hook", "register_prehook", "apply", "name", "_sequence_nr", "__call__",
    "__init__", "__reduce__", "__dir__", "__getattribute__", "__delattr__", "__repr__", "__hash__",
]
TENSOR_METHODS = [
    "sin()", "detach()", "clone()", "data", "view(-1)", "t()", "real", "sum()", "numpy()", "tolist()", "grad",
    "item()", "exp()", "untyped_storage()", "unbind()", "to(torch.float64)", "to('meta')", "_base", "mT",
    "contiguous()", "as_strided((2, 2), (1, 1))", "expand(2, 3)", "untyped_storage().tolist()", "data_ptr()",
    "is_contiguous()", "view(torch.uint8)", "alias()", "narrow(0, 0, 1)", "flatten()", "__dlpack__()",
    "storage_offset()", "__reduce_ex__(2)",
]
WITHIN_VMAP = [
    "t.sin()", "t * a", "t.sum()", "(t * t).sum()", "t.expand(3)", "function('plain', 'fit').apply(t).sum()",
    "t.mul_(2)",
]
# fmt: on


class Maker(programs.Maker):
    """Makes one program."""

    def tensor(self):
        return self.variable_view() if self.chance(0.9) else super().tensor()

    def op(self):
        """A call of an op of the table, usually with the arguments of its samples."""
        self.entry = self.pick(self.entries)
        op = self.entry.op
        args = list(self.pick(self.entry.samples)) if self.entry.samples else self.arguments()
        spelt = ", ".join(f"**{{{k!r}: {v}}}" if k else v for k, v in args)
        if "function" in op.variants or not self.entry.samples:
            return f"ops.{op.name}({spelt})"
        return f"torch.Tensor.{op.name}({spelt})"

    def filled_in(self, text, depth=0):
        return re.sub(r"\{(\w+)\}", lambda found: self.part(found[1], depth), text)

    def part(self, kind, depth):
        pick = self.pick
        made = {
            "v": lambda: pick(("a", "b", "c", "d", "y")),
            "T": self.tensor,
            "op": self.op,
            "M": lambda: pick(kinds.MADE),
            "D": lambda: pick(kinds.DEEDS),
            "MD": lambda: pick(kinds.MADE + kinds.DEEDS),
            "F": lambda: pick(kinds.FORWARD),
            "B": lambda: pick(kinds.BACKWARD),
            "A": lambda: pick(kinds.ANSWERS),
            "S": lambda: pick(kinds._SAVED[:6]),
            "H": lambda: f"made:{pick(kinds.MADE)}" if self.chance(0.6) else f"does:{pick(kinds.DEEDS)}",
            "W": lambda: pick(["dispatch:", "function:"]) + pick(kinds.ANSWERS)
            if self.chance(0.6)
            else "packing:" + pick(kinds.MADE),
            "N": lambda: f"node({pick('abcdy')}, *{self.part('path', 0)})",
            "path": lambda: str(tuple(self.rng.randrange(3) for _ in range(pick([0, 0, 1, 2, 3])))),
            "CA": lambda: pick(CONTEXT_ATTRIBUTES),
            "CM": lambda: pick(METHODS),
            "TM": lambda: pick(TENSOR_METHODS),
            "TV": lambda: pick(WITHIN_VMAP),
            "SP": lambda: pick(["_indices()", "_values()", "values()", "crow_indices()", "col_indices()", "offsets()"]),
            "any": lambda: pick(programs.WILD),
            "bool": lambda: pick(["True", "False"]),
            "int": self.integer,
            "bits": lambda: pick(["0", "8", "16", "32", "64", "128", "255", "1"]),
            "sizes": self.int_list,
            "small": lambda: str([pick([0, 1, 2, 3, 4, -1, -3]) for _ in range(pick([0, 1, 2, 3]))]),
            "layout": lambda: pick(["torch.strided", "torch.jagged"]),
            "index": self.index,
            "operator": lambda: pick(programs.OPERATORS),
            "L": lambda: self.inner(depth + 1),
        }  # fmt: skip
        return made[kind]()

    def inner(self, depth):
        """A line that is an expression, within another."""
        while True:
            line = self.pick(LINES)
            if line.startswith("{v} = ") or ";" in line or (depth > 1 and "{L}" in line):
                continue
            return self.filled_in(line, depth)

    def lines(self):
        self.grad = True
        dtype = self.pick(["float32", "float32", "float64", "complex64", "float16"])
        made = [f"dtype = start('{dtype}', {self.rng.randrange(1 << 31)}, True)"]
        made.append(f"a = filled({self.shape}, dtype)")
        made.append("b = c = d = a; y = a * 2; begin(globals())")
        for _ in range(self.pick([4, 8, 12])):
            made.append(self.filled_in(self.pick(LINES)))
        made.append("y.sum().backward()")
        made.append("gc.collect() if hash(y) % 16 == 0 else None")
        return made


def entries():
    """The ops whose nodes are called."""
    return programs.entries()


def program(seed, index, table_entries):
    """The lines of program `index` of a seed."""
    return Maker(seed, index, table_entries).lines()
