"""Modules: registration, states, hooks, containers, layers, initial values."""

import copy
import math
import pickle
from collections import OrderedDict

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


class Net(nn.Module):
    """Two linear layers and a buffer."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.second = nn.Linear(3, 2)
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        return self.second(F.relu(self.first(x) - self.mean))


def same(actual, expected, tolerance=1e-4):
    assert tuple(actual.shape) == tuple(torch.tensor(expected).shape)
    assert torch.allclose(actual, torch.tensor(expected), atol=tolerance, rtol=0)


# ---- registration ----


def test_assignment_registers():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == [
        "first.weight",
        "first.bias",
        "second.weight",
        "second.bias",
    ]
    assert [name for name, _ in net.named_buffers()] == ["mean"]
    assert next(iter(net.state_dict())) == "mean"
    assert net.first is net._modules["first"] and net.mean is net._buffers["mean"]
    net.scale = nn.Parameter(torch.ones(1))
    net.kept = nn.Buffer(torch.ones(1))
    net.lost = nn.Buffer(torch.ones(1), persistent=False)
    assert {"scale", "kept"} <= set(net.state_dict()) and "lost" not in net.state_dict()


def test_a_name_has_one_meaning():
    net = Net()
    net.mean = None
    assert net.mean is None and "mean" not in net.state_dict()
    net.first = nn.ReLU()
    assert "first.weight" not in net.state_dict()
    net.extra = 3
    net.extra = nn.Parameter(torch.ones(1))
    assert "extra" in net._parameters and "extra" not in vars(net)
    del net.extra
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'extra'"):
        _ = net.extra


@pytest.mark.parametrize(
    "act, error, message",
    [
        (
            lambda n: setattr(n, "first", 3),
            TypeError,
            "cannot assign 'int' as child module 'first'",
        ),
        (
            lambda n: setattr(n.first, "weight", torch.ones(1)),
            TypeError,
            r"cannot assign 'torch.FloatTensor' as parameter 'weight' \(torch.nn.Parameter or None",
        ),
        (lambda n: setattr(n, "mean", 3), TypeError, "cannot assign 'int' as buffer 'mean'"),
        (lambda n: n.register_buffer("first", None), KeyError, "attribute 'first' already exists"),
        (lambda n: n.register_buffer("a.b", None), KeyError, "name can"),
        (lambda n: n.register_parameter("", None), KeyError, "be empty string"),
        (lambda n: n.add_module("x", 3), TypeError, "int is not a Module subclass"),
        (lambda n: n.get_submodule("first.zz"), AttributeError, "Linear has no attribute `zz`"),
        (lambda n: n.get_parameter("mean"), AttributeError, "`mean` is not an nn.Parameter"),
        (lambda n: n.train("no"), ValueError, "training mode is expected to be boolean"),
        (lambda n: n.to(torch.int64), TypeError, "only accepts floating point or complex"),
        (lambda n: nn.Module()(1), NotImplementedError, 'missing the required "forward" function'),
        (lambda n: nn.Module(a=1), TypeError, "got an unexpected keyword argument 'a'"),
    ],
)
def test_errors(act, error, message):
    with pytest.raises(error, match=message):
        act(Net())


def test_assignment_before_init():
    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__\(\)"):
        Early()


def test_walking():
    net = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU()))
    net.again = net[0]
    assert [name for name, _ in net.named_modules()] == ["", "0", "1", "1.0"]
    assert len([*net.named_modules(remove_duplicate=False)]) == 5
    seen = []
    assert net.apply(seen.append) is net and seen[-1] is net
    assert net.get_submodule("1.0") is net[1][0]
    assert "0" not in dir(net)


# ---- states ----


def test_loading_copies():
    first, second = Net(), Net()
    result = second.load_state_dict(first.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    assert torch.equal(first.first.weight, second.first.weight)
    assert first.first.weight is not second.first.weight
    second.load_state_dict({**first.state_dict(), "mean": torch.ones(3)}, assign=True)
    assert second.first.weight.data_ptr() == first.first.weight.data_ptr()


def test_differences_are_told():
    net = Net()
    state = net.state_dict()
    del state["mean"]
    state["first.weight"] = torch.ones(2, 2)
    state["third.weight"] = torch.ones(1)
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Net:\n"
        '\tMissing key(s) in state_dict: "mean". \n'
        '\tUnexpected key(s) in state_dict: "third.weight". \n'
        "\tsize mismatch for first.weight: the checkpoint has the shape torch.Size([2, 2]), the "
        "module torch.Size([3, 4]): make the module with the checkpoint's sizes."
    )
    result = Net().load_state_dict(OrderedDict(mean=torch.ones(3)), strict=False)
    assert len(result.missing_keys) == 4 and result.unexpected_keys == []


def test_a_prefix_is_pointed_out():
    net = Net()
    state = {"module." + key: value for key, value in net.state_dict().items()}
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    (hint,) = caught.value.__notes__
    assert "the keys of the state start with 'module.'" in hint


def test_state_has_metadata():
    state = nn.Sequential(nn.BatchNorm1d(2)).state_dict()
    assert state._metadata == {"": {"version": 1}, "0": {"version": 2}}


def test_copies():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert repr(twin) == repr(net)
        for (name, a), b in zip(net.state_dict().items(), twin.state_dict().values(), strict=True):
            assert torch.equal(a, b), name
        assert type(twin[0].weight) is nn.Parameter and twin[0].weight.requires_grad
        assert twin[0].weight.data_ptr() != net[0].weight.data_ptr()


def test_moving():
    net = Net()
    weight = net.first.weight
    assert net.to(torch.float64) is net and net.first.weight is weight
    assert weight.dtype is torch.float64 and net.mean.dtype is torch.float64
    counted = nn.BatchNorm1d(2).half()
    assert counted.num_batches_tracked.dtype is torch.int64
    assert counted.running_mean.dtype is torch.float16


# ---- calls and hooks ----


def test_forward_hooks():
    layer, log = nn.Linear(2, 2), []
    x = torch.ones(1, 2)
    plain = layer(x)
    handles = [
        layer.register_forward_pre_hook(lambda m, args: (args[0] * 2,)),
        layer.register_forward_pre_hook(
            lambda m, args, kwargs: log.append(kwargs), with_kwargs=True, prepend=True
        ),
        layer.register_forward_hook(lambda m, args, out: log.append(args[0].tolist())),
        layer.register_forward_hook(lambda m, args, out: out + 1),
    ]
    assert torch.allclose(layer(x), 2 * (plain - layer.bias) + layer.bias + 1)
    assert log == [{}, [[2.0, 2.0]]]
    for handle in handles:
        handle.remove()
    assert torch.equal(layer(x), plain) and not layer._forward_hooks


def test_backward_hooks():
    layer, seen = nn.Linear(2, 1, bias=False), []
    layer.register_full_backward_pre_hook(lambda m, out: (out[0] * 3,))
    layer.register_full_backward_hook(lambda m, inp, out: seen.append((inp, out)))
    x = torch.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    ((inputs, outputs),) = seen
    assert torch.equal(outputs[0], torch.tensor([[3.0]]))
    assert torch.equal(inputs[0], x.grad) and torch.equal(x.grad, 3 * layer.weight)


def test_a_hook_may_be_a_context():
    layer, log = nn.ReLU(), []
    with layer.register_forward_hook(lambda *args: log.append(1)):
        layer(torch.ones(1))
    layer(torch.ones(1))
    assert log == [1]


def test_errors_name_the_place():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([nn.Sequential(nn.ReLU(), nn.Linear(3, 3))])

        def forward(self, x):
            return self.blocks[0](x)

    with pytest.raises(RuntimeError) as caught:
        nn.Sequential(Outer())(torch.ones(2, 5))
    assert caught.value.__notes__ == [
        "in the forward pass of Sequential: 0.blocks.0.1 (Linear), which was given float32 (2, 5)"
    ]


# ---- containers ----


def test_sequential():
    net = nn.Sequential(nn.Linear(1, 2), nn.ReLU())
    net.append(nn.Linear(2, 1)).insert(0, nn.Identity())
    assert [type(m).__name__ for m in net] == ["Identity", "Linear", "ReLU", "Linear"]
    assert list(net.state_dict()) == ["1.weight", "1.bias", "3.weight", "3.bias"]
    assert net.pop(0).__class__ is nn.Identity and len(net) == 3
    assert len(net[1:]) == 2 and len(net + net) == 6 and len(net * 2) == 6
    del net[0]
    assert list(net._modules) == ["0", "1"]
    with pytest.raises(IndexError, match="index 5 is out of range"):
        net[5]


def test_lists_and_dicts():
    layers = nn.ModuleList([nn.ReLU()] * 3 + [nn.Linear(1, 1)])
    assert repr(layers) == (
        "ModuleList(\n"
        "  (0-2): 3 x ReLU()\n"
        "  (3): Linear(in_features=1, out_features=1, bias=True)\n"
        ")"
    )
    layers.insert(0, nn.Tanh())
    layers += [nn.ELU()]
    assert len(layers) == 6 and isinstance(layers[-1], nn.ELU)
    named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    named["c"] = nn.ELU()
    assert list(named) == ["a", "b", "c"] and "b" in named and isinstance(named.pop("a"), nn.ReLU)
    values = nn.ParameterList([torch.ones(2), nn.Parameter(torch.ones(2, 3))])
    assert repr(values) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [torch.float32 of size 2]\n"
        "    (1): Parameter containing: [torch.float32 of size 2x3]\n"
        ")"
    )
    table = nn.ParameterDict({"x": torch.ones(2)})
    table.update({"y": torch.ones(1)})
    assert list(table.state_dict()) == ["x", "y"] and table["x"].requires_grad


def test_text():
    net = nn.Sequential(
        OrderedDict(conv=nn.Conv2d(1, 20, 5, padding="same"), act=nn.LeakyReLU(0.2, inplace=True))
    )
    assert repr(net) == (
        "Sequential(\n"
        "  (conv): Conv2d(1, 20, kernel_size=(5, 5), stride=(1, 1), padding=same)\n"
        "  (act): LeakyReLU(negative_slope=0.2, inplace=True)\n"
        ")"
    )


# ---- layers ----


def test_initial_weights():
    """PyTorch's own numbers for the seed 0."""
    torch.manual_seed(0)
    layer = nn.Linear(2, 2)
    same(layer.weight, [[-0.0053, 0.3793], [-0.5820, -0.5204]])
    same(layer.bias, [-0.2723, 0.1896])
    conv = nn.Conv2d(1, 1, 2)
    same(conv.weight, [[[[-0.0099, 0.3964], [-0.0444, 0.1323]]]])
    same(conv.bias, [-0.1511])
    same(nn.Embedding(2, 2).weight, [[0.2100, 0.9056], [0.6035, 0.8110]])


