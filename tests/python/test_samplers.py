"""Samplers of the order of data, and what workers of a loader know of their share."""

import pytest

import rushlight as torch
from rushlight.utils.data import DataLoader, IterableDataset, Sampler, WeightedRandomSampler


class Backwards(Sampler):
    def __init__(self, data):
        self.data = data

    def __iter__(self):
        return iter(range(len(self.data) - 1, -1, -1))

    def __len__(self):
        return len(self.data)


def test_a_sampler_of_ones_own():
    data = list(range(5))
    loader = DataLoader(data, sampler=Backwards(data), batch_size=2)
    assert [batch.tolist() for batch in loader] == [[4, 3], [2, 1], [0]] and len(loader) == 3


def test_weighted_samples():
    generator = torch.Generator().manual_seed(0)
    drawn = list(WeightedRandomSampler([0.0, 1.0, 3.0], 400, generator=generator))
    assert drawn.count(0) == 0 and 250 < drawn.count(2) < 350
    once = list(WeightedRandomSampler([1.0, 1.0, 1.0], 3, replacement=False))
    assert sorted(once) == [0, 1, 2]
    with pytest.raises(ValueError, match="num_samples"):
        WeightedRandomSampler([1.0], 0)


class Shares(IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        yield "alone" if info is None else f"{info.id} of {info.num_workers}"


def test_workers_know_their_share():
    assert torch.utils.data.get_worker_info() is None
    assert list(DataLoader(Shares(), batch_size=None)) == ["alone"]
    loader = DataLoader(Shares(), batch_size=None, num_workers=2)
    assert list(loader) == ["0 of 2", "1 of 2"]


@pytest.mark.parametrize("replacement", [True, False])
def test_nothing_is_drawn_from_nothing(replacement):
    for weights in (torch.ones(0), torch.ones(2, 0)):
        with pytest.raises(RuntimeError, match="multinomial|without replacement"):
            torch.multinomial(weights, 2, replacement)
    assert torch.multinomial(torch.ones(0, 3), 2, replacement).shape == (0, 2)
    with pytest.raises(RuntimeError, match="multinomial|without replacement"):
        list(WeightedRandomSampler([], 2, replacement))
