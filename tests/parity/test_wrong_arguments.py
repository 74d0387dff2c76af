"""Wrong arguments of the functions that programs use most: errors are of PyTorch's types and name the function, the
argument, what is expected and what came.
"""

import re

import pytest

import rushlight

torch = pytest.importorskip("torch")

NAMES = [
    "cat",
    "tensor",
    "ones",
    "zeros",
    "arange",
    "stack",
    "from_numpy",
    "sum",
    "zeros_like",
    "exp",
    "log",
    "where",
    "ones_like",
    "randn",
    "max",
    "einsum",
    "sqrt",
    "eye",
    "mean",
    "rand",
    "empty_like",
    "randperm",
    "matmul",
    "full",
    "clamp",
    "abs",
    "sigmoid",
    "min",
    "multinomial",
    "equal",
    "mm",
    "randint",
    "linspace",
    "sin",
    "pow",
    "isfinite",
    "gather",
    "topk",
    "argsort",
    "softmax",
    "argmax",
    "meshgrid",
    "transpose",
    "any",
    "all",
    "full_like",
    "allclose",
    "tril",
    "norm",
    "bmm",
    "diag",
    "cumsum",
    "repeat_interleave",
    "flip",
    "div",
    "cdist",
    "prod",
    "split",
    "view_as_real",
    "randn_like",
    "sparse_coo_tensor",
    "add",
    "log1p",
    "bincount",
    "unbind",
    "maximum",
    "vstack",
    "relu",
    "chunk",
    "index_select",
    "quantile",
    "logsumexp",
    "reshape",
    "sort",
    "mul",
    "flatten",
    "searchsorted",
    "nonzero",
    "unsqueeze",
    "inverse",
    "outer",
    "dot",
    "clone",
    "nan_to_num",
    "logical_and",
    "round",
    "bernoulli",
    "std",
    "var",
    "bucketize",
    "eq",
    "permute",
    "diagonal",
    "atan2",
    "addmm",
    "normal",
    "floor",
    "numel",
    "trapezoid",
    "lerp",
    "roll",
    "kthvalue",
    "broadcast_to",
    "median",
    "square",
    "baddbmm",
    "isin",
    "isclose",
    "kron",
    "tensordot",
    "cumprod",
    "block_diag",
    "tile",
    "cross",
    "narrow",
    "masked_select",
    "select",
    "addcmul",
    "diff",
    "scatter",
    "squeeze",
    "amax",
    "as_strided",
    "count_nonzero",
    "get_device_module",
    "unique_consecutive",
    "nn.functional.softmax",
    "nn.functional.pad",
    "nn.functional.relu",
    "nn.functional.log_softmax",
    "nn.functional.cross_entropy",
    "nn.functional.linear",
    "nn.functional.one_hot",
    "nn.functional.interpolate",
    "nn.functional.softplus",
    "nn.functional.dropout",
    "nn.functional.normalize",
    "nn.functional.conv2d",
    "nn.functional.max_pool2d",
    "nn.functional.mse_loss",
    "nn.functional.layer_norm",
    "nn.functional.gelu",
    "nn.functional.kl_div",
    "nn.functional.avg_pool2d",
    "nn.functional.nll_loss",
    "nn.functional.embedding",
    "nn.functional.scaled_dot_product_attention",
    "nn.functional.batch_norm",
    "nn.functional.grid_sample",
    "nn.functional.group_norm",
    "nn.functional.grouped_mm",
    "nn.functional.cosine_similarity",
    "nn.functional.l1_loss",
    "nn.functional.adaptive_avg_pool1d",
    "linalg.norm",
    "linalg.svd",
    "linalg.solve",
    "linalg.qr",
    "linalg.inv",
    "linalg.eigh",
    "linalg.lu_factor",
    "fft.fft",
    "fft.rfft",
    "fft.fftshift",
]

