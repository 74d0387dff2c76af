"""`ops`: the ops of the table by name, wherever the extension keeps them.

`rushlight.add` is `ops.add`; `ops` also has those that are public in `nn.functional` only or not
at all (`ops.adam_step_`). An op that does not exist is an AttributeError when it is used.
"""

from rushlight import _C


class _Ops:
    def __getattr__(self, name):
        for space in (_C._nn, _C.ops):
            function = getattr(space, name, None)
            if function is not None:
                self.__dict__[name] = function  # found without this method from now on
                return function
        raise AttributeError(f"no op is named {name!r}")


ops = _Ops()
