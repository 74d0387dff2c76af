"""`OptimizedModule`: what `compile` makes of a module."""

from __future__ import annotations

from rushlight import nn

__all__ = ["OptimizedModule", "is_dynamo_supported"]


def is_dynamo_supported():
    """Whether programs are compiled: no."""
    return False


is_inductor_supported = is_dynamo_supported


class OptimizedModule(nn.Module):
    """A module around another, `_orig_mod`, whose attributes it has too; calls go there."""

    def __init__(self, mod):
        super().__init__()
        # Shares what the wrapped module keeps, as its state is one's own under a prefix.
        self._orig_mod = mod
        self.training = mod.training

    def forward(self, *args, **kwargs):
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name, value):
        if (
            name in ("_orig_mod", "training")
            or name.startswith("_")
            or "_modules" not in vars(self)
        ):
            super().__setattr__(name, value)
        elif "_orig_mod" in self._modules:
            setattr(self._orig_mod, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name):
        if name == "_orig_mod":
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __len__(self):
        return len(self._orig_mod)

    def __getitem__(self, index):
        return self._orig_mod[index]

    def __iter__(self):
        return iter(self._orig_mod)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})
