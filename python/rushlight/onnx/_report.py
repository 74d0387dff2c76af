"""What an export did, in Markdown."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rushlight.onnx._program import ONNXProgram


def write_report(program: ONNXProgram, path: str) -> None:
    """Writes inputs, outputs, weights and the number of nodes of each kind."""
    model = program.model
    lines = ["# Export to ONNX", "", f"Version {model.opsets['']} of ONNX's ops."]
    for title, named in (("Inputs", model.inputs), ("Outputs", model.outputs)):
        lines += ["", f"## {title}", "", "| name | dtype | shape |", "|---|---|---|"]
        lines += [f"| `{name}` | {dtype} | {sizes} |" for name, (dtype, sizes) in named.items()]
    lines += ["", "## Nodes", "", "| op | how many |", "|---|---|"]
    counts = Counter(node.op_type for node in model.nodes)
    lines += [f"| {kind} | {count} |" for kind, count in counts.most_common()]
    weights = sum(t.numel() for t in model.initializers.values())
    lines += ["", f"{len(model.initializers)} constant tensors with {weights:,} elements.", ""]
    if program.exported_program is not None:
        lines += ["## Program", "", "```", str(program.exported_program), "```", ""]
    Path(path).write_text("\n".join(lines))
