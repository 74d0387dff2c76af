"""The op table's language and what it expands to."""

import ast
import dataclasses
import re
from pathlib import Path

import pytest

from gen import derivatives, kernels, registry, rules, table, wrappers
from gen.__main__ import show
from gen.expressions import TableError, read
from gen.schema import Type, parse_signature, parse_type
from gen.text import each, lines, only, when

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = Path(__file__).parent / "golden" / "fused_scale.cpp"


def entry(text, **keys):
    name, overload, args, results = parse_signature(text)
    keys.setdefault("variants", frozenset({"function", "method", "inplace", "out"}))
    return table.Op(
        text, name, overload, args, results, keys.pop("kind", "kernel"), "golden", **keys
    )


def golden_op():
    return entry(
        "fused_scale(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
        kernel=table.pointwise(table.floating, table.complex_, promote="float"),
        grad={"self": "grad * other.conj() * alpha", "other": "grad * self.conj() * alpha"},
    )


def test_golden_expansion():
    """All C++ that one entry becomes. After an intended change: python -m tests.test_generator."""
    assert show([golden_op()]) == GOLDEN.read_text()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Tensor", Type("Tensor")),
        ("Tensor?", Type("Tensor", optional=True)),
        ("Tensor(a!)", Type("Tensor", alias="a!")),
        ("Tensor(a!)[]", Type("Tensor", is_list=True, alias="a!")),
        ("Tensor?[]", Type("Tensor", is_list=True, element_optional=True)),
        ("Tensor|Scalar", Type("Tensor", number=True)),
        ("int[2]?", Type("int", is_list=True, size=2, optional=True)),
    ],
)
def test_types(said, expected):
    assert parse_type(said) == expected


@pytest.mark.parametrize("text", ["tensor", "int[", "Tensor!", "float[]]"])
def test_unknown_types_are_refused(text):
    with pytest.raises(TableError):
        parse_type(text)


def test_signature():
    name, overload, args, results = parse_signature(
        "max.dim(Tensor self, int dim, *, bool keepdim=False, int[2] s=[0, 1]) -> (Tensor values, Tensor indices)"
    )
    assert (name, overload) == ("max", "dim")
    assert [a.name for a in args] == ["self", "dim", "keepdim", "s"]
    assert [a.keyword_only for a in args] == [False, False, True, True]
    assert args[3].default == "[0, 1]"
    assert [r.name for r in results] == ["values", "indices"]


def test_only_what_a_derivative_uses_is_saved():
    op = entry(
        "f(Tensor self, Tensor other, int dim) -> Tensor",
        kernel=table.custom(),
        grad={"self": "g(grad, self.sizes(), dim)", "other": "grad * result"},
    )
    plan = derivatives.plan(op)
    assert [(s.name, s.kind) for s in plan.saved] == [
        ("self", "meta"),
        ("dim", "value"),
        ("result", "output"),
    ]


def test_a_derivative_names_tensor_arguments():
    op = entry("f(Tensor self, int n) -> Tensor", kernel=table.custom(), grad={"n": "grad"})
    with pytest.raises(TableError, match="no tensor argument"):
        derivatives.plan(op)


def formulas_op(*formulas, dtypes=(table.real,), **keys):
    return entry(
        "thing(Tensor self, Tensor other, *, float limit) -> Tensor",
        kernel=table.pointwise(*dtypes, formulas=formulas, **keys),
        grad="none",
    )


def test_the_first_formula_that_fits_is_run():
    op = formulas_op(
        table.formula("near", "limit", when="n < 3"),
        table.formula("one", inputs=1, dtypes=(table.floating,)),
        table.formula("rest"),
        check=["check_first(self)", "check_late(it)", "n = count(it)"],
    )
    lines = [line.strip() for line in wrappers.run_function(op)]
    expected = [
        "check_first(self);",
        "it.build({Promote::Same, set_real});",
        "check_late(it);",
        "const auto n = count(it);",
        "if (n < 3) {",
        "run_formula(it, &KernelTable::near, {limit});",
        "return it.take_output();",
        "if (contains(set_floating, it.common_dtype())) {",
        "run_formula(it, &KernelTable::one);",
        "return it.take_output();",
        "run_formula(it, &KernelTable::rest);",
    ]
    assert [line for line in lines if line in expected] == [*expected, "return it.take_output();"]


