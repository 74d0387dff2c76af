"""Steps that are recorded and replayed: `compiler.capture` and `compile(mode="reduce-overhead")`."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.compiler import capture
from rushlight.nn import functional as F


def make_mlp():
    return nn.Sequential(
        nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 4)
    )


def make_convolutional():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.3),
        nn.Flatten(),
        nn.LazyLinear(4),
    )


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.last = nn.LSTM(6, 10, batch_first=True), nn.Linear(10, 4)

    def forward(self, x):
        return self.last(self.rnn(x)[0][:, -1])


class Attentive(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.last = nn.Linear(8, 4)

    def forward(self, x):
        return self.last(self.layer(x).mean(1))


MODELS = {
    "mlp": (make_mlp, (8, 12)),
    "convolutional": (make_convolutional, (8, 1, 10, 10)),
    "recurrent": (Recurrent, (8, 5, 6)),
    "attentive": (Attentive, (8, 5, 8)),
}
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05),
}


def classification(model, optimizer, clip=None):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return loss

    return step


def batches(shape, count=9):
    generator = torch.Generator().manual_seed(5)
    return [
        (torch.randn(shape, generator=generator), torch.randint(4, shape[:1], generator=generator))
        for _ in range(count)
    ]


def trained(name, optimizer, wrap, clip=None, before=None):
    """Losses of some steps, and the state of model and optimiser behind them."""
    make, shape = MODELS[name]
    torch.manual_seed(0)
    model = make()
    model(batches(shape, 1)[0][0])  # sizes of lazy layers
    torch.manual_seed(0)
    model.apply(lambda m: m.reset_parameters() if hasattr(m, "reset_parameters") else None)
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    step = wrap(classification(model, optimizer, clip))
    losses = []
    for i, (x, y) in enumerate(batches(shape)):
        if before is not None:
            before(i, model, optimizer)
        losses.append(step(x, y).detach().clone())
    gradients = [p.grad for p in model.parameters()]
    state = [v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
    return step, losses + [*model.state_dict().values()] + gradients + state


def assert_same_bits(a, b):
    assert len(a) == len(b) > 0
    for one, other in zip(a, b, strict=True):
        assert one.dtype == other.dtype
        assert one.detach().numpy().tobytes() == other.detach().numpy().tobytes()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_replays_give_the_bits_of_the_step(name, optimizer):
    _, expected = trained(name, optimizer, lambda step: step)
    step, got = trained(name, optimizer, capture)
    assert step.replays >= 5
    assert_same_bits(got, expected)


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_for_any_number_of_threads(threads):
    _, expected = trained("convolutional", "adam", lambda step: step, clip=0.5)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        step, got = trained("convolutional", "adam", capture, clip=0.5)
    finally:
        torch.set_num_threads(before)
    assert step.replays >= 5
    assert_same_bits(got, expected)


# ---- gradients that a step begins with ----


def grads_after(step_of, wrap, between=None, count=8):
    torch.manual_seed(1)
    model = make_mlp()
    step = wrap(step_of(model))
    for x, y in batches((8, 12), count):
        step(x, y)
        if between is not None:
            between(model)
    return step, [p.grad for p in model.parameters() if p.grad is not None]


def accumulating(model):
    def step(x, y):
        F.cross_entropy(model(x), y).backward()

    return step


def filling(model):
    def step(x, y):
        for p in model.parameters():
            if p.grad is not None:
                p.grad.zero_()
        F.cross_entropy(model(x), y).backward()

    return step


@pytest.mark.parametrize(
    "between", [None, nn.Module.zero_grad, lambda model: model.zero_grad(set_to_none=False)]
)
@pytest.mark.parametrize("step_of", [accumulating, filling])
def test_gradients_accumulate_as_in_the_step(step_of, between):
    _, expected = grads_after(step_of, lambda step: step, between)
    step, got = grads_after(step_of, capture, between)
    assert step.replays >= 4
    if between is not nn.Module.zero_grad:
        assert_same_bits(got, expected)


def test_a_gradient_that_was_removed_is_begun_anew():
    """The recording adds to a gradient that is there; without one the step is recorded again."""
    results = []
    for wrap in (lambda step: step, capture):
        torch.manual_seed(1)
        model = make_mlp()
        step = wrap(accumulating(model))
        for i, (x, y) in enumerate(batches((8, 12), 12)):
            if i == 6:
                model.zero_grad()
            step(x, y)
        results.append([p.grad for p in model.parameters()])
    assert_same_bits(*results)


# ---- what a step meets ----


def test_settings_of_optimisers_count():
    def before(i, model, optimizer):
        if i == 6:
            optimizer.param_groups[0]["lr"] = 0.5

    _, expected = trained("mlp", "momentum", lambda step: step, before=before)
    step, got = trained("mlp", "momentum", capture, before=before)
    assert step.replays >= 3
    assert_same_bits(got, expected)


@pytest.mark.parametrize("change", ["state", "group"])
def test_what_optimisers_hold_counts(change):
    results = []
    for wrap in (lambda step: step, capture):
        saved = {}
        extra = nn.Parameter(torch.ones(3))

        def before(i, model, optimizer, saved=saved, extra=extra):
            if i == 2:
                saved["state"] = copy.deepcopy(optimizer.state_dict())
            if i == 6 and change == "state":
                optimizer.load_state_dict(saved["state"])
            if i == 6 and change == "group":
                extra.grad = torch.ones(3)
                optimizer.add_param_group({"params": [extra], "lr": 0.5})

        step, got = trained("mlp", "adam", wrap, before=before)
        results.append(got)
    assert step.replays >= 3
    assert_same_bits(*results)


def test_modes_and_parameters_of_modules_count():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)).eval()
    step = capture(torch.no_grad()(lambda x: model(x)))
    x = torch.randn(6, 4)
    for _ in range(5):
        assert torch.equal(step(x), model(x))
    replays = step.replays
    assert replays >= 2
    model[0].weight = nn.Parameter(torch.ones(4, 4))
    assert torch.equal(step(x), model(x))
    for p in (0.25, 0.75):
        model[1].p = p
        model.train()
        state = torch.get_rng_state()
        for _ in range(4):
            got = step(x)
        torch.set_rng_state(state)
        for _ in range(4):
            expected = model(x)
        assert torch.equal(got, expected)
        model.eval()
    assert step.replays > replays


def test_parameters_that_are_written_in_place_are_used_as_they_are():
    model = nn.Linear(3, 3)
    step = capture(torch.no_grad()(lambda x: model(x)))
    x = torch.randn(2, 3)
    for _ in range(4):
        step(x)
    model.load_state_dict({"weight": torch.eye(3), "bias": torch.zeros(3)})
    assert torch.equal(step(x), x)
    model.weight.data = torch.eye(3) * 2
    assert torch.equal(step(x), x * 2)
    assert step.replays >= 3


def test_each_kind_of_arguments_has_its_recording():
    def step(x, scale, *, shift=0):
        return x * scale + shift

    captured = capture(step)
    for x in (torch.arange(3.0), torch.arange(4), torch.arange(6.0).view(2, 3).t()):
        for scale in (2, 3.5):
            for _ in range(4):
                assert torch.equal(captured(x, scale, shift=1), step(x, scale, shift=1))
    assert len(captured.graphs) == 6
    with pytest.raises(TypeError, match="hashable"):
        captured(torch.ones(2), bytearray(b"1"))


def test_nested_arguments_and_results():
    @capture
    def step(pair, named):
        total = pair[0] + named["b"]
        return {"total": total, "text": "sum", "views": (total[:1], total.t())}

    for i in range(6):
        a, b = torch.full((2, 3), float(i)), torch.ones(2, 3)
        got = step((a, None), {"b": b})
        assert got["text"] == "sum"
        assert torch.equal(got["total"], a + b)
        assert torch.equal(got["views"][0], (a + b)[:1])
        got["total"].zero_()
        assert got["views"][1].sum() == 0  # the same memory
    assert step.replays == 3


def test_random_numbers_go_on():
    def step(x):
        return F.dropout(x, 0.5) + torch.rand(5) + torch.randn_like(x)

    captured = capture(step)
    torch.manual_seed(3)
    expected = [step(torch.ones(5)) for _ in range(8)]
    torch.manual_seed(3)
    got = [captured(torch.ones(5)) for _ in range(8)]
    assert captured.replays == 5
    assert_same_bits(got, expected)


def test_autocast_within_and_around():
    model = make_mlp()

    def step(x):
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x)

    x = torch.randn(3, 12)
    captured = capture(step)
    for _ in range(5):
        assert captured(x).dtype == torch.bfloat16
        assert torch.equal(captured(x), step(x))
    plain = capture(torch.no_grad()(lambda x: model(x)))
    for _ in range(4):
        plain(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert plain(x).dtype == torch.bfloat16
        assert plain(x).dtype == torch.float32


# ---- what is refused ----


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.sum().item(),
        lambda x: x.tolist(),
        lambda x: x.numpy(),
        lambda x: float(x[0]),
        lambda x: 1 if x[0] > 0 else 2,
        lambda x: x.data_ptr(),
        lambda x: str(x),
        lambda x: torch.manual_seed(0),
        lambda x: torch.set_rng_state(torch.get_rng_state()),
        lambda x: torch.eye(2).to_sparse() @ torch.ones(2, 2),
    ],
)
def test_what_a_replay_would_not_do_raises_where_it_stands(read):
    def step(x):
        y = x + 1
        read(y)
        return y

    captured = capture(step)
    captured(torch.ones(3))
    with pytest.raises(RuntimeError, match=r"capture: the step .*test_capture.py:\d+") as caught:
        captured(torch.ones(3))
    assert any(entry.name == "step" for entry in caught.traceback)
    compiled = torch.compile(step, mode="reduce-overhead")
    for i in range(6):
        assert torch.equal(compiled(torch.full((3,), float(i))), torch.full((3,), i + 1.0))


def test_steps_that_differ_are_told_apart():
    count = 0

    @capture
    def step(x):
        nonlocal count
        count += 1
        return x * count

    with pytest.raises(
        RuntimeError, match=r"value=\{\d\}.* of aten::mul, at .*test_capture.py:\d+:0 was .*value="
    ):
        for _ in range(9):
            step(torch.ones(2))


def test_a_state_that_a_step_keeps_is_refused():
    hidden = torch.zeros(3)

    @capture
    def step(x):
        nonlocal hidden
        hidden = hidden * 0.5 + x
        return hidden + 1

    with pytest.raises(RuntimeError, match="a tensor that the step finds"):
        for _ in range(9):
            step(torch.ones(3))


def test_what_is_to_be_differentiated_is_no_step():
    model = make_mlp()
    x = torch.randn(2, 12)
    with pytest.raises(RuntimeError, match="differentiated"):
        captured = capture(lambda x: model(x))
        for _ in range(5):
            captured(x)
    with pytest.raises(RuntimeError, match="arguments want gradients"):
        capture(lambda x: x * 2)(torch.ones(2, requires_grad=True))
    with pytest.raises(ValueError, match="check"):
        capture(lambda x: x, check=1)


# ---- compile(mode="reduce-overhead") ----


def test_reduce_overhead():
    model = make_convolutional()
    model(torch.randn(2, 1, 10, 10))
    compiled = torch.compile(model, mode="reduce-overhead")
    for training in (False, True, False):
        compiled.train(training)
        model.train(training)
        for _ in range(5):
            x = torch.randn(2, 1, 10, 10)
            state = torch.get_rng_state()
            with torch.set_grad_enabled(training):
                got = compiled(x)
            torch.set_rng_state(state)
            if training:
                got.sum().backward()
                assert model[0].weight.grad is not None
            with torch.no_grad():
                assert torch.equal(got, copy.deepcopy(model)(x))


# ---- replays as such ----


def test_replays_keep_nothing():
    step, _ = trained("mlp", "adam", capture)
    x, y = batches((8, 12), 1)[0]
    for _ in range(3):
        step(x, y)
    kept = [step(x, y) for _ in range(20)]
    assert len({t.data_ptr() for t in kept}) == 20  # results are new
    freed = weakref.ref(kept.pop())
    assert freed() is None
    replayed = weakref.ref(step)
    del step
    gc.collect()
    assert replayed() is None


def test_threads_replay_at_the_same_time():
    model = make_mlp()
    step = capture(torch.no_grad()(lambda x: model(x)))
    inputs = [torch.randn(8, 12) for _ in range(8)]
    for _ in range(4):
        step(inputs[0])
    expected = [model(x).detach() for x in inputs]
    failures = []

    def work(i):
        for _ in range(50):
            if not torch.equal(step(inputs[i]), expected[i]):
                failures.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_failing_replay_leaves_no_mode_behind():
    step = capture(torch.no_grad()(lambda x, i: torch.ones(4)[i] + x))
    i = torch.tensor([1, 2])
    for _ in range(4):
        step(torch.ones(2), i)
    with pytest.raises(IndexError):
        step(torch.ones(2), torch.tensor([1, 9]))
    assert torch.is_grad_enabled()
    assert torch.equal(step(torch.ones(2), i), torch.full((2,), 2.0))


def test_the_graph_can_be_read():
    step, _ = trained("mlp", "adam", capture)
    text = str(step.graphs[0])
    assert "rushlight::adam_step_" in text
    assert "test_capture.py:" in text


def test_reset_forgets_recordings():
    step = capture(lambda x: x + 1)
    for _ in range(4):
        step(torch.ones(2))
    assert step.replays == 1
    torch.compiler.reset()
    assert not step.graphs
    assert torch.equal(step(torch.ones(2)), torch.full((2,), 2.0))


# ---- numbers that change ----

SCHEDULES = {
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 20),
    "steps": lambda o: torch.optim.lr_scheduler.StepLR(o, 3),
    "one cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.2, total_steps=30),
    "exponential": lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9),
}


class Scheduled:
    """A training with a schedule, a weight of the loss that grows, and two groups of parameters."""

    def __init__(self, optimizer, schedule, groups):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        parameters = [
            {"params": self.model[0].parameters(), "lr": 0.01},
            {"params": self.model[2].parameters()},
        ]
        self.optimizer = OPTIMIZERS[optimizer](parameters if groups else self.model.parameters())
        self.schedule = SCHEDULES[schedule](self.optimizer)
        self.weight = 0.5

    def step(self, x):
        self.optimizer.zero_grad()
        loss = (self.model(x).square() * self.weight).mean()
        loss.backward()
        self.optimizer.step()
        return loss

    def results(self, wrap, change=lambda i, run: None):
        step = wrap(self.step)
        out = []
        for i in range(20):
            change(i, self)
            out.append(step(torch.full((3, 4), i / 7.0)).detach().clone())
            self.schedule.step()
            self.weight = 0.5 + i / 7
        return step, out + [p.detach() for p in self.model.parameters()]


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("optimizer", ["momentum", "adam", "adamw", "rmsprop"])
def test_numbers_that_change_are_looked_up(optimizer, schedule, groups):
    _, expected = Scheduled(optimizer, schedule, groups).results(lambda step: step)
    step, got = Scheduled(optimizer, schedule, groups).results(capture)
    assert step.replays >= 14
    assert_same_bits(got, expected)


@pytest.mark.parametrize("wrap", [capture, lambda s: torch.compile(s, mode="reduce-overhead")])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_schedule_of_every_step_is_replayed(optimizer, wrap):
    def before(i, model, optimizer):
        group = optimizer.param_groups[0]
        group["lr"] = 0.1 / (1 + i)
        if "betas" in group:
            group["betas"] = (0.5 + i / 20, 0.999)

    _, expected = trained("mlp", optimizer, lambda step: step, before=before)
    step, got = trained("mlp", optimizer, wrap, before=before)
    assert_same_bits(got, expected)
    if wrap is capture:
        assert step.replays == 5  # of 9 calls: one as written, three recordings


def test_a_setting_that_changes_later_becomes_a_number_of_the_replays():
    def before(i, model, optimizer):
        if i >= 5:
            optimizer.param_groups[0]["lr"] = 0.1 / i
        if i >= 7:
            optimizer.param_groups[0]["weight_decay"] = 0.5

    _, expected = trained("mlp", "momentum", lambda step: step, before=before)
    step, got = trained("mlp", "momentum", capture, before=before)
    assert_same_bits(got, expected)
    assert step.replays >= 1


def test_settings_that_were_alike_are_told_apart():
    results = []
    for wrap in (lambda step: step, capture):
        a, b = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([{"params": [a]}, {"params": [b]}], lr=0.1)

        def step(x, a=a, b=b, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (x * a * b).sum()
            loss.backward()
            optimizer.step()
            return loss

        step = wrap(step)
        for i in range(14):
            for k, group in enumerate(optimizer.param_groups):
                group["lr"] = 0.1 / (1 + i) * (1 + (k if i > 6 else 0))
            step(torch.arange(3.0))
        results.append([a.detach(), b.detach()])
    assert step.replays >= 7
    assert_same_bits(*results)


@pytest.mark.parametrize("first", [True, False])
def test_a_schedule_within_the_step_is_not_replayed(first):
    def train(wrap):
        p = nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([p], lr=0.1)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def step(x):
            optimizer.zero_grad()
            (x * p).square().sum().backward()
            if first:
                schedule.step()
            optimizer.step()
            if not first:
                schedule.step()

        step = wrap(step)
        for _ in range(9):
            step(torch.arange(3.0))
        return [p.detach(), torch.tensor(optimizer.param_groups[0]["lr"])]

    with pytest.raises(RuntimeError, match="cannot be replayed"):
        train(capture)
    expected = train(lambda step: step)
    assert_same_bits(train(lambda s: torch.compile(s, mode="reduce-overhead")), expected)


def test_an_optimizer_of_ones_own_is_recorded_anew():
    class Clipped(torch.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    with torch.no_grad():
                        p.add_(p.grad, alpha=-min(group["lr"], 0.05))

    results = []
    for wrap in (lambda step: step, capture):
        p = nn.Parameter(torch.ones(3))
        optimizer = Clipped([p], 0.5)

        def step(x, p=p, optimizer=optimizer):
            optimizer.zero_grad()
            (x * p).square().sum().backward()
            optimizer.step()

        step = wrap(step)
        for i in range(12):
            optimizer.param_groups[0]["lr"] = 0.5 if i < 6 else 0.01
            step(torch.arange(3.0))
        results.append([p.detach()])
    assert step.replays > 4
    assert_same_bits(*results)


def test_numbers_that_went_together_and_part():
    """Two groups have one rate until one of them gets another."""

    def change(i, run):
        if i >= 12:
            run.optimizer.param_groups[1]["lr"] = 0.3 / i

    def made():
        case = Scheduled("momentum", "exponential", groups=True)
        for group in case.optimizer.param_groups:
            group["lr"] = group["initial_lr"] = 0.05
        case.schedule.base_lrs = [0.05, 0.05]
        return case

    _, expected = made().results(lambda step: step, change)
    step, got = made().results(capture, change)
    assert step.replays >= 8
    assert_same_bits(got, expected)


def test_numbers_that_are_computed_are_refused():
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state = {"i": 1.0}

    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum() * (1 / state["i"])
        loss.backward()
        optimizer.step()
        return loss

    captured = capture(step)
    with pytest.raises(RuntimeError, match="cannot be replayed.* of aten::mul"):
        for _ in range(10):
            captured(torch.ones(1, 2))
            state["i"] += 1.0


def test_modules_compiled_in_place_heed_the_mode():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()
    x = torch.randn(5, 8)
    with torch.no_grad():
        expected = net(x)
        net.compile(mode="reduce-overhead")
        for _ in range(6):
            assert torch.equal(net(x), expected)
        call = vars(net)["_is_compiled"]
        assert call.captured.replays >= 3
        for made in (copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            for _ in range(6):
                assert torch.equal(made(x), expected)
            assert vars(made)["_is_compiled"].captured.replays >= 3
    net(x).sum().backward()  # what it returns is differentiated: it runs as it is written
    assert net[0].weight.grad is not None
    with torch.no_grad():
        net.compile(disable=True)
        assert "_is_compiled" not in vars(net) and torch.equal(net(x), expected)


def test_a_module_that_is_compiled_in_place_heeds_its_backend():
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    model = nn.Linear(3, 3)
    model.compile(backend=backend)
    assert torch.equal(
        model(torch.ones(2, 3)), F.linear(torch.ones(2, 3), model.weight, model.bias)
    )
    assert len(graphs) == 1
