"""`Module`: the base class of everything that has parameters.

A module keeps what it owns in live dicts, PyTorch's own (`_parameters`, `_buffers`, `_modules` and
the hook dicts): programs reach into them. Assigning a Parameter, a Buffer or a Module to an
attribute registers it. Reading an attribute, which looks into the three dicts last, and calling are
in C++ (src/python/nn_module.cpp); hooks around a call are in `_hooks.py`, states in `_state.py`,
walks over modules in `_tree.py`, conversions of all that they hold in `_changes.py`.
"""

from __future__ import annotations

import builtins
import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_type_hints

from rushlight import _C, Tensor, typename
from rushlight._lazy import later
from rushlight._warnings import warn

if TYPE_CHECKING:
    from rushlight.utils.hooks import RemovableHandle

from ..parameter import Buffer, Parameter
from . import _errors, _hooks, _state
from ._changes import ModuleChanges
from ._hooks import (
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._state import _IncompatibleKeys  # noqa: F401

compiler = later("rushlight.compiler")

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


# By PyTorch's names: programs look whether there are any, put theirs in and take them out again.
_global_backward_hooks = _hooks.global_backward_hooks
_global_backward_pre_hooks = _hooks.global_backward_pre_hooks
_global_buffer_registration_hooks = _hooks.global_buffer_registration_hooks
_global_forward_hooks = _hooks.global_forward_hooks
_global_forward_hooks_always_called = _hooks.global_forward_hooks_always_called
_global_forward_hooks_with_kwargs = _hooks.global_forward_hooks_with_kwargs
_global_forward_pre_hooks = _hooks.global_forward_pre_hooks
_global_module_registration_hooks = _hooks.global_module_registration_hooks
_global_parameter_registration_hooks = _hooks.global_parameter_registration_hooks

# What follows a module's name where its extra state is kept.
_EXTRA_STATE_KEY_SUFFIX = _state.EXTRA_STATE_KEY


class _CallSignature:
    """What `inspect.signature` says of a module; of a class it says what `__init__` takes."""

    def __get__(self, module, kind):
        if module is None:
            raise AttributeError("__signature__")
        return inspect.Signature(
            [
                inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
            ]
        )


def _addindent(text: str, spaces: int) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


def _too_early(kind):
    """The error where a subclass assigns what the dicts of `Module` hold and has none yet."""
    return AttributeError(
        f"cannot assign {kind} before Module.__init__() call: begin __init__ with "
        "super().__init__()"
    )


def _unfit(value, kind, name, expected, more=""):
    """The error where a name of a parameter, module or buffer is given something else."""
    return TypeError(f"cannot assign '{typename(value)}' as {kind} '{name}' ({expected}){more}")


def _no_module_hint(value):
    """What to do with something that was to be a module."""
    if isinstance(value, list | tuple):
        return "; Sequential(*modules) takes modules one by one, ModuleList(modules) a list"
    return ", which a module of its own can call" if callable(value) else ""


def _name_check(kind, name):
    """Raise where `name` cannot be the name of a parameter, buffer or module."""
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
    if "." in name:
        path, _, last = name.rpartition(".")
        raise KeyError(
            f'{kind} name can\'t contain ".", got: {name}, which is {last!r} of the module {path!r}'
        )
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')


def _calls(module, *args, **kwargs):
    """What `Module.compile` compiles."""
    return module(*args, **kwargs)


class Module(ModuleChanges):
    """Base class for neural networks and their layers; subclasses define `forward`.

    Args:
        args: nothing.
        kwargs: nothing.

    Example:
        >>> class Net(torch.nn.Module):
        ...     def __init__(self, width=8):
        ...         super().__init__()
        ...         self.hidden = torch.nn.Linear(3, width)
        ...         self.out = torch.nn.Linear(width, 2)
        ...
        ...     def forward(self, x):
        ...         return self.out(self.hidden(x).relu())
        >>> net = Net()
        >>> net(torch.zeros(5, 3)).shape
        torch.Size([5, 2])
        >>> [name for name, _ in net.named_parameters()]
        ['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias']
    """

    dump_patches = False
    call_super_init = False
    _version = 1
    _compiled_call_impl = None
    T_destination = dict

    training: builtins.bool
    _non_persistent_buffers_set: set[str]
    _is_full_backward_hook: builtins.bool | None
    _forward_hooks: OrderedDict
    _forward_pre_hooks: OrderedDict
    _backward_hooks: OrderedDict
    _backward_pre_hooks: OrderedDict

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                    f"'{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but "
                    f"{len(args) + 1} were given"
                )
        # Straight into the dict: the attribute rules below need these dicts to exist.
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _backward_pre_hooks=OrderedDict(),
            _backward_hooks=OrderedDict(),
            _is_full_backward_hook=None,
            _forward_hooks=OrderedDict(),
            _forward_hooks_with_kwargs=OrderedDict(),
            _forward_hooks_always_called=OrderedDict(),
            _forward_pre_hooks=OrderedDict(),
            _forward_pre_hooks_with_kwargs=OrderedDict(),
            _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict(),
            _modules={},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ---- calling -------------------------------------------------------------------------------

    _instead_of_calling = ": define it, it says what a call computes"

    if TYPE_CHECKING:  # a value, for subclasses take the arguments that they need
        forward: Callable[..., Any]
    else:

        def forward(self, *args):
            """The computation of a call; every subclass defines its own."""
            raise NotImplementedError(
                f'Module [{type(self).__name__}] is missing the required "forward" function'
                f"{self._instead_of_calling}"
            )

    _call_impl = _C._ModuleBase.__call__
    __signature__ = _CallSignature()

    def compile(self, **kwargs):
        """Compile the calls of this module in place; arguments are those of `rushlight.compile`."""
        call = getattr(compiler.compile(_calls, **kwargs), "_call", None)
        self._compiled_call_impl = self._call_impl
        self.__dict__.pop("_is_compiled", None)
        if call is not None:
            self.__dict__["_is_compiled"] = True if call is _C._call_noted else call

    # ---- attributes ----------------------------------------------------------------------------

    def __setattr__(self, name, value):
        own = self.__dict__
        parameters = own.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise _too_early("parameters")
            self._forget(name, parameters)
            self.register_parameter(name, value)
            return
        if parameters is not None and name in parameters:
            if value is not None:
                what = "torch.nn.Parameter or None expected"
                hint = "wrap it in torch.nn.Parameter, or write its numbers with copy_()"
                raise _unfit(value, "parameter", name, what, f": {hint} under no_grad()")
            self.register_parameter(name, value)
            return
        modules = own.get("_modules")
        is_module = isinstance(value, Module)
        if is_module or (modules is not None and name in modules):
            if modules is None:
                raise _too_early("module")
            if is_module:
                self._forget(name, modules)
            elif value is not None:
                raise _unfit(value, "child module", name, "torch.nn.Module or None expected")
            modules[name] = self._run_registration_hooks(
                _hooks.global_module_registration_hooks, name, value
            )
            return
        buffers = own.get("_buffers")
        is_buffer = isinstance(value, Tensor) and isinstance(value, Buffer)
        if is_buffer:
            if buffers is None:
                raise _too_early("buffer")
            if name not in buffers:
                self._forget(name, buffers)
            self.register_buffer(name, value, value.persistent)
        elif buffers is not None and name in buffers:
            if value is not None and not isinstance(value, Tensor):
                what = "a tensor, a torch.nn.Buffer or None expected"
                raise _unfit(value, "buffer", name, what)
            buffers[name] = self._run_registration_hooks(
                _hooks.global_buffer_registration_hooks, name, value
            )
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name):
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def _forget(self, name, keep):
        """Take a name out of everything but the dict `keep` before it gets a new meaning."""
        own = self.__dict__
        own.pop(name, None)
        for table in (own["_parameters"], own["_buffers"], own["_modules"]):
            if table is not keep:
                table.pop(name, None)
        if keep is not own["_buffers"]:
            own["_non_persistent_buffers_set"].discard(name)

    def _run_registration_hooks(self, hooks, name, value):
        """The value after the registration hooks, each of which may replace it."""
        for hook in hooks.values():
            replacement = hook(self, name, value)
            if replacement is not None:
                value = replacement
        return value

    def __dir__(self):
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules]
        names += self._buffers
        return sorted({name for name in names if not name[0].isdigit()})

    # ---- registering ---------------------------------------------------------------------------

    def _table_for(self, kind, name):
        """The dict of parameters, buffers or modules, for a name that may be put there."""
        table = self.__dict__.get(f"_{kind}s")
        if table is None:
            raise _too_early(kind)
        _name_check(kind, name)
        if name not in table and hasattr(self, name):
            raise KeyError(
                f"attribute '{name}' already exists in {type(self).__name__}: take another name"
            )
        return table

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is part of the state but is not a parameter.

        Args:
            name: attribute under which it is found.
            tensor: the buffer, or None for a place that is filled later.
            persistent: whether `state_dict` holds it.
        """
        buffers = self._table_for("buffer", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}', which takes a "
                "torch Tensor or None"
            )
        buffers[name] = self._run_registration_hooks(
            _hooks.global_buffer_registration_hooks, name, tensor
        )
        elsewhere = self._non_persistent_buffers_set
        (elsewhere.discard if persistent else elsewhere.add)(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter under a name; None keeps the name for later."""
        parameters = self._table_for("parameter", name)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}', which "
                    "takes a torch.nn.Parameter or None"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}': it was computed from "
                    "others; compute it in forward(), or detach it first"
                )
            param = self._run_registration_hooks(
                _hooks.global_parameter_registration_hooks, name, param
            )
        parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Register a child module under a name; None keeps the name for later."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(
                f"{typename(module)} is not a Module subclass: it cannot be "
                f"{type(self).__name__}'s part {name!r}{_no_module_hint(module)}"
            )
        modules = self._table_for("module", name)
        modules[name] = self._run_registration_hooks(
            _hooks.global_module_registration_hooks, name, module
        )

    def register_module(self, name: str, module: Module | None) -> None:
        """Alias of `add_module`."""
        self.add_module(name, module)

    # ---- hooks ---------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before each forward; a result replaces the arguments.

        With `with_kwargs` it is called as `hook(module, args, kwargs)` and returns both or None.
        """
        marks = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return _hooks.add_hook(self._forward_pre_hooks, hook, prepend=prepend, marks=marks)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after each forward; a result replaces the output.

        With `with_kwargs` it is called as `hook(module, args, kwargs, output)`; with `always_call`
        also after an error, with output None.
        """
        marks = []
        if with_kwargs:
            marks.append(self._forward_hooks_with_kwargs)
        if always_call:
            marks.append(self._forward_hooks_always_called)
        return _hooks.add_hook(self._forward_hooks, hook, prepend=prepend, marks=marks)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the backward pass of each call.

        A result replaces the gradients.
        """
        return _hooks.add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` after the backward pass of each call.

        A result replaces `grad_input`.
        """
        self._set_backward_hook_kind(True)
        return _hooks.add_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Deprecated form of `register_full_backward_hook`: it sees only the last function's
        inputs.
        """
        self._set_backward_hook_kind(False)
        return _hooks.add_hook(self._backward_hooks, hook)

    def _set_backward_hook_kind(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(_hooks.mixed_backward_hooks(type(self).__name__))
        self._is_full_backward_hook = full

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` collects the module."""
        return _hooks.add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict`.

        It may change the state in place and returns None.
        """
        hook._from_public_api = True
        return _hooks.add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Like `register_state_dict_post_hook`, but a result replaces the state."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "_register_state_dict_hook: this function was given to "
                "register_state_dict_post_hook, where it must return None; wrap it in another one"
            )
        return _hooks.add_hook(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call a hook before the module's own entries are loaded.

        It gets the module and what `_load_from_state_dict` gets, whose dict it may change.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        if with_module:
            return _hooks.add_hook(self._load_state_dict_pre_hooks, lambda *args: hook(self, *args))
        return _hooks.add_hook(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after the module was loaded.

        It may change the two lists of keys in place and returns None.
        """
        return _hooks.add_hook(self._load_state_dict_post_hooks, hook)

    # ---- state ---------------------------------------------------------------------------------

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """An ordered dict of all parameters and persistent buffers by dotted name.

        Args:
            destination: a dict to fill instead of a new one.
            prefix: put in front of every name.
            keep_vars: keep the tensors themselves instead of detached aliases.
        """
        if args:
            warn(
                "Positional arguments of state_dict are deprecated: give them by name.",
                FutureWarning,
            )
            given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
            destination = given["destination"]
            prefix = given.get("prefix", prefix)
            keep_vars = given.get("keep_vars", keep_vars)
        return _state.state_dict(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Copy a state into this module's parameters and buffers.

        Args:
            state_dict: what `state_dict` gave; any mapping of names to tensors.
            strict: raise RuntimeError unless both sides have the same names.
            assign: make the given tensors the module's own instead of copying their values.

        Returns:
            the missing and the unexpected keys, as a named tuple.
        """
        return _state.load_state_dict(self, state_dict, strict, assign)

    _save_to_state_dict = _state.save_own
    _load_from_state_dict = _state.load_own

    def __setstate__(self, state):
        self.__dict__.update(state)
        # Modules that were pickled by older versions lack some of the hook dicts.
        for name, value in vars(Module()).items():
            self.__dict__.setdefault(name, value)

    # ---- text ----------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses; override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [
            f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()
        ]
        lines = extra_lines + child_lines
        if len(extra_lines) == 1 and not child_lines:
            body = extra_lines[0]
        elif lines:
            body = "\n  " + "\n  ".join(lines) + "\n"
        else:
            body = ""
        return f"{self._get_name()}({body})"

    def _repr_html_(self) -> str:
        from rushlight._texts import page

        return page.of_module(self)


# Types, not strings: others evaluate the annotations of a layer among names of their own.
Module.__annotations__.update(get_type_hints(Module))

_C._set_module_functions(
    (
        _hooks.global_forward_hooks,
        _hooks.global_forward_pre_hooks,
        _hooks.global_backward_hooks,
        _hooks.global_backward_pre_hooks,
    ),
    _hooks.call_with_hooks,
    _errors.note_error,
)
