"""What modules do against PyTorch's: attributes, containers, states and hooks; messages."""

import copy
import pickle
from collections import OrderedDict

import pytest

import rushlight
from tests.parity.compare import assert_outcomes_alike, outcome, plain

torch = pytest.importorskip("torch")


def make_net(m):
    """A net with parameters, buffers of both kinds, a plain attribute and nested modules."""
    nn = m.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 3)
            self.b = nn.Sequential(nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 1))
            self.register_buffer("buf", m.ones(2))
            self.register_buffer("np", m.zeros(1), persistent=False)
            self.p = nn.Parameter(m.zeros(2))
            self.n = 5

        def forward(self, x, *, k=1):
            return self.b(self.a(x)) * k

    return Net()


def assigned(m, name, value):
    net = make_net(m)
    setattr(net, name, value)
    return (
        sorted(vars(net)),
        [key for key, _ in net.named_parameters()],
        [key for key, _ in net.named_buffers()],
        list(net._modules),
    )


def early(m, act):
    """`act` on a module whose base constructor has not run."""
    module = m.nn.Module.__new__(m.nn.Module)
    act(module)


def forward_hooks(m):
    net, log = make_net(m), []
    net.register_forward_pre_hook(lambda module, args: log.append(("pre", len(args))))
    net.register_forward_pre_hook(
        lambda module, args, kwargs: ((args[0] * 2,), {"k": 3}), with_kwargs=True, prepend=True
    )
    net.register_forward_hook(lambda module, args, out: log.append(("post", list(out.shape))))
    handle = net.register_forward_hook(
        lambda module, args, kwargs, out: out + kwargs["k"], with_kwargs=True, prepend=True
    )
    x = m.arange(8.0).view(4, 2)
    first = net(x)
    handle.remove()
    return log, first, net(x), len(net._forward_hooks_with_kwargs)


def backward_hooks(m):
    net, log = make_net(m), []
    net.a.register_full_backward_hook(lambda module, i, o: log.append(("after", i, o)))
    net.a.register_full_backward_pre_hook(lambda module, o: (o[0] * 2,))
    x = m.arange(8.0).view(4, 2).requires_grad_()
    net(x).sum().backward()
    return log, net.a.weight.grad, x.grad


def backward_hook_without_inputs(m):
    layer, log = m.nn.Linear(2, 2), []
    layer.register_full_backward_hook(lambda module, i, o: log.append((i, o)))
    layer(m.ones(1, 2)).sum().backward()
    return log, layer.weight.grad


def backward_hook_returns(m, value):
    layer = m.nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda module, i, o: value(i))
    x = m.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    return x.grad


def always_called_hooks(m):
    class Broken(m.nn.Module):
        def forward(self, x):
            raise ValueError("boom")

    module, log = Broken(), []
    module.register_forward_hook(
        lambda mod, args, out: log.append(("always", out)), always_call=True
    )
    module.register_forward_hook(lambda mod, args, out: log.append("never"))
    module.register_forward_hook(lambda mod, args, out: 1 / 0, always_call=True)
    try:
        module(1)
    except ValueError as error:
        return log, str(error)


def global_hooks(m):
    space, log = m.nn.modules.module, []
    handles = [
        space.register_module_forward_pre_hook(
            lambda mod, args: log.append(("pre", mod._get_name()))
        ),
        space.register_module_forward_hook(
            lambda mod, args, out: log.append(("post", mod._get_name()))
        ),
        space.register_module_full_backward_hook(
            lambda mod, i, o: log.append(("backward", mod._get_name()))
        ),
        space.register_module_parameter_registration_hook(
            lambda mod, name, value: log.append(("parameter", name))
        ),
        space.register_module_buffer_registration_hook(
            lambda mod, name, value: log.append(("buffer", name))
        ),
        space.register_module_module_registration_hook(
            lambda mod, name, value: log.append(("module", name))
        ),
    ]
    net = make_net(m)
    net(m.ones(3, 2, requires_grad=True)).sum().backward()
    for handle in handles:
        handle.remove()
    net(m.ones(3, 2))
    return log


def loaded(m, edit=None, strict=True, **options):
    """The result of loading an edited state, and the state after it."""
    net, state = make_net(m), make_net(m).state_dict()
    if edit is not None:
        edit(state)
    result = net.load_state_dict(state, strict=strict, **options)
    return result, net.state_dict()


