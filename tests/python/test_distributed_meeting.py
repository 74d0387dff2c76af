"""How launchers meet, and miss who is gone: several of them in the threads of one process."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rushlight import distributed as dist
from rushlight.distributed._agent import Settings
from rushlight.distributed._meeting import Meeting

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def machine():
    """A function that makes a machine's view of the others, with these settings."""
    server = dist.TCPStore("localhost", 0, None, True)
    made = []

    def make(processes=1, least=2, most=2, **options):
        options = {"beat": 0.05, "silence": 0.5, "last_call": 0.2, "join_timeout": 20, **options}
        settings = Settings([], processes, least, most, **options)
        store = dist.PrefixStore("launch", dist.TCPStore("localhost", server.port, None, False))
        made.append(Meeting(store, False, settings))
        return made[-1]

    yield make
    for meeting in made:
        meeting.close()


def together(*calls):
    """What functions return that run at the same time."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def test_numbers(machine):
    a, b = machine(3), machine(2)
    (_, nodes, first), (_, same, second) = together(a.join, b.join)
    assert nodes == same and sorted((first, second)) == [0, 1]
    assert nodes[first] == 3 and nodes[second] == 2


def test_own_numbers(machine):
    machines = [machine(i + 1, 3, 3, node_rank=i) for i in (2, 0, 1)]
    found = together(*(m.join for m in machines))
    assert [own for _, _, own in found] == [2, 0, 1]
    assert {tuple(nodes) for _, nodes, _ in found} == {(1, 2, 3)}


def test_one_number_for_two(machine):
    a, b, c = machine(node_rank=0), machine(node_rank=0, join_timeout=0.5), machine(node_rank=1)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(a.join)
        while not a._change(lambda _: False).members:
            time.sleep(0.01)
        with pytest.raises(TimeoutError, match="had no place"):
            b.join()
        assert c.join()[2] == 1 and first.result()[2] == 0


def test_too_few(machine):
    with pytest.raises(TimeoutError, match="1 of 2 machines came within 0.3 s"):
        machine(join_timeout=0.3).join()


def test_who_comes_late_gets_a_round(machine):
    a, b = machine(1, 1, 2), machine(1, 1, 2)
    assert a.join() == (0, [1], 0)
    with ThreadPoolExecutor() as pool:
        late = pool.submit(b.join)
        while not a.is_over(0):
            time.sleep(0.01)
        assert a.join()[:2] == (1, [1, 1]) == late.result()[:2]


def test_who_comes_when_all_are_there_waits(machine):
    a, b, c = (machine(1, 1, 2) for _ in range(3))
    together(a.join, b.join)
    with ThreadPoolExecutor() as pool:
        spare = pool.submit(c.join)
        time.sleep(0.3)
        assert not a.is_over(0) and not spare.done()
        b.close()  # and says nothing more
        while not a.is_over(0):
            time.sleep(0.02)
        assert a.join()[:2] == (1, [1, 1]) == spare.result()[:2]


def test_a_silent_machine_is_missed_before_a_round_begins(machine):
    gone, a, b = machine(1, 2, 3, last_call=100), machine(1, 2, 3), machine(1, 2, 3)
    gone._change(gone._enter)
    gone.close()
    (_, nodes, _), _ = together(a.join, b.join)
    assert len(nodes) in (2, 3)  # it may not have been silent for long enough
    if len(nodes) == 3:
        while not (a.is_over(0) or b.is_over(0)):
            time.sleep(0.02)
        assert together(a.join, b.join)[0][:2] == (1, [1, 1])


def test_all_end_well_or_none(machine):
    a, b = machine(), machine()
    together(a.join, b.join)
    with ThreadPoolExecutor() as pool:
        ended = pool.submit(a.ends_well, 0)
        time.sleep(0.2)
        assert not ended.done()
        b.begin_another(0)  # its processes have failed
        assert ended.result() is False
        assert [m[:2] for m in together(a.join, b.join)] == [(1, [1, 1])] * 2
        assert together(lambda: a.ends_well(1), lambda: b.ends_well(1)) == [True, True]


def test_who_gives_up_says_why(machine):
    a, b = machine(), machine()
    together(a.join, b.join)
    a.give_up("rank 3 failed with exitcode 1")
    for call in (lambda: b.is_over(0), lambda: b.ends_well(0), b.join):
        with pytest.raises(RuntimeError, match="has ended: rank 3 failed with exitcode 1 on "):
            call()
