"""Random numbers: the same seed gives PyTorch's numbers, and states move both ways."""

import os

import pytest

import rushlight

torch = pytest.importorskip("torch")
SIZES = (0, 1, 5, 15, 16, 17, 31, 32, 33, 624, 1000, 1041)


def same(mine, theirs):
    """Whether both hold the same numbers, bit for bit."""
    assert str(mine.dtype) == str(theirs.dtype) and tuple(mine.shape) == tuple(theirs.shape)
    return mine.double().tolist() == theirs.double().tolist()


# Fills go through memory, ops that make a contiguous result through its elements.
IN_ORDER = [
    *(
        f"lib.empty(5, 6).t().{fill}"
        for fill in (
            "normal_()",
            "uniform_()",
            "bernoulli_()",
            "exponential_()",
            "cauchy_()",
            "log_normal_()",
            "geometric_(0.3)",
        )
    ),
    *(
        "lib.empty(3, 4).t().normal_()",
        "lib.empty(5, 6, dtype=lib.int64).t().random_(100)",
        "lib.empty(10, 12)[::2, ::3].t().normal_()",
    ),
    *(
        "lib.empty(2, 3, 4, 5).permute(2, 0, 3, 1).normal_()",
        "lib.empty(2, 3, 4, 5).to(memory_format=lib.channels_last).uniform_()",
    ),
    *(
        "lib.empty(5, 6).t().bernoulli_(lib.linspace(0, 1, 30).view(6, 5))",
        "lib.rand_like(lib.empty(5, 6).t())",
        "lib.randn_like(lib.empty(5, 6).t())",
    ),
    *(
        "lib.randint_like(lib.empty(5, 6).t(), 9)",
        "lib.bernoulli(lib.linspace(0, 1, 30).view(5, 6).t())",
        "lib.normal(lib.zeros(5, 6).t(), 1.0)",
    ),
    *(
        "lib.poisson(lib.full((5, 6), 4.0).t())",
        "lib.nn.functional.dropout(lib.ones(5, 6).t())",
        "lib.nn.functional.gumbel_softmax(lib.ones(5, 6).t())",
    ),
    *(
        "lib.nn.functional.dropout(lib.ones(2, 3, 4, 5).to(memory_format=lib.channels_last))",
        "lib.nn.init.trunc_normal_(lib.empty(5, 6).t())",
    ),
    "lib.multinomial(lib.linspace(0.1, 1, 30).view(5, 6).t(), 2)",
]


@pytest.mark.parametrize("call", IN_ORDER)
def test_order_of_elements(call):
    mine, theirs = both(lambda lib: eval(call, {"lib": lib}))
    assert mine.stride() == theirs.stride() and close(mine, theirs)


def close(mine, theirs):
    """The same up to the last bit or two, where processors without FMA differ."""
    a, b = torch.tensor(mine.double().tolist(), dtype=torch.float64), theirs.double()
    return torch.allclose(a, b, rtol=4e-7, atol=3e-7)


def both(make, seed=3):
    """What `make(lib)` gives in both libraries for the same seed."""
    for lib in (rushlight, torch):
        lib.manual_seed(seed)
    return make(rushlight), make(torch)


@pytest.mark.parametrize("seed", [0, 3, -1, 2**63 - 1])
def test_seeds(seed):
    assert same(*both(lambda lib: lib.rand(5), seed))
    assert rushlight.initial_seed() == torch.initial_seed()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("size", SIZES)
def test_uniform_and_exponential(dtype, size):
    def make(lib):
        t = lib.empty(size, dtype=getattr(lib, dtype))
        first = t.uniform_(-3.3, 7.7).clone()
        return lib.cat([first, t.exponential_(1.7), lib.rand(size, dtype=t.dtype)])

    assert same(*both(make))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES)
def test_normal(dtype, size):
    def make(lib):
        kind = getattr(lib, dtype)
        t = lib.empty(size, dtype=kind)
        strided = lib.empty(size, 2, dtype=kind)[:, 0].normal_()
        return lib.cat([lib.randn(size, dtype=kind), t.normal_(1.5, 0.7), strided])

    assert close(*both(make))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "float32"])