def edit(**entries):
    def change(state):
        for key, value in entries.items():
            key = key.replace("__", ".")
            if value is None:
                del state[key]
            else:
                state[key] = value

    return change


def state_hooks(m):
    net, log = make_net(m), []
    net.a.register_state_dict_pre_hook(lambda mod, prefix, keep: log.append(("pre", prefix, keep)))
    net.a.register_state_dict_post_hook(
        lambda mod, state, prefix, meta: log.append(("post", prefix, list(state), dict(meta)))
    )
    net.b._register_state_dict_hook(
        lambda mod, state, prefix, meta: log.append(("private", prefix))
    )
    net.a.register_load_state_dict_pre_hook(
        lambda mod, state, prefix, meta, strict, missing, unexpected, errors: log.append(
            ("load", prefix, dict(meta), strict)
        )
    )
    net.register_load_state_dict_post_hook(lambda mod, keys: log.append(("loaded", repr(keys))))
    net.load_state_dict(net.state_dict())
    return log


def extra_state(m):
    class Counter(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = m.nn.Parameter(m.ones(1))
            self.count = 1

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    first, second = Counter(), Counter()
    first.count = 7
    second.load_state_dict(first.state_dict())
    state = first.state_dict()
    del state["_extra_state"]
    result = [list(first.state_dict()), second.count]
    try:
        second.load_state_dict(state)
    except RuntimeError as error:
        result.append(str(error))
    return result


def names(m):
    net = make_net(m)
    net.c, net.q = net.a, net.p
    return [
        [key for key, _ in net.named_parameters()],
        [key for key, _ in net.named_parameters(remove_duplicate=False)],
        [key for key, _ in net.named_parameters("x", recurse=False)],
        [key for key, _ in net.named_modules()],
        [key for key, _ in net.named_modules(remove_duplicate=False, prefix="r")],
        [key for key, _ in net.named_children()],
        [key for key, _ in net.named_buffers("y")],
        len(list(net.modules())),
        len(list(net.children())),
        list(net.state_dict()),
    ]


def copies(m):
    net = m.nn.Sequential(m.nn.Linear(2, 3), m.nn.BatchNorm1d(3))
    net[1].weight = net[1].weight
    twin = copy.deepcopy(net)
    net[0].weight.data.zero_()
    return twin.state_dict(), twin[0].weight.is_leaf, twin[0].weight.requires_grad


def shared(m):
    net = m.nn.Sequential(m.nn.Linear(2, 2), m.nn.Linear(2, 2))
    net[1].weight = net[0].weight
    twin = copy.deepcopy(net)
    return twin[0].weight is twin[1].weight, len(list(twin.parameters()))


def deleted(m):
    net = make_net(m)
    del net.p, net.buf, net.a, net.n
    return sorted(vars(net)), list(net.state_dict())


def seen_by_apply(m):
    seen = []
    make_net(m).apply(lambda module: seen.append(module._get_name()))
    return seen


def gradient_follows(m):
    layer = m.nn.Linear(2, 2)
    layer(m.ones(1, 2)).sum().backward()
    layer.double()
    return layer.weight.grad


def zeroed(m):
    net = make_net(m)
    net(m.ones(3, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    first = net.a.weight.grad
    net.zero_grad()
    return first, net.a.weight.grad


CASES = {
    "text": make_net,
    "early module": lambda m: early(m, lambda x: setattr(x, "a", m.nn.Linear(1, 1))),
    "early parameter": lambda m: early(m, lambda x: setattr(x, "a", m.nn.Parameter(m.ones(1)))),
    "early buffer": lambda m: early(m, lambda x: setattr(x, "a", m.nn.Buffer(m.ones(1)))),
    "early register_buffer": lambda m: early(m, lambda x: x.register_buffer("a", m.ones(1))),
    "early register_parameter": lambda m: early(m, lambda x: x.register_parameter("a", None)),
    "positional": lambda m: m.nn.Module(3),
    "keyword": lambda m: m.nn.Module(a=1),
    "unknown keyword": lambda m: m.nn.ReLU(foo=1),
    "no forward": lambda m: m.nn.Module()(1),
    "missing attribute": lambda m: make_net(m).zzz,
    "parameter := tensor": lambda m: assigned(m, "p", m.ones(1)),
    "parameter := None": lambda m: assigned(m, "p", None),
    "parameter := 3": lambda m: assigned(m, "p", 3),
    "parameter := module": lambda m: assigned(m, "p", m.nn.ReLU()),
    "parameter := buffer": lambda m: assigned(m, "p", m.nn.Buffer(m.ones(1))),
    "module := 3": lambda m: assigned(m, "a", 3),
    "module := None": lambda m: assigned(m, "a", None),
    "module := module": lambda m: assigned(m, "a", m.nn.ReLU()),
    "module := tensor": lambda m: assigned(m, "a", m.ones(1, dtype=m.float64)),
    "module := parameter": lambda m: assigned(m, "a", m.nn.Parameter(m.ones(1))),
    "buffer := 3": lambda m: assigned(m, "buf", 3),
    "buffer := tensor": lambda m: assigned(m, "buf", m.zeros(1)),
    "buffer := None": lambda m: assigned(m, "buf", None),
    "buffer := parameter": lambda m: assigned(m, "buf", m.nn.Parameter(m.ones(1))),
    "buffer := buffer": lambda m: assigned(m, "np", m.nn.Buffer(m.ones(1))),
    "new buffer": lambda m: assigned(m, "new", m.nn.Buffer(m.ones(1), persistent=False)),
    "plain := parameter": lambda m: assigned(m, "n", m.nn.Parameter(m.ones(1))),
    "plain := module": lambda m: assigned(m, "n", m.nn.ReLU()),
    "delete": deleted,
    "delete missing": lambda m: delattr(make_net(m), "zz"),
    "forward hooks": forward_hooks,
    "backward hooks": backward_hooks,
    "backward hook, no input": backward_hook_without_inputs,
    "backward hook replaces": lambda m: backward_hook_returns(m, lambda i: (i[0] * 0 + 7,)),
    "backward hook, wrong count": lambda m: backward_hook_returns(m, lambda i: (i[0], i[0])),
    "always_call": always_called_hooks,
    "global hooks": global_hooks,
    "load": loaded,
    "load, missing": lambda m: loaded(m, edit(a__weight=None)),
    "load, unexpected": lambda m: loaded(m, edit(zz=m.ones(1), a__q__r=m.ones(1))),
    "load, all wrong": lambda m: loaded(m, edit(a__weight=m.ones(3, 3), p=None, zz=m.ones(1))),
    "load, not strict": lambda m: loaded(m, edit(a__weight=None, zz=m.ones(1)), False),
    "load, size": lambda m: loaded(m, edit(a__weight=m.ones(3, 3)), False),
    "load, no tensor": lambda m: loaded(m, edit(a__weight=3)),
    "load, assign": lambda m: loaded(m, edit(a__weight=m.ones(3, 2, dtype=m.float64)), assign=True),
    "load, no mapping": lambda m: make_net(m).load_state_dict(5),
    "load, old version": lambda m: loaded(
        m, lambda s: (s._metadata.clear(), s.pop("b.0.num_batches_tracked"))
    ),
    "state prefix": lambda m: list(make_net(m).state_dict(prefix="x.")),
    "state of variables": lambda m: make_net(m).state_dict(keep_vars=True),
    "state hooks": state_hooks,
    "extra state": extra_state,
    "names": names,
    "copies": copies,
    "shared": shared,
    "apply": seen_by_apply,
    "train": lambda m: [module.training for module in make_net(m).eval().modules()],
    "train(1)": lambda m: m.nn.ReLU().train(1),
    "requires_grad_": lambda m: [
        p.requires_grad for p in make_net(m).requires_grad_(False).parameters()
    ],
    "zero_grad": zeroed,
    "gradient follows": gradient_follows,
}
_LINES = """
make_net(m).register_buffer("a", m.ones(1))
make_net(m).register_buffer("x.y", m.ones(1))
make_net(m).register_buffer("", m.ones(1))
make_net(m).register_buffer(3, m.ones(1))
make_net(m).register_buffer("x", 3)
make_net(m).register_parameter("a", None)
make_net(m).register_parameter("x.y", None)
make_net(m).register_parameter("", None)
make_net(m).register_parameter(3, None)
make_net(m).register_parameter("x", m.ones(1))
make_net(m).register_parameter("x", m.nn.Parameter(m.ones(1)) * 1)
make_net(m).register_parameter("n", m.nn.Parameter(m.ones(1)))
make_net(m).add_module("p", m.nn.ReLU())
make_net(m).add_module("x.y", m.nn.ReLU())
make_net(m).add_module("", m.nn.ReLU())
make_net(m).add_module(3, m.nn.ReLU())
make_net(m).add_module("x", 3)
make_net(m).add_module("x", None)
make_net(m).register_module("forward", m.nn.ReLU())
make_net(m).get_submodule("b.2")
make_net(m).get_submodule("b.9")
make_net(m).get_submodule("p")
make_net(m).get_submodule("")
make_net(m).get_parameter("b.2.weight")
make_net(m).get_parameter("b.2.zz")
make_net(m).get_parameter("buf")
make_net(m).get_parameter("q.z")
make_net(m).get_buffer("b.0.running_mean")
make_net(m).get_buffer("p")
make_net(m).get_buffer("zz")
make_net(m).set_submodule("", m.nn.ReLU())
make_net(m).set_submodule("b.z", m.nn.ReLU(), strict=True)
make_net(m).set_submodule("b.1", 3)
make_net(m).set_submodule("p", m.nn.ReLU())
m.nn.ReLU().to(m.int64)
m.nn.ReLU().to()
make_net(m).to(m.float64).state_dict()
make_net(m).to("cpu", m.float16).a.weight.dtype
make_net(m).to(m.ones(1, dtype=m.float64)).a.weight.dtype
m.nn.Linear(1, 1).to(dtype=m.float64, non_blocking=True).weight.dtype
m.nn.Conv2d(2, 2, 3).to(memory_format=m.channels_last).weight.stride()
m.nn.Linear(2, 2).to("meta").weight.device.type
m.nn.Linear(2, 2, device="meta").to_empty(device="cpu").weight.device.type
[make_net(m).half().a.weight.dtype, make_net(m).bfloat16().buf.dtype]
[make_net(m).double().b[0].num_batches_tracked.dtype, make_net(m).float().cpu().p.dtype]
[m.nn.Parameter(), m.nn.Parameter(m.ones(2), False), repr(m.nn.Parameter(m.ones(2)))]
[isinstance(m.ones(1), m.nn.Parameter), isinstance(5, m.nn.Parameter)]
[type(m.nn.Parameter(m.ones(1)) * 1).__name__, type(m.nn.Parameter(m.ones(1)).data).__name__]
m.nn.Parameter(m.ones(1, dtype=m.int64))
[isinstance(m.nn.Buffer(m.ones(1)), m.nn.Buffer), isinstance(m.nn.Buffer(), m.nn.Parameter)]
[m.nn.Buffer(m.ones(1), persistent=False).persistent, type(m.nn.Buffer(m.ones(1))).__name__]
m.nn.Sequential(m.nn.ReLU())[3]
m.nn.Sequential(m.nn.ReLU()) * 2.5
m.nn.Sequential(m.nn.ReLU()) * 0
m.nn.Sequential(m.nn.ReLU(), m.nn.Tanh()) * 2
3 * m.nn.Sequential(m.nn.ReLU())
m.nn.Sequential(m.nn.ReLU(), m.nn.Tanh(), m.nn.Sigmoid())[1:]
m.nn.Sequential(m.nn.ReLU()).append(m.nn.Tanh()).extend([m.nn.Sigmoid()]).insert(1, m.nn.GELU())
m.nn.Sequential(m.nn.ReLU()).insert(5, m.nn.ReLU())
m.nn.Sequential(m.nn.ReLU()).insert(0, 5)
m.nn.Sequential(m.nn.ReLU()) + 5
m.nn.Sequential(m.nn.ReLU()) + m.nn.Sequential(m.nn.Tanh())
m.nn.Sequential(5)
m.nn.Sequential(OrderedDict(conv=m.nn.Conv2d(1, 2, 3), act=m.nn.ReLU())).conv
m.nn.ModuleList([m.nn.ReLU()])[2]
m.nn.ModuleList(3)
m.nn.ModuleList([5])
m.nn.ModuleList([m.nn.ReLU()] * 3 + [m.nn.Linear(1, 1)] * 2)
m.nn.ModuleList([m.nn.ReLU(), m.nn.Tanh()]) + [m.nn.GELU()]
m.nn.ModuleList()
m.nn.ModuleDict(3)
m.nn.ModuleDict([3])
m.nn.ModuleDict([(1, 2, 3)])
m.nn.ModuleDict({1: m.nn.ReLU()})
m.nn.ModuleDict({"a": m.nn.ReLU(), "b": m.nn.Tanh()})
m.nn.ModuleDict({"a": m.nn.ReLU()})["zz"]
m.nn.ParameterList(m.ones(2))
m.nn.ParameterList(5)
m.nn.ParameterList([1])[3]
m.nn.ParameterList([m.ones(2), m.nn.Parameter(m.ones(2, 3)), 3, "s"]).state_dict()
m.nn.ParameterDict(3)
m.nn.ParameterDict([3])
m.nn.ParameterDict({"a": m.ones(2), "b": m.ones(1)}).state_dict()
[m.nn.ParameterDict({"a": m.ones(2)}).get("z", 4), list(m.nn.ParameterDict({"b": m.ones(2)}))]
m.nn.Conv2d(3, 4, 3, groups=2)
m.nn.Conv2d(4, 3, 3, groups=2)
m.nn.Conv2d(4, 4, 3, groups=0)
m.nn.Conv2d(1, 1, 3, 2, padding="same")
m.nn.ConvTranspose2d(1, 1, 3, padding_mode="reflect")
m.nn.ConvTranspose2d(1, 1, 3)(m.ones(1, 1, 4, 4), [1, 2, 3])
m.nn.ConvTranspose2d(1, 1, 3, 2)(m.ones(1, 1, 4, 4), [20, 3])
m.nn.Dropout(2)
m.nn.GroupNorm(2, 3)
m.nn.Embedding(3, 4, 5)
m.nn.Embedding(3, 4, _weight=m.ones(3, 3))
m.nn.Embedding.from_pretrained(m.ones(3))
m.nn.Embedding.from_pretrained(m.ones(3, 2)).weight
m.nn.BatchNorm1d(2)(m.ones(2, 2, 2, 2))
m.nn.BatchNorm2d(2)(m.ones(2, 2))
m.nn.BatchNorm1d(2)(m.ones(1, 2))
m.nn.Unflatten(1, 3)
m.nn.Unflatten(1, (2, "a"))
m.nn.Softmax()(m.ones(2, 2))
m.nn.Softmin()(m.ones(2))
m.nn.LogSoftmax()(m.ones(2, 2, 2))
m.nn.Softmax2d()(m.ones(2, 2))
m.nn.Hardtanh(2, 1)
m.nn.Linear(0, 3)
m.nn.MSELoss(reduction="x")(m.ones(1), m.ones(1))
m.nn.MSELoss()(m.ones(2, 1), m.ones(2))
m.nn.BCELoss()(m.ones(2, 1), m.ones(2))
m.nn.BCEWithLogitsLoss()(m.ones(2, 1), m.ones(2))
m.nn.MultiMarginLoss(p=3)
m.nn.TripletMarginLoss(margin=-1)
m.nn.MSELoss(size_average=False)
m.nn.CrossEntropyLoss()(m.ones(2, 3), m.ones(2))
"""
CASES |= {
    line: eval(f"lambda m: {line}", {"make_net": make_net, "OrderedDict": OrderedDict})
    for line in _LINES.split("\n")
    if line
}


@pytest.mark.parametrize("name", CASES)
def test_behaviour(name):
    assert_outcomes_alike(outcome(CASES[name], rushlight), outcome(CASES[name], torch))


@pytest.mark.parametrize("kind", ["whole", "parameter"])
def test_pickling(kind):
    net = rushlight.nn.Sequential(rushlight.nn.Linear(2, 3), rushlight.nn.BatchNorm1d(3))
    value = net if kind == "whole" else net[0].weight
    twin = pickle.loads(pickle.dumps(value))
    if kind == "whole":
        assert plain(twin.state_dict()) == plain(net.state_dict())
        twin, value = twin[0].weight, net[0].weight
    assert type(twin) is rushlight.nn.Parameter and twin.requires_grad
    assert rushlight.equal(twin, value)
