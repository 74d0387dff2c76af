"""Views with memory of their own, and copies with something else in place of what a view shows."""

from gen.table import composite, of_view

for symbol, name in {
    "alias": "alias_copy",
    "as_strided": "as_strided_copy",
    "detach": "detach_copy",
    "diagonal": "diagonal_copy",
    "expand": "expand_copy",
    "narrow": "narrow_copy",
    "permute": "permute_copy",
    "select": "select_copy.int",
    "slice": "slice_copy.Tensor",
    "split": "split_copy.Tensor",
    "split_with_sizes": "split_with_sizes_copy",
    "squeeze": "squeeze_copy",
    "squeeze_dim": "squeeze_copy.dim",
    "squeeze_dims": "squeeze_copy.dims",
    "t": "t_copy",
    "transpose": "transpose_copy.int",
    "unbind": "unbind_copy.int",
    "unfold": "unfold_copy",
    "unsqueeze": "unsqueeze_copy",
    "view": "view_copy",
    "view_dtype": "view_copy.dtype",
    "view_as_complex": "view_as_complex_copy",
    "view_as_real": "view_as_real_copy",
}.items():
    lists = symbol.startswith(("split", "unbind"))
    method = "method " if symbol == "narrow" else ""
    arguments, call = of_view(symbol)
    composite(
        f"{name}({', '.join(['Tensor self', *arguments])}) -> {'Tensor[]' if lists else 'Tensor'}",
        body=f"copy_of({call('self')})",
        variants="function" if lists else f"{method}function out",
        doc=f"What `{name.partition('_copy')[0]}` gives, in memory of its own.",
    )
for symbol in ("as_strided", "diagonal", "select", "slice"):
    arguments, call = of_view(symbol)
    composite(
        f"{symbol}_scatter({', '.join(['Tensor self', 'Tensor src', *arguments])}) -> Tensor",
        body=f"whole = clone_for_batches(self, src); copy_into_view(whole, {call('whole')}, src)",
        variants="method function out" if symbol == "slice" else "method function",
        out="cpp",
        doc=f"A copy with `src` in place of what `{symbol}` gives.",
        tags=("core",) if symbol in ("select", "slice") else (),
    )
