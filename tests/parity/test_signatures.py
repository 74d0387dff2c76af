"""Names of arguments: numpy's words for PyTorch's, keywords for every argument, `out=` wherever PyTorch has it."""

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")

X = np.random.default_rng(5).normal(size=(3, 4)).astype("float32")

# Each call is run by both modules; x is a tensor of 3 by 4.
CALLS = {
    "axis": [
        *(
            f"m.{name}(x, axis=1)"
            for name in [
                "sum",
                "mean",
                "prod",
                "std",
                "var",
                "amax",
                "amin",
                "argmax",
                "argmin",
                "cumsum",
                "cumprod",
                "logcumsumexp",
                "softmax",
                "log_softmax",
            ]
        ),
        *(
            f"m.{name}(x, axis=0, keepdims=True)"
            for name in [
                "sum",
                "mean",
                "amax",
                "amin",
                "max",
                "min",
                "median",
                "any",
                "all",
                "argmax",
                "nansum",
            ]
        ),
        *(
            f"x.{name}(axis=-1)"
            for name in [
                "sum",
                "mean",
                "std",
                "max",
                "min",
                "sort",
                "argsort",
                "cummax",
                "cumsum",
                "count_nonzero",
            ]
        ),
        *(
            "m.cat([x, x], axis=1)",
            "m.stack([x, x], axis=2)",
            "m.unbind(x, axis=1)",
            "m.squeeze(x, axis=0)",
            "m.unsqueeze(x, axis=1)",
        ),
        *(
            "m.flip(x, [1])",
            "x.flip(dims=(0, 1))",
            "m.roll(x, 1, dims=0)",
            "m.diff(x, axis=0)",
            "m.trapezoid(x, dim=0)",
            "m.quantile(x, 0.5, axis=1)",
        ),
        *(
            "m.logsumexp(x, axis=1, keepdims=True)",
            "m.linalg.norm(x, axis=1)",
            "m.norm(x, dim=1, keepdim=True)",
            "m.kthvalue(x, k=2, axis=0)",
        ),
        *(
            "m.take_along_dim(x, x.argsort(1), axis=1)",
            "m.tensor_split(x, 2, axis=1)",
            "m.split(x, 2, dim=1)",
            "m.chunk(x, 2, axis=1)",
        ),
        *(
            "m.index_select(x, axis=1, index=m.tensor([0, 2]))",
            "m.gather(x, axis=1, index=m.tensor([[0, 1], [2, 0], [1, 1]]))",
        ),
        *(
            "m.select(x, axis=0, index=1)",
            "m.narrow(x, axis=1, start=1, length=2)",
            "m.unique_consecutive(x, dim=0)",
            "m.fft.fft(x, dim=0)",
        ),
    ],
    "names": [
        *(
            f"m.{name}(input=x)"
            for name in [
                "abs",
                "exp",
                "neg",
                "sum",
                "mean",
                "sigmoid",
                "isnan",
                "flatten",
                "t",
                "trace",
                "logdet",
                "det",
                "numel",
                "sort",
            ]
            if name not in ("logdet", "det")
        ),
        *(
            f"m.{name}(x1=x, x2=x)"
            for name in ["add", "sub", "mul", "div", "eq", "maximum", "fmod", "atan2"]
        ),
        *(f"m.{name}(a=x)" for name in ["abs", "exp", "sum"]),
        *(f"m.{name}(x=x)" for name in ["cos", "log2"]),
        *(
            f"m.{name}(input=x, other=x)"
            for name in [
                "add",
                "mul",
                "true_divide",
                "greater",
                "logical_and",
                "hypot",
                "copysign",
                "kron",
                "cross",
            ]
            if name != "cross"
        ),
        *(
            "m.clamp(input=x, min=0, max=1)",
            "m.where(condition=x > 0, input=x, other=-x)",
            "m.pow(input=x, exponent=2)",
            "m.lerp(input=x, end=x, weight=0.5)",
        ),
        *(
            "m.addmm(input=x, mat1=x[:, :3], mat2=x)",
            "m.matmul(input=x, other=x.T)",
            "m.mm(input=x, mat2=x.T)",
            "m.dot(input=x[0], tensor=x[1])",
        ),
        *(
            "m.topk(input=x, k=2, dim=1, largest=False)",
            "m.searchsorted(sorted_sequence=x[0].sort()[0], input=x)",
            "m.bucketize(input=x, boundaries=x[0].sort()[0])",
        ),
        *(
            "m.full_like(input=x, fill_value=2)",
            "m.full(size=(2, 3), fill_value=1.5)",
            "m.zeros(size=(2,))",
            "m.eye(n=2, m=3)",
            "m.arange(start=1, end=4)",
        ),
        *(
            "m.linspace(start=0, end=1, steps=3)",
            "m.tril(input=x, diagonal=1)",
            "m.diag_embed(input=x, offset=1)",
            "m.diagonal(input=x, offset=1)",
        ),
        *(
            "m.linalg.solve(A=m.eye(3), B=x)",
            "m.linalg.solve_triangular(m.eye(3), x, upper=True)",
            "m.linalg.svdvals(A=x)",
            "m.linalg.qr(A=x, mode='r')[1]",
        ),
        *(
            "m.linalg.vector_norm(x, ord=1, dim=1)",
            "m.linalg.matrix_norm(x, ord='nuc')",
            "m.linalg.inv(A=m.eye(2))",
            "m.cov(input=x, correction=0)",
            "m.histc(input=x, bins=4)",
        ),
        *(
            "m.special.xlog1py(input=x.abs(), other=x.abs())",
            "m.special.zeta(input=x.abs() + 2, other=x.abs())",
            "m.special.logit(input=x, eps=0.1)",
        ),
        *(
            "m.repeat_interleave(input=x, repeats=2, dim=0)",
            "m.combinations(input=x[0], r=2)",
            "m.tensordot(a=x, b=x, dims=([0], [0]))",
            "m.isin(elements=x, test_elements=x[0])",
        ),
        *(
            "m.allclose(input=x, other=x, rtol=1e-3)",
            "m.std(input=x, dim=1, correction=0)",
            "m.var_mean(input=x, dim=0, unbiased=False)",
            "m.permute(input=x, dims=(1, 0))",
        ),
        *(
            "m.movedim(input=x, source=0, destination=1)",
            "m.unflatten(input=x, dim=1, sizes=(2, 2))",
            "m.reshape(input=x, shape=(4, 3))",
            "m.broadcast_to(input=x, size=(2, 3, 4))",
        ),
    ],
    "out": [
        *(
            f"m.{name}(x, out=m.empty(3, 4))"
            for name in [
                "abs",
                "angle",
                "exp",
                "sigmoid",
                "negative",
                "deg2rad",
                "nan_to_num",
                "fix",
                "logit",
                "float_power",
            ]
            if name != "float_power"
        ),
        *(
            f"m.{name}(x, x, out=m.empty(0))"
            for name in ["add", "multiply", "subtract", "divide", "maximum", "kron", "hypot"]
        ),
        *(
            f"m.{name}(x, x, out=m.empty(0, dtype=m.bool))"
            for name in ["greater", "less", "not_equal", "eq", "logical_or"]
        ),
        *(
            f"m.{name}([x, x], out=m.empty(0))"
            for name in [
                "cat",
                "stack",
                "hstack",
                "vstack",
                "dstack",
                "column_stack",
                "concat",
                "concatenate",
                "row_stack",
            ]
        ),
        *(
            "m.sort(x, out=(m.empty(0), m.empty(0, dtype=m.int64)))",
            "m.sum(x, 1, out=m.empty(0))",
            "m.mean(x, dim=0, out=m.empty(0))",
            "m.diag(x[0], out=m.empty(0))",
        ),
        *(
            "m.max(x, 1, out=(m.empty(0), m.empty(0, dtype=m.int64)))",
            "m.msort(x, out=m.empty(0))",
            "m.take_along_dim(x, x.argsort(1), 1, out=m.empty(0))",
        ),
        *(
            "m.linspace(0, 1, 5, out=m.empty(0))",
            "m.arange(5, out=m.empty(0, dtype=m.int64))",
            "m.zeros(2, 3, out=m.empty(0))",
            "m.bucketize(x, x[0].sort()[0], out=m.empty(0, dtype=m.int64))",
        ),
        *(
            "m.linalg.inv(m.eye(3), out=m.empty(0))",
            "m.linalg.svdvals(x, out=m.empty(0))",
            "m.linalg.norm(x, out=m.empty(0))",
            "m.fft.fft(x, out=m.empty(0, dtype=m.complex64))",
        ),
        *(
            "m.quantile(x, 0.5, 1, out=m.empty(0))",
            "m.cumsum(x, 0, out=m.empty(0))",
            "m.diff(x, out=m.empty(0))",
            "m.special.i0e(x, out=m.empty(0))",
            "m.trapezoid(x)",
        ),
        *(
            "m.polar(x.abs(), x, out=m.empty(0, dtype=m.complex64))",
            "m.renorm(x, 2, 0, 1, out=m.empty(0))",
            "m.histc(x, 4, out=m.empty(0))",
            "m.cross(x[:, :3], x[:, 1:], 1, out=m.empty(0))",
        ),
    ],
}
ALL = [text for group in CALLS.values() for text in group]


def parts(value):
    if isinstance(value, (tuple, list)):
        return [p for v in value for p in parts(v)]
    return [value.numpy() if hasattr(value, "numpy") else np.asarray(value)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", ALL)
def test_call_means_the_same(text):
    results = [
        parts(eval(text, {"m": module, "x": module.from_numpy(X.copy())}))
        for module in (rushlight, torch)
    ]
    assert len(results[0]) == len(results[1])
    for ours, theirs in zip(*results, strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)