ARGUMENTS = [
    "", "x", "'a'", "None", "[x]", "x, 'a'", "x, None", "x, y", "x, 7", "x, 2.5", "x, [1, 'a']", "x, x, 'a'", "x, nonsense=1",
    "x, dim='a'", "x, dim=2.5", "x, dim=7", "x, out=3", "i", "c", "b", "x, i, y", "3", "object()", "x, object()",
    "x, x, x, x, x, x, x, x, x", "x, dtype='float'", "[1, 2], x", "x, True", "i, x", "v, y", "x, -1, -1",
]  # fmt: skip

# Where the types differ, and why.
EXCEPTIONS = {
    "one number is taken for a list of one": "nn.functional.pad(x, 7) flip(x, 7) reshape(x, 7) permute(x, 7) tile(x, 7) "
    "broadcast_to(x, 7) nn.functional.layer_norm(x, 7) as_strided(x, -1, -1)",
    "a list of tensors is taken where tensors are": "block_diag([x])",
    "taken: promoted, converted or seen as a default": "prod(x, None) nn.functional.kl_div(i, x) cross(i, x) "
    "normal(i, x) median(b) isin(x, True)",
    "both complaints are right; another is made first": "nn.functional.avg_pool2d(x, 7) "
    "nn.functional.avg_pool2d(x, -1, -1) nn.functional.interpolate(x, [1, 'a']) baddbmm(x, i, y) "
    "tensordot(x, -1, -1) sparse_coo_tensor(x, None) nn.functional.normalize(x, 'a') nn.functional.normalize(x, out=3)",
    "a condition of PyTorch's Python code meets a tensor or a list first": "unique_consecutive "
    "nn.functional.max_pool2d(x, x, x, x, x, x, x, x, x) nn.functional.embedding(x, i, y) get_device_module([x]) "
    "tensordot(x, i, y) nn.functional.grid_sample nn.functional.group_norm einsum(x, y) einsum(x, x, 'a') "
    "einsum(x, i, y) einsum(x, x, x, x, x, x, x, x, x) einsum(i, x) einsum(v, y)",
    "a RuntimeError says which dtypes": "linalg.lu_factor(i) linalg.lu_factor(b)",
}


def values(module):
    return {
        "x": module.arange(6.0).reshape(2, 3),
        "i": module.arange(6).reshape(2, 3),
        "b": module.ones(2, 3, dtype=module.bool),
        "y": module.ones(4, 5),
        "c": module.ones(2, 3, dtype=module.complex64),
        "v": module.ones(3),
    }


def error_of(module, name, arguments):
    """The error of a call; None without one."""
    function = module
    for part in name.split("."):
        function = getattr(function, part)
    try:
        eval(f"function({arguments})", {"function": function, **values(module)})
    except Exception as error:
        return error
    return None


def is_accepted(ours, theirs):
    """The same type or a subclass of it; TypeError where PyTorch's code trips over an attribute of a wrong object."""
    if type(theirs) is AttributeError:
        return isinstance(ours, (TypeError, AttributeError))
    kinds = [kind.__name__ for kind in type(ours).__mro__]
    return type(theirs).__name__ in kinds


@pytest.mark.parametrize("name", NAMES)
def test_types_of_errors(name):
    wrong = []
    exceptions = " ".join(EXCEPTIONS.values())
    for arguments in ARGUMENTS:
        theirs = error_of(torch, name, arguments)
        ours = error_of(rushlight, name, arguments)
        if theirs is None or f"{name}({arguments})" in exceptions or name in exceptions.split():
            continue
        if ours is None or not is_accepted(ours, theirs):
            wrong.append(f"{name}({arguments}): {ours!r:.150} instead of {theirs!r:.150}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", NAMES)
def test_messages_name_what_is_wrong(name):
    """A TypeError names the function, or the argument and what it must be."""
    short = name.rpartition(".")[2]
    for arguments in ARGUMENTS:
        error = error_of(rushlight, name, arguments)
        if error is None:
            continue
        text = str(error)
        assert len(text) > 15 and not re.search(
            r"object has no attribute|unpack|not iterable", text
        ), text
        assert "PyTorch" not in text and "please report" not in text
        if isinstance(error, TypeError):
            named = re.search(r"\w+\(\)", text) or short in text
            assert named or "argument" in text, f"{name}({arguments}): {text}"
