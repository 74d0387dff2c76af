"""The op table's language and what it expands to."""

from pathlib import Path

import pytest

from gen import derivatives, kernels, rules, table, tags, wrappers
from gen.__main__ import show
from gen.schema import TableError, Type, parse_signature, parse_type

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
    ("text", "expected"),
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
def test_types(text, expected):
    assert parse_type(text) == expected


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


def test_the_hard_ops_fit_the_table():
    """Overloads, views, list arguments and results, joint derivatives: no special case in the generator."""
    hard = [
        "sum",
        "max",
        "view",
        "index",
        "index_put",
        "add",
        "to",
        "cat",
        "split",
        "conv2d",
        "sort",
    ]
    by_name = {op.name: op for op in table.load()}
    for name in hard:
        assert name in by_name, name
    generator = "".join(path.read_text() for path in (ROOT / "gen").glob("*.py"))
    for name in by_name.keys() - set(tags.WORDS):  # one tag is called as an op is
        if len(name) > 6:  # shorter names are English words
            assert f'"{name}"' not in generator and f"'{name}'" not in generator, name


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