@pytest.mark.parametrize(
    "name, arguments, expected",
    [
        ("ReLU", (), [0.0, 0.0, 2.0]),
        ("LeakyReLU", (0.1,), [-0.1, 0.0, 2.0]),
        ("GELU", (), [-0.1587, 0.0, 1.9545]),
        ("Sigmoid", (), [0.2689, 0.5, 0.8808]),
        ("Tanh", (), [-0.7616, 0.0, 0.9640]),
        ("SiLU", (), [-0.2689, 0.0, 1.7616]),
        ("ELU", (), [-0.6321, 0.0, 2.0]),
        ("Softplus", (), [0.3133, 0.6931, 2.1269]),
        ("Hardtanh", (), [-1.0, 0.0, 1.0]),
        ("Softmax", (0,), [0.0420, 0.1142, 0.8438]),
        ("LogSoftmax", (0,), [-3.1698, -2.1698, -0.1698]),
        ("Identity", (), [-1.0, 0.0, 2.0]),
    ],
)
def test_activations(name, arguments, expected):
    same(getattr(nn, name)(*arguments)(torch.tensor([-1.0, 0.0, 2.0])), expected)


def test_inplace_activations():
    x = torch.tensor([-1.0, 2.0])
    assert nn.ReLU(inplace=True)(x) is x or x.tolist() == [0.0, 2.0]


