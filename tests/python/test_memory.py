"""The CPU allocator as Python sees it."""

import gc

import pytest

import rushlight as torch


def test_statistics_follow_tensors():
    before = torch.cpu.memory_allocated()
    t = torch.empty(1000, 1000)
    assert torch.cpu.memory_allocated() - before >= 4_000_000
    assert torch.cpu.max_memory_allocated() >= before + 4_000_000
    reserved = torch.cpu.memory_reserved()
    assert (
        reserved >= torch.cpu.memory_allocated() or reserved == 0
    )  # builds that check memory keep none
    del t
    assert torch.cpu.memory_allocated() == before
    torch.cpu.reset_peak_memory_stats()
    assert torch.cpu.max_memory_allocated() == before
    torch.cpu.reset_accumulated_memory_stats()
    stats = torch.cpu.memory_stats()
    assert stats["allocation.all.allocated"] == 0 and list(stats) == sorted(stats)


def test_a_tensor_that_is_too_large():
    with pytest.raises(RuntimeError, match="refused 281474976710656 bytes"):
        torch.empty(2**46)
    assert issubclass(torch.OutOfMemoryError, RuntimeError)


def test_the_cache_is_emptied():
    reserved = "reserved_bytes.large_pool.current"
    gc.collect()  # tensors of other tests do not go in between
    torch.cpu.empty_cache()
    before = torch.cpu.memory_stats()[reserved]
    torch.empty(5_000_000)
    assert torch.cpu.memory_stats()[reserved] >= before + 20_000_000
    torch.cpu.empty_cache()
    assert torch.cpu.memory_stats()[reserved] == before
    with pytest.raises((OverflowError, TypeError)):
        torch.cpu.set_cache_limit(-1)
