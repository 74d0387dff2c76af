"""Fixtures of several files."""

import gc

import pytest


@pytest.fixture(scope="module")
def own_garbage_alone():
    """Collections leave out what was there before, by other tests: a million objects take a second."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