def test_batch_norm():
    layer = nn.BatchNorm1d(2)
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    same(layer(x), [[-1.0, -1.0], [1.0, 1.0]])
    same(layer.running_mean, [0.2, 0.4])
    same(layer.running_var, [1.1, 1.7])
    assert layer.num_batches_tracked.item() == 1
    same(layer.eval()(x), [[0.7628, 1.2271], [2.6697, 4.2950]])
    with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
        layer.train()(torch.ones(1, 2))


def test_layer_norm():
    x = torch.tensor([[1.0, 2.0, 3.0]])
    same(nn.LayerNorm(3)(x), [[-1.2247, 0.0, 1.2247]])
    assert nn.LayerNorm(3, bias=False).bias is None


def test_dropout():
    torch.manual_seed(0)
    layer = nn.Dropout(0.25)
    values = sorted(set(layer(torch.ones(1000)).tolist()))
    assert values == pytest.approx([0, 4 / 3])
    assert torch.equal(layer.eval()(torch.ones(5)), torch.ones(5))
    with pytest.raises(ValueError, match="has to be between 0 and 1, not 2"):
        nn.Dropout(2)


@pytest.mark.parametrize(
    "loss, arguments, expected",
    [
        (nn.MSELoss(), ([1.0, 2.0], [3.0, 2.0]), 2.0),
        (nn.L1Loss(reduction="sum"), ([1.0, 2.0], [3.0, 2.0]), 2.0),
        (nn.SmoothL1Loss(), ([1.0, 2.0], [3.0, 2.5]), 0.8125),
        (nn.HuberLoss(delta=0.5), ([1.0, 2.0], [3.0, 2.0]), 0.4375),
        (nn.BCEWithLogitsLoss(), ([0.0, 2.0], [1.0, 0.0]), 1.4100),
        (nn.CrossEntropyLoss(), ([[1.0, 2.0], [0.0, 0.0]], [0, 1]), 1.0032),
        (nn.CrossEntropyLoss(label_smoothing=0.2), ([[1.0, 2.0]], [0]), 1.2133),
        (nn.NLLLoss(), ([[-1.0, -2.0]], [1]), 2.0),
    ],
)
def test_losses(loss, arguments, expected):
    assert loss(*map(torch.tensor, arguments)).item() == pytest.approx(expected, abs=1e-4)


