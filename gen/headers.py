"""Headers by libtorch's names, which ops/headers.py lists."""

from __future__ import annotations

from ops.headers import ABSENT, NAMES

API = "torch/csrc/api/include"  # a folder that programs are told to search, too


def generate() -> dict[str, str]:
    files = {}
    for target, folders in NAMES.items():
        # Every name brings the names of namespaces with it: torch, at and c10. But what binaries for
        # both libraries include stands alone.
        alone = target.startswith(("<torch/", "<rushlight/stable/"))
        includes = [target] if alone else [target, "<torch/torch.h>"]
        for folder, names in folders.items():
            for name in names.split():
                path = f"include/{folder}/{name}" + ("" if name.endswith(".hpp") else ".h")
                what = f"// Another name of {target}.\n#pragma once\n\n"
                files[path] = what + "".join(f"#include {i}\n" for i in includes)
                if path == f"include/{API}/torch/torch.h":  # which <torch/torch.h> may mean itself
                    files[path] = what + '#include "../../../../torch.h"\n'
                parts = folder.split("/")
                if parts[0] == "torch" and not {"csrc", "headeronly"} & set(parts):  # where libtorch keeps them
                    files[f"include/{API}/{path.removeprefix('include/')}"] = files[path]
    for reason, paths in ABSENT.items():
        for path in paths.split():
            files[f"include/{path}"] = f'#error "<{path}> is not part of rushlight: {reason}"\n'
    return files
