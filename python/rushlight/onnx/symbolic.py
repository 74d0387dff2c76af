"""Lowering of `torch.onnx.ops.symbolic`: a node that the program has written itself."""

from __future__ import annotations

from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers

__all__: list[str] = []  # lowerings are found by the names of their ops


@lowers("onnx_symbolic._node.default")
def node(
    g: Builder,
    inputs: list[Value | None],
    op_type: str,
    attr_keys: list[str],
    attr_types: list[str],
    attr_counts: list[int],
    attr_ints: list[int],
    attr_floats: list[float],
    attr_strs: list[str],
    metadata_keys: list[str],
    metadata_values: list[str],
    domain: str,
    version: int | None,
) -> list[Value]:
    if version is not None and not domain and not g.since(version):
        raise Unsupported(f"version {version} of {op_type} in a model of version {g.opset}")
    if domain:
        g.domains[domain] = max(version or 1, g.domains.get(domain, 1))
    values = {"i": iter(attr_ints), "f": iter(attr_floats), "s": iter(attr_strs)}
    attributes = {}
    for key, kind, count in zip(attr_keys, attr_types, attr_counts, strict=True):
        items = [next(values[kind[0]]) for _ in range(count)]
        attributes[f"{key}_"] = items if kind.endswith("s") and len(kind) > 1 else items[0]
    dtypes = [part.dtype for part in g.parts]
    made = g.op(op_type, *inputs, outputs=len(dtypes), dtype=dtypes, domain=domain, **attributes)
    found = list(made) if len(dtypes) > 1 else [made]
    written = next(n for n in g.nodes if found[0].name in n.output)
    for key, value in zip(metadata_keys, metadata_values, strict=True):
        written.metadata_props.add(key=key, value=value)
    return found