def test_initialisation():
    w = torch.empty(4, 6)
    assert nn.init.eye_(w) is w and w.diagonal().sum().item() == 4
    nn.init.constant_(w, 0.3)
    assert w.max().item() == pytest.approx(0.3)
    torch.manual_seed(0)
    nn.init.trunc_normal_(w, std=2.0)
    assert w.abs().max().item() <= 2
    with pytest.raises(ValueError, match="Fan in and fan out can not be computed"):
        nn.init.xavier_normal_(torch.empty(3))
    with pytest.warns(FutureWarning, match="nn.init.normal_"):
        nn.init.normal(w)


def test_trunc_normal_draws_nothing_on_meta():
    w = torch.empty(3, 4, device="meta")
    assert nn.init.trunc_normal_(w) is w and w.is_meta


def test_gradient_clipping():
    p = nn.Parameter(torch.zeros(2))
    p.grad = torch.tensor([3.0, 4.0])
    assert nn.utils.clip_grad_norm_([p], 1.0).item() == pytest.approx(5)
    same(p.grad, [0.6, 0.8])
    nn.utils.clip_grad_value_(p, 0.7)
    same(p.grad, [0.6, 0.7])


@pytest.mark.parametrize("foreach", [None, True, False])
@pytest.mark.parametrize("order", [2.0, 1.0, 0.0, 0.5, 3.0, -1.0, math.inf, -math.inf])
def test_clipping_of_gradients_without_elements(order, foreach):
    """They add nothing, to whatever norm."""

    def clipped(*shapes):
        params = [nn.Parameter(torch.ones(shape, dtype=torch.float64)) for shape in shapes]
        for p in params:
            p.grad = torch.full_like(p, 3.0)
        norm = nn.utils.clip_grad_norm_(params, 1.0, order, foreach=foreach)
        nn.utils.clip_grad_value_(params, 0.5, foreach=foreach)
        return norm, params[-1].grad

    for found, expected in zip(clipped((0,), (2, 0), (3,)), clipped((3,)), strict=True):
        assert torch.equal(found, expected)
    norm, grad = clipped((0, 2))
    assert norm.item() == 0 and norm.dtype == torch.float64 and norm.dim() == 0
    assert grad.shape == (0, 2)