def test_integers(dtype):
    def make(lib):
        t = lib.empty(100, dtype=getattr(lib, dtype))
        return lib.cat(
            [lib.randint(2, 90, (50,), dtype=t.dtype), t.random_(), t.clone().random_(7)]
        )

    assert same(*both(make))


@pytest.mark.parametrize("high", [2**28 - 1, 2**28, 2**31, 2**32, 2**40, 2**63 - 1])
def test_wide_integers(high):
    mine, theirs = both(lambda lib: lib.randint(-5, high, (100,)))
    assert mine.tolist() == theirs.tolist()


@pytest.mark.parametrize("size", [0, 1, 2, 1000, 40000])
def test_permutations(size):
    mine, theirs = both(lambda lib: lib.randperm(size))
    assert mine.tolist() == theirs.tolist()


def test_bernoulli_and_dropout():
    def make(lib):
        p = lib.linspace(0, 1, 100)
        kept = lib.nn.functional.dropout(lib.ones(1000), 0.3) != 0
        return lib.cat([lib.bernoulli(p), lib.empty(100).bernoulli_(0.3), kept.float()])

    assert same(*both(make))


def test_initial_weights():
    def make(lib):
        layers = [lib.nn.Linear(20, 30), lib.nn.Conv2d(3, 8, 3), lib.nn.Embedding(7, 5)]
        return lib.cat([p.detach().flatten() for layer in layers for p in layer.parameters()])

    assert close(*both(make))


def test_states_move():
    for lib, other in ((rushlight, torch), (torch, rushlight)):
        lib.manual_seed(5)
        lib.randn(3)
        lib.rand(700)
        state = lib.get_rng_state().tolist()
        numbers = [*lib.randn(2).tolist(), *lib.rand(3).tolist()]
        other.set_rng_state(other.tensor(state, dtype=other.uint8))
        assert other.get_rng_state().tolist() == state
        assert [*other.randn(2).tolist(), *other.rand(3).tolist()] == numbers


def test_generators_of_their_own():
    def make(lib):
        g = lib.Generator().manual_seed(9)
        return lib.cat([lib.rand(5, generator=g), lib.randn(5, generator=g)])

    mine, theirs = both(make)
    assert same(mine, theirs)
    assert rushlight.rand(3).tolist() == torch.rand(3).tolist()  # the default one was not touched


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_the_same_state():
    rushlight.manual_seed(1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, repr(rushlight.rand(3).tolist()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1000).decode() == repr(rushlight.rand(3).tolist())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_counts(dtype):
    def rates(lib):
        return lib.linspace(0, 60, 301, dtype=getattr(lib, dtype))

    assert same(*both(lambda lib: lib.poisson(rates(lib))))
    for p in (0.0, 0.03, 0.4, 0.7, 1.0):
        assert same(
            *both(
                lambda lib, p=p: lib.binomial(
                    rates(lib).floor(), lib.full((301,), p, dtype=getattr(lib, dtype))
                )
            )
        )


LAYERS = [
    f"nn.{kind}(3, 4, {options})"
    for kind in ("LSTM", "GRU", "RNN")
    for options in (
        "2, dropout=0.5",
        "2, dropout=0.5, batch_first=True",
        "3, dropout=0.3, batch_first=True, bidirectional=True",
    )
] + [
    f"nn.{kind}(3, 1, 6, batch_first={first}, norm_first={norm})"
    for kind in ("TransformerEncoderLayer", "TransformerDecoderLayer")
    for first in (True, False)
    for norm in (True, False)
]


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("layer", LAYERS)
def test_masks_within_layers(layer, grad):
    """Drawn in the order of time, wherever the batch stands."""

    def run(lib):
        lib.manual_seed(0)
        made = eval(layer, {"nn": lib.nn}).double()
        x = lib.randn(5, 6, 3, dtype=lib.float64)
        lib.manual_seed(1)
        with lib.set_grad_enabled(grad):
            y = made(x, x) if "Decoder" in layer else made(x)
        return (y[0] if isinstance(y, tuple) else y).reshape(-1).tolist()

    assert run(rushlight) == pytest.approx(run(torch), rel=1e-9, abs=1e-12)