def test_dtypes_without_a_formula_are_refused():
    op = formulas_op(table.formula("one", dtypes=(table.floating,)))
    lines = [line.strip() for line in wrappers.run_function(op)]
    assert "dtype_not_implemented(it.op(), it.common_dtype());" in lines


def test_a_formula_serves_several_ops():
    ops = [formulas_op(table.formula("one", dtypes=(d,))) for d in (table.integers, table.floats)]
    made = kernels.generate(ops)
    line = "(one, 2, 0, set_integers | set_floats, Promote::Same, false)"
    assert "RL_POINTWISE_KERNEL" + line in made["isa/pointwise_0.cpp"]
    assert "RL_CUDA_POINTWISE" + line in made["cuda/pointwise_0.cu"]
    with pytest.raises(TableError, match="something else of the formula one"):
        kernels.generate([*ops, formulas_op(table.formula("one", inputs=1))])


def test_kernels_by_hand_are_not_generated():
    ops = [
        formulas_op(table.formula("one", loop="isa")),
        formulas_op(table.formula("two", loop="all")),
    ]
    made = kernels.generate(ops)
    assert not any("KERNEL(" in text for path, text in made.items() if path.startswith("isa"))
    assert "(one," in made["cuda/pointwise_0.cu"] and "(two," not in made["cuda/pointwise_0.cu"]


HARD = ["sum", "max", "view", "index", "index_put", "add", "to", "cat", "split", "conv2d", "sort"]
# Words of the table's language that are names of ops as well.
WORDS = {"alias", "all", "linear", "real", "values", "view", "view_copy"}


def strings(tree):
    """The constants of a module, parts of f-strings too, but for docstrings."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and isinstance(node.body[0], ast.Expr)
    }
    found = [
        node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs
    ]
    return [node.value for node in found if isinstance(node.value, str)]


def named_in(text, ops):
    """The ops that a constant names: it is the name, or calls it."""
    called = re.findall(r"(?<!::)(?<!pass\.)\b([A-Za-z_]\w*)\(", text)
    return (set(called) | {text.strip()}) & ops - WORDS


def test_no_op_has_its_own_place_in_the_generator():
    """Overloads, views, list arguments and results, joint derivatives: the hard ops fit the table as others do."""
    ops = {name for op in table.load() for name in (op.name, op.inplace_name)}
    assert ops.issuperset(HARD) and ops >= WORDS - {"real"} and named_in("a.to(b)", ops) == {"to"}
    for path in (ROOT / "gen").glob("*.py"):
        for text in strings(ast.parse(path.read_text())):
            assert not named_in(text, ops), f"{path.name}: {text!r}"


# Keys that fewer than ten entries use, and why each is one.
RARE = {
    "Kernel.shares": "who writes one value everywhere, or reads where it writes, cannot be told from the signature",
    "Formula.attributes": "what a formula is given beside tensors, where it is not all that the op has",
    "Formula.inputs": "how many tensors a formula takes, where it is not all that the op has",
    "Formula.loop": "what the compiler must not do to a formula, and loops that are none",
}


def test_keys_are_for_many_entries():
    """What a few entries say is a word of a key that many have."""
    ops = table.load()
    holders = {
        "Op": ops,
        "Kernel": [op.kernel for op in ops],
        "Formula": [f for op in ops for f in op.kernel.formulas],
    }
    worked_out = {"Op.node_index"}
    few = set()
    for kind, found in holders.items():
        for key in dataclasses.fields(getattr(table, kind)):
            if key.default is not dataclasses.MISSING:
                used = sum(getattr(holder, key.name) != key.default for holder in found)
                few |= {f"{kind}.{key.name}"} if used < 10 else set()
    assert few - worked_out == set(RARE)


def test_words_of_keys_are_known():
    for key in ("variants", "python", "out"):
        with pytest.raises(TableError, match="sometimes"):
            table.op(
                "f(Tensor self) -> Tensor", kernel=table.custom(), grad="none", **{key: "sometimes"}
            )


def test_integers_have_meanings():
    """PyTorch's schemas know none of them."""
    kind = parse_type("Dim[1]?")
    assert (kind.meaning, kind.base) == ("Dim", "int") and kind == parse_type("int[1]?")
    assert (
        entry("f(Tensor self, Dim dim, Size[] size) -> Tensor").schema
        == "f(Tensor self, int dim, int[] size) -> Tensor"
    )


