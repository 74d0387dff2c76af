"""`ops`: the ops of the table by name, wherever the extension keeps them.

`rushlight.add` is `ops.add`; `ops` also has those that are public in `nn.functional` only or not
at all (`ops.adam_step_`).
"""

from types import SimpleNamespace
from typing import Any

from rushlight import _C

ops: Any = SimpleNamespace(**vars(_C._wrapped) | vars(_C.ops) | vars(_C._nn))
