"""Datapipes: errors, files, state, and steps of one's own. tests/parity compares the rest."""

import pickle

import pytest

import rushlight as torch
from rushlight.utils import data
from rushlight.utils.data.datapipes import iter as pipes


def test_errors():
    numbers = pipes.IterableWrapper(range(3))
    with pytest.raises(IndexError, match="exceeds the depth of the DataPipe"):
        list(numbers.unbatch(2))
    with pytest.raises(ValueError, match="Boolean output is required for `filter_fn`"):
        list(numbers.filter(abs))
    with pytest.raises(BufferError, match="ForkerIterDataPipe buffer overflow"):
        list(pipes.IterableWrapper(range(20)).fork(2, buffer_size=3)[0])
    with pytest.raises(ValueError, match="should be between 0 and 1"):
        list(numbers.demux(2, abs)[0])
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = numbers.nothing
    with pytest.raises(RuntimeError, match="Sharding twice"):
        data.graph_settings.apply_sharding(numbers.sharding_filter().sharding_filter(), 2, 0)
    first = iter(numbers)
    next(iter(numbers))
    with pytest.raises(RuntimeError, match="This iterator has been invalidated"):
        next(first)


def test_a_step_of_ones_own():
    @data.functional_datapipe("doubled_for_a_test")
    class Doubled(data.IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            for item in self.source:
                yield 2 * item

    pipe = pipes.IterableWrapper([1, 2]).doubled_for_a_test()
    assert isinstance(pipe, Doubled) and list(pipe) == [2, 4] == list(pipe)
    with pytest.raises(Exception, match="already taken"):
        data.functional_datapipe("batch")(Doubled)
    with pytest.raises(TypeError, match="subclasses of IterDataPipe"):
        data.functional_datapipe("other")(list)


def test_files(tmp_path):
    for name in ("b.txt", "a.txt", "c.bin"):
        (tmp_path / name).write_text(name * 2)
    found = pipes.FileLister(str(tmp_path), "*.txt").open_files().read_from_stream()
    assert [text for _, text in found] == ["a.txta.txt", "b.txtb.txt"]
    pieces = pipes.StreamReader(pipes.FileOpener([str(tmp_path / "c.bin")], "b"), chunk=6)
    assert [piece for _, piece in pieces] == [b"c.binc", b".bin"]


def test_pipes_are_pickled():
    pipe = pickle.loads(pickle.dumps(pipes.IterableWrapper([3, 1]).shuffle().batch(2)))
    assert sorted(next(iter(pipe))) == [1, 3]
    one, two = pickle.loads(pickle.dumps(pipes.IterableWrapper([3, 1]).fork(2)))
    assert list(one) == list(two) == [3, 1]


def test_shuffling_is_added():
    torch.manual_seed(0)
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        loader = data.DataLoader(pipes.IterableWrapper(range(50)), None, shuffle=True)
    assert list(loader) != list(range(50)) and sorted(loader) == list(range(50))


def test_a_pipe_goes_on_in_the_middle():
    def make():
        pipe = pipes.IterableWrapper(range(20)).shuffle().sharding_filter()
        return data.DataLoader(pipe, 2, num_workers=2)

    torch.manual_seed(3)
    iterator = iter(loader := make())
    for _ in range(3):
        next(iterator)
    state = loader.state_dict()
    rest = [batch.tolist() for batch in iterator]
    resumed = make()
    resumed.load_state_dict(state)
    assert [batch.tolist() for batch in resumed] == rest and rest


def test_checks_of_types():
    @data.argument_validation
    def take(pipe: data.IterDataPipe):
        return pipe

    with pytest.raises(TypeError, match="Expected argument 'pipe'"):
        take(3)
    assert list(take(pipes.IterableWrapper([1]))) == [1]
    with (
        pytest.raises(TypeError, match="non-deterministic"),
        data.guaranteed_datapipes_determinism(),
    ):
        _Random(3)
    assert _Random(3).n == 3


@data.non_deterministic
class _Random(data.IterDataPipe):
    def __init__(self, n):
        self.n = n


def test_pipes_in_the_form_in_which_loaders_of_others_send_them():
    from rushlight.utils.data.datapipes import datapipe

    stream = datapipe._IterDataPipeSerializationWrapper(pipes.IterableWrapper(range(3)))
    samples = datapipe._MapDataPipeSerializationWrapper(data.datapipes.map.SequenceWrapper("abc"))
    for _ in range(2):
        assert list(stream) == [0, 1, 2] and len(stream) == 3
        assert samples[1] == "b" and len(samples) == 3
        stream, samples = (pickle.loads(pickle.dumps(pipe)) for pipe in (stream, samples))