def test_cpp_is_told_what_integers_mean():
    """Rules of vmap go by the types of arguments, not by their names."""
    op = entry("f(Tensor self, Dim axis, int dim, Size[] shape) -> Tensor")
    meanings = [text.partition(".meaning = ")[2] for text in registry.arg_infos(op.args)]
    assert [text.partition("}")[0] for text in meanings] == [
        "",
        "Meaning::Dim",
        "",
        "Meaning::Size",
    ]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("grad * self.cos()", {"grad": {"whole"}, "self": {"whole"}}),
        (
            "f(grad, self.sizes(), x.dim)",
            {"f": {"called"}, "grad": {"whole"}, "self": {"meta"}, "x": {"whole"}},
        ),
        ('g(x, "tanh")[0] + x.size(0)', {"g": {"called"}, "x": {"whole", "meta"}}),
        ("a = f(x); x.sizes() == a", {"f": {"called"}, "x": {"whole", "meta"}, "a": {"whole"}}),
    ],
)
def test_names_in_expressions(said, expected):
    """Members of a name are none."""
    assert read(said).names == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("a - (b - c) * -d", "a - (b - c) * -d"),
        ("(a + b).sum(0, {1, 2}, none)", "(a + b).sum(0, {1, 2}, std::nullopt)"),
        ("f({}, 1e-5, 'x')[1]", 'std::get<1>(f({}, 1e-5, "x"))'),
        ("a if not b and (c or d) else e", "!b && (c || d) ? a : e"),
        ("(a if b else c) + (d if e == f else g)", "(b ? a : c) + (e == f ? d : g)"),
        ("f(grad_q or none)", "f(grad_q)"),
    ],
)
def test_expressions_in_cpp(said, expected):
    assert read(said).cpp == expected


def test_statements_in_cpp():
    """Names of ops stand in the namespace of ops, though composites have them, too."""
    assert read("out, mean = norm(x); (out, f(mean))").statements({"norm"}) == [
        "const auto [out, mean] = rushlight::norm(x);",
        "return {out, f(mean)};",
    ]


@pytest.mark.parametrize(
    "said", ["a ? b : c", "a < b < c", "[x for x in y]", "f(a=1)", "del a; b", "a->b"]
)
def test_other_expressions_are_refused(said):
    with pytest.raises(TableError):
        _ = read(said).cpp


def test_templates():
    items = ["a;", "", "  b;"]
    made = lines(f"""
        head {{
          {each(items)}
          {each([])}
          {only(False)}never;
          {only(True)}always;
          {when(True, "if (x)", "y;", "z;")}
          {when(False, "if (never)", "y;")}

        }}
    """)
    assert made == [
        "head {",
        "  a;",
        "",
        "    b;",
        "  always;",
        "  if (x) {",
        "    y;",
        "    z;",
        "  }",
        "",
        "}",
    ]


def ruled(**keys):
    return entry(
        "thing(Tensor self, int dim) -> Tensor",
        kernel=table.custom(),
        grad={"self": "grad"},
        **keys,
    )


@pytest.mark.parametrize(
    ("jvp", "kind"),
    [
        (None, "twice"),
        ("linear", "linear"),
        ("twice: a reason", "twice"),
        ("self_t * result.sum(dim, true)", "expression"),
        ({"self": "self_t"}, "expression"),
    ],
)
def test_tangent_rules(jvp, kind):
    assert rules.tangent(ruled(jvp=jvp)).kind == kind


@pytest.mark.parametrize(
    "jvp",
    [
        "twice",
        "linear: a reason",
        {"dim": "self_t"},
    ],
)
def test_impossible_tangents_are_refused(jvp):
    with pytest.raises(TableError):
        rules.tangent(ruled(jvp=jvp))


def test_batch_rules():
    said = {"self": "dims", "": "joined(self, dim, batch)"}
    assert [r.kind for r in rules.batch(ruled(batch=said)).values()] == ["dims", "expression"]
    assert rules.batch(ruled())[""].kind == "slices"
    for wrong in ("slices", "batch + size", "self.shape[0]"):
        with pytest.raises(TableError):
            rules.batch(ruled(batch=wrong))


def test_autocast_rules():
    assert rules.autocast(ruled(autocast="lower")) == {"cpu": "lower", "accelerator": "lower"}
    assert rules.autocast(ruled(autocast={"accelerator": "promote"})) == {"accelerator": "promote"}
    for wrong in ("higher", {"tpu": "lower"}):
        with pytest.raises(TableError):
            rules.autocast(ruled(autocast=wrong))


if __name__ == "__main__":
    GOLDEN.write_text(show([golden_op()]))
