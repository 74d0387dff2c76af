"""What stands in an archive for modules that were left out: `_mock.py` of an archive is this text.

Names can be imported from them; to use one raises NotImplementedError.
"""

_METHODS = """__call__ __getitem__ __setitem__ __delitem__ __len__ __iter__ __contains__ __enter__
__exit__ __add__ __sub__ __mul__ __truediv__ __matmul__ __neg__ __bool__ __setattr__"""


class MockedObject:
    """Stands for something that the archive does not have."""

    _name: str

    def __new__(cls, *args, **kwargs):
        # A class that inherits from a mocked one is made; to make an instance is a use.
        raise NotImplementedError(
            f"{cls.__name__} was left out of the archive, which makes one of "
            f"{len(args) + len(kwargs)} arguments"
        )

    def __getattr__(self, attr):
        if attr.startswith("__") and attr.endswith("__"):
            raise AttributeError(attr)
        return make_mock(f"{self._name}.{attr}")

    def __repr__(self):
        return f"MockedObject({self._name})"

    def __mro_entries__(self, bases):
        return (MockedObject,)


def make_mock(name):
    """What stands for a name of a module."""
    made = object.__new__(MockedObject)
    made.__dict__["_name"] = name
    return made


def _refuse(method):
    def refuse(self, *args, **kwargs):
        raise NotImplementedError(
            f"'{self._name}' was left out of the archive, which calls its {method}"
        )

    return refuse


for _method in _METHODS.split():
    setattr(MockedObject, _method, _refuse(_method))
