"""Several Python threads at once: backward, shared graphs, saved tensors, allocation, random numbers, regions.

`./dev sanitize` runs this file under ThreadSanitizer, too.
"""

import os
import subprocess
import sys
import threading

import pytest

import rushlight as torch
from rushlight.utils._python_dispatch import TorchDispatchMode
from tests.fuzz import chains

THREADS, ROUNDS = 4, 12


def together(work, threads=THREADS):
    """Runs work(i) in several threads that start at once; the first error is raised here."""
    barrier, errors = threading.Barrier(threads), []

    def run(i):
        try:
            barrier.wait()
            work(i)
        except BaseException as error:
            errors.append(error)

    team = [threading.Thread(target=run, args=(i,)) for i in range(threads)]
    for t in team:
        t.start()
    for t in team:
        t.join()
    if errors:
        raise errors[0]


@pytest.fixture(autouse=True, params=[1, 3])
def threads_of_an_op(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


def test_a_model_and_an_optimiser_for_each_thread():
    losses = {}

    def work(i):
        generator = torch.Generator().manual_seed(3)
        net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
        with torch.no_grad():
            for p in net.parameters():
                p.copy_(torch.randn(p.shape, generator=generator) * 0.3)
        optimiser = torch.optim.Adam(net.parameters(), lr=0.05)
        x = torch.randn(64, 6, generator=generator)
        target = x[:, :2] * 2
        for _ in range(ROUNDS):
            optimiser.zero_grad()
            loss = torch.nn.functional.mse_loss(net(x), target)
            loss.backward()
            optimiser.step()
        losses[i] = loss.item()

    together(work)
    assert len(set(losses.values())) == 1 and losses[0] < 6


def test_threads_add_to_the_gradient_of_one_leaf():
    weight = torch.ones(300, requires_grad=True)

    def work(i):
        for _ in range(ROUNDS):
            (weight * (i + 1)).sum().backward()

    together(work)
    assert torch.equal(weight.grad, torch.full((300,), float(ROUNDS * sum(range(1, THREADS + 1)))))


def test_threads_share_a_graph_and_its_saved_tensors():
    x = torch.full((50,), 2.0, requires_grad=True)
    shared = (x * x).exp().log() * x

    def work(i):
        for _ in range(ROUNDS):
            (grad,) = torch.autograd.grad((shared * (i + 1)).sum(), x, retain_graph=True)
            assert torch.allclose(grad, torch.full((50,), 12.0 * (i + 1)), rtol=1e-4)

    together(work)


def test_graphs_die_in_other_threads_than_made_them():
    made, lock = [], threading.Lock()

    def work(i):
        for k in range(ROUNDS * 4):
            x = torch.ones(40, requires_grad=True)
            y = (x * 2).relu()[1:].view(-1).cumsum(0)
            with lock:
                made.append((x, y))
                x, y = made.pop(k % len(made))
            y.sum().backward()
            assert x.grad[-1] == 2
            del x, y

    together(work)


def test_versions_and_views_of_a_shared_tensor():
    base = torch.zeros(THREADS, 1000)

    def work(i):
        for _ in range(ROUNDS * 4):
            base[i].add_(1)
            base.view(-1)[i * 1000 : (i + 1) * 1000].detach().mul_(1)

    together(work)
    assert torch.equal(base, torch.full((THREADS, 1000), ROUNDS * 4.0))


def test_blocks_wander_between_threads():
    blocks, lock = [], threading.Lock()

    def work(i):
        for k in range(ROUNDS * 20):
            value = float(i * 1000 + k)
            t = torch.full((1 << (k % 17),), value)
            with lock:
                blocks.append((value, t))
                value, t = blocks.pop(len(blocks) // 2)
            assert t[0] == value and t[-1] == value

    together(work)
    assert not blocks


def test_grad_mode_and_default_generator_belong_to_whom_they_should():
    def work(i):
        for _ in range(ROUNDS * 4):
            with torch.set_grad_enabled(i % 2 == 0):
                y = torch.ones(3, requires_grad=True) * 2
                assert y.requires_grad == (i % 2 == 0)
            torch.rand(100)
            torch.randperm(10)

    together(work)


def test_hooks_and_custom_functions():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 + x * 0

    x = torch.ones(64, dtype=torch.float64, requires_grad=True)
    shared = x
    for _ in range(20):
        shared = Twice.apply(shared) * 0.5
    seen = []
    shared.register_hook(lambda g: seen.append(1))
    loss = shared.sum()

    def work(i):
        for _ in range(ROUNDS):
            loss.backward(retain_graph=True)

    together(work)
    assert len(seen) == THREADS * ROUNDS and x.grad.tolist() == [THREADS * ROUNDS] * 64


def test_hooks_run_while_other_threads_do():
    """The GIL is released in backward and taken for hooks: nothing waits for ever."""
    x = torch.ones(1, requires_grad=True)

    def work(i):
        for _ in range(50):
            y = x * 2
            y.register_hook(lambda g: g * 1)
            y.sum().backward()

    together(work)
    assert x.grad.tolist() == [THREADS * 100]


def test_objects_die_off_the_gil():
    """The core drops gradients on threads that do not hold the GIL."""
    x = torch.ones(50_000, requires_grad=True)

    def work(i):
        for _ in range(20):
            y = (x * 2).exp()
            y.tag = "a"
            y.sum().backward()

    together(work)
    assert x.grad is not None


def test_large_work_in_several_threads():
    a = torch.arange(200 * 300, dtype=torch.float32).reshape(200, 300) / 1000
    expected = (a @ a.t(), a.sum(0), a.softmax(1), a.sort(1).values)

    def work(i):
        for _ in range(3):
            found = (a @ a.t(), a.sum(0), a.softmax(1), a.sort(1).values)
            assert all(torch.equal(f, e) for f, e in zip(found, expected, strict=True))

    together(work)


def test_gradients_of_a_shared_leaf_add_up_where_a_mode_computes_gradients():
    """A dispatch mode that sees the additions into `.grad` runs a backward to the same leaf."""
    leaf = torch.ones(3, requires_grad=True)
    steps = []

    class Nested(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.__name__.startswith("add_"):
                with torch.enable_grad():
                    (leaf * 10).sum().backward()
                steps.append(1)
            return func(*args, **(kwargs or {}))

    def work(i):
        with Nested():
            for _ in range(ROUNDS):
                leaf.sum().backward()
                assert leaf.grad is not None

    together(work)
    assert leaf.grad.tolist() == [THREADS * ROUNDS + 10 * len(steps)] * 3 and steps


def test_tangents_of_a_shared_tensor():
    """Levels of different threads meet in the list of one tensor's tangents."""
    shared = torch.linspace(0.1, 1, 50)
    view = shared[10:20]

    def work(i):
        for k in range(ROUNDS):
            factor = torch.full((50,), float(i + k + 1))
            _, tangent = torch.func.jvp(lambda x: x.sin() * 2, (shared,), (factor,))
            assert torch.allclose(tangent, 2 * shared.cos() * factor)
            _, tangent = torch.func.jvp(torch.exp, (view,), (factor[:10],))
            assert torch.allclose(tangent, view.exp() * factor[:10])

    together(work)


def test_graphs_of_a_shared_graph():
    """Backward of one graph in several threads, each of which records it."""
    x = torch.linspace(0.5, 2, 40, requires_grad=True)
    shared = (x**3 * x.exp().log()).sum()

    def work(i):
        for _ in range(ROUNDS):
            (first,) = torch.autograd.grad(shared, x, create_graph=True)
            (second,) = torch.autograd.grad(first.sum(), x, retain_graph=True)
            assert torch.allclose(first, 4 * x**3, rtol=1e-4)
            assert torch.allclose(second, 12 * x**2, rtol=1e-4)

    together(work)


def test_readers_of_one_checkpoint(tmp_path):
    """Each storage is one, whoever asks first; reading goes on side by side."""
    state = {f"w{k}": torch.full((1000 + k,), float(k)) for k in range(40)}
    state["mask"] = torch.ones(77, dtype=torch.bool)
    torch.save(state, tmp_path / "state.pt")
    reader = torch._C._CheckpointReader(str(tmp_path / "state.pt"), False)
    keys = sorted(r for r in reader.records() if r.startswith("data/"))
    found = [[] for _ in range(8)]

    def work(i):
        for key in keys if i % 2 else reversed(keys):
            number = int(key.removeprefix("data/"))
            size = 77 if number == 40 else 1000 + number
            dtype = torch.bool if number == 40 else torch.float32
            storage = reader.storage(key.removeprefix("data/"), dtype, size)
            assert storage.nbytes() == size * dtype.itemsize
            found[i].append((key, storage.data_ptr()))

    together(work, threads=8)
    assert len(keys) == 41
    assert all(sorted(f) == sorted(found[0]) for f in found)


# ---- regions of `compile` ----

NOTED = 10_000  # elements that an op needs to be noted


def test_networks_learn_in_regions_of_their_own():
    """Forward, backward and the optimiser's step of each thread are noted; all threads read one batch."""
    x = torch.linspace(-1, 1, 120 * 100).reshape(120, 100)

    def learned(step):
        generator = torch.Generator().manual_seed(5)
        weight = torch.randn(100, 100, generator=generator).mul_(0.1).requires_grad_()
        optimiser = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
        for _ in range(ROUNDS):
            step(weight, optimiser)
        return weight.detach()

    def step(weight, optimiser):
        optimiser.zero_grad()
        loss = (((x @ weight).tanh() * 2 - x) ** 2).mean()
        loss.backward()
        optimiser.step()

    expected = learned(step)
    noted = torch.compile(step)

    def work(i):
        assert torch.equal(learned(noted), expected)

    together(work)


def test_a_thread_reads_what_others_have_noted():
    """One that notes goes on with its results while others look at them, in a region or not."""
    shared = torch.linspace(0, 1, NOTED)
    box, lock = [], threading.Lock()
    looks = [
        lambda t: t[-1].item(),
        lambda t: t.numpy()[-1],
        lambda t: t.max().item(),
        lambda t: (t * 1)[-1].item(),
        lambda t: t.clone().tolist()[-1],
        lambda t: (t.view(100, 100) @ torch.ones(100, 1))[-1, 0].item() / 100,
    ]

    def steps(i):
        for k in range(ROUNDS * 3):
            noted = shared * 0 + (i + 1)
            more = noted + shared
            with lock:
                box.append((i + 1, noted))
                value, other = box.pop(k % len(box))
            assert looks[k % len(looks)](other) == pytest.approx(value, rel=1e-4)
            assert more[-1] == i + 2

    noted_steps = torch.compile(steps)
    together(lambda i: (noted_steps if i else steps)(i))


def test_a_write_comes_after_what_another_thread_has_noted_to_read():
    x = torch.zeros(NOTED)
    phase = threading.Barrier(2)

    @torch.compile
    def read(written):
        for k in range(ROUNDS):
            noted = x * 2 + 1
            phase.wait(60)
            phase.wait(60)  # x has been written
            assert noted[0] == noted[-1] == 2 * (written + k) + 1
            phase.wait(60)

    def write():
        for _ in range(ROUNDS):
            phase.wait(60)
            x.add_(1)
            phase.wait(60)
            phase.wait(60)

    together(lambda i: write() if i else read(0), threads=2)
    noted_write = torch.compile(write)
    together(lambda i: noted_write() if i else read(ROUNDS), threads=2)
    assert x.tolist() == [2 * ROUNDS] * NOTED


def test_what_has_been_noted_dies_in_other_threads():
    shared = torch.linspace(0, 1, NOTED)
    box, lock = [], threading.Lock()

    @torch.compile
    def work(i):
        for k in range(ROUNDS * 8):
            noted = shared + i
            kept = noted * 2
            with lock:
                box.extend((noted + 1, shared * k))
                gone = [box.pop(k % len(box)) for _ in range(min(2, len(box)))]
            del noted, gone
            if k % 5 == 0:
                assert kept[-1] == 2 * (i + 1)

    together(work)


def test_code_is_forgotten_and_explained_while_it_runs():
    shared = torch.linspace(0, 1, NOTED)

    def function(length):
        x = shared
        for k in range(length):
            x = x * 2 if k % 2 else x + 1
        return x

    expected = [function(length) for length in range(8)]
    compiled = torch.compile(function)

    def work(i):
        for k in range(ROUNDS * 4):
            if i == 0:
                torch.compiler.reset()
                explained = torch._dynamo.explain(function)(3)
                assert "1 chain of 3 steps" in str(explained)
            else:
                assert torch.equal(compiled((i + k) % 8), expected[(i + k) % 8])

    together(work)


def test_random_programs_in_regions_of_their_own():
    """The fuzzer's, each with the bits that it has when it is alone and nothing is noted."""
    lines = [chains.program(seed) for seed in range(THREADS * 5)]
    expected = [chains.outcome(program) for program in lines]

    def work(i):
        for k in range(i, len(lines), THREADS):
            assert chains.compiled_outcome(lines[k]) == expected[k], k

    together(work)


DAEMONS = {
    "ops": "a = torch.randn(300, 300)\n while True: (a @ a).sum().item()",
    "hooks": """a = torch.randn(99, 99, requires_grad=True)
 while True:
  b = a * 2
  b.register_hook(lambda g: g * sum(range(50)))
  b.sum().backward()""",
    "functions": """class Twice(torch.autograd.Function):
  @staticmethod
  def forward(ctx, x): return x * 2 + 0 * sum(range(50))
  @staticmethod
  def backward(ctx, g): return g * 2 + 0 * sum(range(50))
 a = torch.randn(99, 99, requires_grad=True)
 while True: Twice.apply(a).sum().backward()""",
    "subclasses": """class Own(torch.Tensor):
  @classmethod
  def __torch_function__(cls, function, types, args=(), kwargs=None):
   sum(range(50))
   return super().__torch_function__(function, types, args, kwargs or {})
 a = torch.randn(99, 99).as_subclass(Own)
 while True: (a + a).sum()""",
    "regions": """function = torch.compile(lambda x, k: ((x * 2 + k).relu() - x) * k)
 a = torch.randn(99, 99)
 while True:
  threading.Thread(target=lambda: [function(a, k) for k in range(3)], daemon=True).start()
  function(a, 1).sum().item()""",
    "numbers": """class Number:
  def __index__(self): return sum(range(500)) // 124750
 a = torch.ones(3)
 while True: a[Number()], torch.ones(Number(), Number())""",
}


@pytest.mark.parametrize("kind", DAEMONS)
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="threads that never end are leaks")
def test_daemon_threads_may_compute_while_the_interpreter_ends(kind):
    program = (
        f"import rushlight as torch, threading, time\ndef work():\n {DAEMONS[kind]}\n"
        "for _ in range(4): threading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(0.2)\nprint('end')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_a_level_ends_while_another_thread_computes_with_its_duals():
    x = torch.linspace(0, 1, 64)
    box = [x]
    stop = threading.Event()
    errors = []

    def compute():
        while not stop.is_set():
            dual = box[0]
            try:
                result = (dual[1:] * dual[:-1]).sin().sum()
                assert result.item() == pytest.approx((x[1:] * x[:-1]).sin().sum().item())
            except Exception as error:
                errors.append(error)

    workers = [threading.Thread(target=compute) for _ in range(2)]
    for w in workers:
        w.start()
    for i in range(300):
        with torch.autograd.forward_ad.dual_level():
            box[0] = torch.autograd.forward_ad.make_dual(x, torch.full((64,), float(i)))
            tangent = torch.autograd.forward_ad.unpack_dual((box[0] * box[0]).sum()).tangent
            assert tangent.item() == pytest.approx(2 * i * x.sum().item(), rel=1e-5)
    stop.set()
    for w in workers:
        w.join()
    assert not errors
