"""torch.onnx.ops: nodes by name, attention and rotary embedding."""

import importlib

import numpy as np
import pytest

import rushlight as torch
from tests.python.onnx_judges import Calls, agreed, onnx

ops = torch.onnx.ops


def test_symbolic_is_a_node():
    def program(x):
        attrs = {"a": 1, "b": [1.5, 2.0], "c": "s", "d": ["x", "y"], "e": True, "f": [3]}
        y = ops.symbolic(
            "mine::Twice",
            (x, None),
            attrs,
            dtype=x.dtype,
            shape=[2, 3],
            version=4,
            metadata_props={"k": "v"},
        )
        return y + 1

    model = Calls(program)
    assert torch.equal(model(torch.ones(2)), torch.ones(2, 3))  # zeros, outside of exports
    proto = torch.onnx.export(model, (torch.ones(2),)).model_proto
    node = proto.graph.node[0]
    assert (node.op_type, node.domain, list(node.input)) == (
        "Twice",
        "mine",
        ["args_0"],
    )
    found = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert found == {"a": 1, "b": [1.5, 2.0], "c": b"s", "d": [b"x", b"y"], "e": 1, "f": [3]}
    assert [(p.key, p.value) for p in node.metadata_props] == [("k", "v")]
    assert {o.domain: o.version for o in proto.opset_import} == {"": 20, "mine": 4}


def test_symbolic_with_several_results():
    def program(x):
        values, places = ops.symbolic_multi_out(
            "TopK", (x, torch.tensor([2])), {"axis": 0}, dtypes=[x.dtype, 7], shapes=[[2], [2]]
        )
        return values * 2, places

    exported = torch.onnx.export(Calls(program), (torch.ones(4),))
    values, places = exported(torch.tensor([1.0, 5.0, 3.0, 4.0]))
    assert (values.tolist(), places.tolist()) == ([10, 8], [1, 3])


def test_symbolic_without_inputs():
    def program(x):
        return x + ops.symbolic(
            "Constant", (), {"value_floats": [3.0, 4.0]}, dtype=x.dtype, shape=[2]
        )

    assert torch.onnx.export(Calls(program), (torch.ones(2),))(torch.ones(2))[0].tolist() == [4, 5]


def test_symbolic_refuses():
    x = torch.ones(2)
    with pytest.raises(ValueError, match="Unsupported attribute type for x"):
        ops.symbolic("m::b", (x,), {"x": object()}, dtype=1, shape=[2])
    with pytest.raises(ValueError, match="1 dtypes and 2 shapes"):
        ops.symbolic_multi_out("m::b", (x,), dtypes=[1], shapes=[[2], [2]])
    newer = Calls(lambda x: ops.symbolic("Swish", (x,), dtype=x.dtype, shape=x.shape, version=24))
    with pytest.raises(
        torch.onnx.OnnxExporterError, match="version 24 of Swish in a model of version 20"
    ):
        torch.onnx.export(newer, (x,))


def reference(kind, outputs, *inputs, **attributes):
    """What the evaluator of the `onnx` package computes."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    node = onnx.helper.make_node(kind, names, [f"y{i}" for i in range(outputs)], **attributes)
    known = {n: x.numpy() for n, x in zip(names, inputs, strict=True) if n}
    graph = onnx.helper.make_graph(
        [node],
        "reference",
        [
            onnx.helper.make_tensor_value_info(
                n, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
            )
            for n, x in known.items()
        ],
        [onnx.ValueInfoProto(name=n) for n in node.output],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)])
    evaluator = importlib.import_module("onnx.reference").ReferenceEvaluator(model)
    return evaluator.run(None, known)


ATTENTION = {
    "plain": {},
    "causal": {"is_causal": 1},
    "scale and cap": {"scale": 0.3, "softcap": 1.5},
    "after softmax": {"qk_matmul_output_mode": 3},
}


@pytest.mark.parametrize("how", ATTENTION)
def test_attention(how):
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 3, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 6)
    ours = ops.attention(q, k, v, **ATTENTION[how])
    theirs = reference("Attention", 4, q, k, v, **ATTENTION[how])
    # With softcap the evaluator returns capped scores, and PyTorch the product.
    compared = 3 if "softcap" in ATTENTION[how] else 4
    for a, b in zip(ours[:compared], theirs[:compared], strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-5)
    agreed(lambda q, k, v: ops.attention(q, k, v, **ATTENTION[how])[:3], q, k, v)


def test_attention_with_a_cache_and_masks():
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 3, 8), torch.randn(2, 3, 8), torch.randn(2, 3, 8)
    past = torch.randn(2, 2, 4, 4)
    heads = {"q_num_heads": 2, "kv_num_heads": 2}
    for mask in (torch.rand(3, 7) < 0.7, torch.randn(3, 7), None):
        ours = ops.attention(q, k, v, mask, past, past, **heads)
        theirs = reference("Attention", 4, q, k, v, mask, past, past, **heads)
        for a, b in zip(ours[:3], theirs[:3], strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="q_num_heads must be given"):
        ops.attention(q, k, v)
    with pytest.raises(ValueError, match="must be 0 to 3"):
        ops.attention(q, k, v, qk_matmul_output_mode=4, **heads)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("turned", [0, 4])
def test_rotary_embedding(interleaved, turned):
    torch.manual_seed(0)
    x, angles = torch.randn(2, 3, 5, 8), torch.randn(10, (turned or 8) // 2)
    places = torch.randint(0, 10, (2, 5))
    how = {"interleaved": interleaved, "rotary_embedding_dim": turned}
    caches = angles.cos(), angles.sin()
    ours = ops.rotary_embedding(x, *caches, places, **how)
    np.testing.assert_allclose(
        ours.numpy(),
        reference("RotaryEmbedding", 1, x, *caches, places, **how)[0],
        rtol=1e-5,
        atol=1e-6,
    )
    flat = x.transpose(1, 2).flatten(2)
    alike = ops.rotary_embedding(flat, *(c[places] for c in caches), num_heads=3, **how)
    np.testing.assert_allclose(
        alike.numpy(), ours.transpose(1, 2).flatten(2).numpy(), rtol=1e-5, atol=1e-6
    )
    with pytest.raises(ValueError, match="num_heads must be given"):
        ops.rotary_embedding(flat, *caches, places)
    assert ops.aten_decompositions() == {}
