"""Cycles of references that go through C++: Python's collector sees them, and takes none that lives."""

import array
import ctypes
import gc
import io
import mmap
import subprocess
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import rushlight as torch
from tests.python.cycle_hook_knots import KNOTS
from tests.python.cycle_knots import Dirty, Tied, Witness


@pytest.fixture(autouse=True)
def no_automatic_collection(own_garbage_alone):
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_there_are_many_knots():
    assert len(KNOTS) >= 60


@pytest.mark.parametrize("tie", KNOTS, ids=[k.__name__ for k in KNOTS])
def test_collected(tie):
    """What nobody holds is gone after a collection, and is a knot: it would not go by itself."""
    witness = Witness()
    gone = weakref.ref(witness)
    tie(witness)
    del witness
    assert gone() is not None
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("tie", KNOTS, ids=[k.__name__ for k in KNOTS])
def test_kept_while_held(tie):
    """A knot that is held by one end stays whole: backward goes through it as if nothing had been."""
    witness = Witness()
    kept = weakref.ref(witness)
    held = tie(witness)
    del witness
    for _ in range(3):
        gc.collect()
        assert kept() is not None
    names = set(vars(held))
    if held.requires_grad:
        held.sum().backward(retain_graph=True)
        gc.collect()
        held.sum().backward(retain_graph=True)
    assert set(vars(held)) == names
    assert kept() is not None
    del held
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("tie", KNOTS, ids=[k.__name__ for k in KNOTS])
def test_kept_by_a_result(tie):
    """Held by C++ alone: a later result, whose graph is behind it."""
    witness = Witness()
    kept = weakref.ref(witness)
    held = tie(witness)
    if not held.requires_grad:
        pytest.skip("nothing is computed with it")
    result = (held * 2).sum() * 2
    del witness, held
    gc.collect()
    result.backward()
    del result
    gc.collect()
    assert kept() is None


def test_steps_that_write_their_input_take_no_memory():
    """40 steps, each with a graph that nobody runs backward through: 8 MB each."""

    def step():
        Dirty.apply(torch.ones(2_000_000, requires_grad=True) * 1, None)
        Tied.apply(torch.ones(2_000_000, requires_grad=True), lambda c, out: setattr(c, "o", out))

    def allocated():
        gc.collect()
        return torch.cpu.memory_stats()["allocated_bytes.all.current"]

    step()
    before = allocated()
    for _ in range(40):
        step()
        gc.collect()
    assert allocated() - before < 20_000_000


def test_a_thread_that_computes_meanwhile():
    """Collections while other threads run backward through knots take nothing that lives."""
    errors = []
    stop = threading.Event()

    def work():
        try:
            while not stop.is_set():
                for tie in KNOTS[:8]:
                    w = Witness()
                    y = tie(w)
                    for _ in range(3):
                        y = y.sin() + torch.ones(20_000)[:1]
                    y.sum().backward()
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for _ in range(60):
        gc.collect()
    stop.set()
    for t in threads:
        t.join()
    assert not errors


# ---- owners of memory ----


class Owner(bytearray):
    pass


class Array(np.ndarray):
    pass


def tensor_on_an_array():
    owner = np.zeros(4, dtype=np.float32).view(Array)
    return owner, torch.from_numpy(owner)


def tensor_on_a_buffer():
    owner = Owner(16)
    return owner, torch.frombuffer(owner, dtype=torch.float32)


@pytest.mark.parametrize("make", [tensor_on_an_array, tensor_on_a_buffer])
@pytest.mark.parametrize("wants_grad", [False, True])
def test_an_owner_of_memory_that_knows_its_tensor(make, wants_grad):
    owner, t = make()
    t.requires_grad_(wants_grad)
    if wants_grad:
        t.register_hook(types.MethodType(lambda held, g: None, owner))
    owner.tensor, owner.witness = t, Witness()
    gone = weakref.ref(owner.witness)
    view = t.detach()[1:]
    del owner, t
    gc.collect()
    assert gone() is not None and view.tolist() == [0, 0, 0]  # the view holds the memory
    del view
    gc.collect()
    assert gone() is None


def test_an_owner_of_memory_that_lives_keeps_its_tensor():
    owner, t = tensor_on_a_buffer()
    owner.tensor, owner.witness = t, Witness()
    gone = weakref.ref(owner.witness)
    del t
    for _ in range(3):
        gc.collect()
    owner.tensor.fill_(1)
    assert gone() is not None and bytes(owner) == np.ones(4, np.float32).tobytes()
    storage = owner.tensor.untyped_storage()
    del owner
    gc.collect()
    assert gone() is not None and len(storage) == 16
    del storage
    gc.collect()
    assert gone() is None


def an_mmap():
    return mmap.mmap(-1, 64)


OWNERS = {
    "bytearray": lambda: bytearray(64),
    "memoryview": lambda: memoryview(bytearray(64)),
    "part of a memoryview": lambda: memoryview(bytearray(80))[16:],
    "memoryview of BytesIO": lambda: io.BytesIO(b"x" * 64).getbuffer(),
    "array": lambda: array.array("f", [0.0] * 16),
    "ctypes": lambda: (ctypes.c_float * 16)(),
    "mmap": an_mmap,
    "numpy": lambda: np.zeros(16, np.float32),
    "numpy on a memoryview": lambda: np.frombuffer(memoryview(bytearray(64)), np.float32),
}


@pytest.mark.parametrize("kind", OWNERS)
@pytest.mark.parametrize("tie", ["attribute", "hook", "owner"])
def test_a_cycle_on_memory_of_others(kind, tie):
    """The collector does not take memory from under a tensor: a memoryview that it cleared would be gone."""
    owner = OWNERS[kind]()
    from_memory = torch.from_numpy if isinstance(owner, np.ndarray) else None
    t = from_memory(owner) if from_memory else torch.frombuffer(owner, dtype=torch.float32)
    witness = Witness()
    gone = weakref.ref(witness)
    if tie == "attribute":
        t.itself, t.witness = t, witness
    elif tie == "hook":
        t.requires_grad_().register_hook(lambda grad, t=t, witness=witness: grad * 1)
        (t * 2).sum().backward()
    else:
        t.owner, t.itself, t.witness = owner, [t], witness
    del t, owner, witness
    for _ in range(3):
        gc.collect()
    assert gone() is None


COLLECTS = """
import gc, sys
import rushlight as torch

x = torch.ones(2, requires_grad=True)
x.register_hook(lambda grad: x)
seen = []
sys.unraisablehook = seen.append
exec("gc.collect()", {"__builtins__": {}, "gc": gc})
assert not seen, seen
"""


def test_a_collection_in_a_frame_with_other_builtins():
    """As named tuples are made: nothing that the collection needs is looked up there."""
    done = subprocess.run([sys.executable, "-c", COLLECTS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