class _Tied(nn.Module):
    """One parameter under three names, one buffer under two, and a layer in two places."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2, bias=False)
        self.b = nn.Linear(2, 2, bias=False)
        self.b.weight = self.also = self.a.weight
        self.register_buffer("x", torch.ones(2))
        self.b.register_buffer("y", self.x)
        self.again = nn.Sequential(self.a, nn.Identity())

    def is_tied(self):
        return (
            self.a.weight is self.b.weight is self.also is self.again[0].weight
            and self.x is self.b.y
            and len(list(self.parameters())) == 1
            and len(list(self.buffers())) == 1
        )


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.to_empty(device="cpu"),
        lambda m: m.to("meta"),
        lambda m: m.to("meta").to_empty(device="cpu"),
        lambda m: m.double().half(),
        lambda m: m.load_state_dict(m.state_dict(), assign=True),
        lambda m: m.load_state_dict(m.state_dict(keep_vars=True), assign=True),
        lambda m: m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()}, assign=True),
        lambda m: m.to("meta").load_state_dict(_Tied().state_dict(), assign=True),
        lambda m: m._apply(lambda t: t.clone()),
        copy.deepcopy,
    ],
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_names_of_one_tensor_stay_names_of_one(change, overwrite):
    model = _Tied()
    torch.__future__.set_overwrite_module_params_on_conversion(overwrite)
    try:
        change(model)
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    assert model.is_tied()


def test_of_different_values_for_one_tensor_the_last_counts():
    for assign in (False, True):
        model = _Tied()
        own = model.state_dict().items()
        state = {k: torch.full(v.shape, float(i)) for i, (k, v) in enumerate(own)}
        model.load_state_dict(state, assign=assign)
        last = [k for k in state if state[k].dim() == 2][-1]
        assert model.is_tied() and torch.equal(model.a.weight, state[last])
        assert (model.a.weight.data_ptr() == state[last].data_ptr()) == assign


def test_a_state_is_not_marked_by_loading_it():
    model, state = nn.Linear(2, 2), nn.Linear(2, 2).state_dict()
    kept = copy.deepcopy(state._metadata)
    model.load_state_dict(state, assign=True)
    assert state._metadata == kept
    weight = model.weight
    model.load_state_dict(state)
    assert model.weight is weight


class _Own(nn.Parameter):
    pass


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Parameter(torch.ones(2)),
        lambda: nn.Parameter(torch.ones(2), requires_grad=False),
        lambda: _Own(torch.ones(2)),
        lambda: nn.Buffer(torch.ones(2)),
        lambda: nn.UninitializedParameter(),
        lambda: nn.UninitializedBuffer(),
    ],
)
def test_copies_keep_attributes(make):
    p = make()
    p.tag, p.list = "x", [1]
    p.itself = p
    q = copy.deepcopy(p)
    assert type(q) is type(p) and q.requires_grad == p.requires_grad and q.itself is q
    assert q.tag == "x" and q.list == [1] and q.list is not p.list
    del p.itself
    for r in (copy.copy(p), pickle.loads(pickle.dumps(p))):
        assert r.tag == "x" and r.list == [1] and r.requires_grad == p.requires_grad
    model = nn.Module()
    model.p = model.q = p
    both = copy.deepcopy(model)
    assert both.p is both.q is not p and both.p.tag == "x"


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("scale", [1e-300, 1e300, float("inf"), float("nan"), -1.0])
@pytest.mark.parametrize("antialias", [False, True])
def test_interpolation_with_a_strange_scale(mode, scale, antialias):
    # What comes out means nothing, but it is made of pixels of the image.
    if antialias and mode.startswith("nearest"):
        return
    image = torch.rand(1, 1, 5, 7)
    out = torch.ops.rushlight._interpolate.default(
        image, [4, 9], mode, False, antialias, None, scale, scale
    )
    assert out.shape == (1, 1, 4, 9)
    grad = torch.ops.rushlight._interpolate_backward.default(
        out, [1, 1, 5, 7], 2, mode, False, antialias, None, scale, scale
    )
    assert grad.shape == image.shape


def test_keys_of_parameter_dicts_are_strings():
    with pytest.raises(TypeError, match="cannot be used as a key"):
        torch.nn.ParameterDict({1: torch.ones(1)})


def test_a_subclass_is_asked_for_what_modules_own():
    asked = []

    class Asked(Net):
        def __getattr__(self, name):
            asked.append(name)
            return super().__getattr__(name)

    class Below(Asked):
        pass

    for kind in (Asked, Below):
        net = kind()
        asked.clear()
        assert net.first is net._modules["first"] and net.mean is net._buffers["mean"]
        assert net.first.weight is not None and net.training
        assert asked == ["first", "mean", "first"]
        with pytest.raises(AttributeError, match="no attribute 'third'"):
            _ = net.third


def test_lazy_modules_move_to_meta():
    lazy = nn.LazyLinear(2).to("meta")
    assert nn.parameter.is_lazy(lazy.weight) and lazy.weight.device.type == "meta"
    assert lazy(torch.ones(1, 3, device="meta")).shape == (1, 2)
    assert lazy.weight.is_meta and lazy.weight.shape == (2, 3)


def test_an_unexpected_key_is_told_once():
    net = nn.Sequential(OrderedDict(a=nn.Sequential(OrderedDict(b=nn.Linear(1, 1)))))
    for key in ("a.", "a.b.", "a.b", "a.c", "a.b.weight.x", "x", ""):
        assert net.load_state_dict({**net.state_dict(), key: 1}, strict=False) == ([], [key])
