"""Sobol sequences: their first points, evenness, scrambling, places in the sequence."""

import pytest

import rushlight as torch
from rushlight.quasirandom import SobolEngine


def test_first_points():
    points = SobolEngine(3).draw(8)
    expected = [
        [0, 0, 0],
        [0.5, 0.5, 0.5],
        [0.75, 0.25, 0.25],
        [0.25, 0.75, 0.75],
        [0.375, 0.375, 0.625],
        [0.875, 0.875, 0.125],
        [0.625, 0.125, 0.875],
        [0.125, 0.625, 0.375],
    ]
    assert points.tolist() == expected and points.dtype is torch.get_default_dtype()


@pytest.mark.parametrize("scramble", [False, True])
def test_every_box_of_half_the_sides_has_its_points(scramble):
    points = SobolEngine(40, scramble, seed=1).draw_base2(6)
    for d in range(40):  # one point in each interval
        assert sorted((points[:, d] * 64).long().tolist()) == list(range(64))
    boxes = (points[:, 0] * 8).long() * 8 + (points[:, 1] * 8).long()
    assert boxes.unique().numel() == 64
    last = SobolEngine(SobolEngine.MAXDIM).draw(4)
    assert sorted((last[:, -1] * 4).long().tolist()) == [0, 1, 2, 3]


def test_places_in_the_sequence():
    engine = SobolEngine(5, scramble=True, seed=3)
    whole = engine.draw(20, dtype=torch.float64)
    engine.reset()
    parts = [engine.draw(n, dtype=torch.float64) for n in (1, 4, 3)]
    engine.fast_forward(5)
    parts.append(engine.draw(7, dtype=torch.float64))
    assert torch.cat([whole[:8], whole[13:]]).equal(torch.cat(parts))
    assert engine.num_generated == 20
    assert (engine.quasi / 2**30).equal(whole[-1])
    out = torch.empty(0)
    assert engine.reset().draw(3, out=out) is out and out.shape == (3, 5)
    same = SobolEngine(5, scramble=True, seed=3).draw(20, dtype=torch.float64)
    assert same.equal(whole) and not same.equal(SobolEngine(5, True, 4).draw(20, None, whole.dtype))


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"\[1, 21201\]"):
        SobolEngine(0)
    with pytest.raises(ValueError, match="21201"):
        SobolEngine(21202)
    engine = SobolEngine(2)
    engine.draw(3)
    with pytest.raises(ValueError, match="require n to be a power of 2"):
        engine.draw_base2(1)
    assert repr(SobolEngine(2, True, 7)) == "SobolEngine(dimension=2, scramble=True, seed=7)"
