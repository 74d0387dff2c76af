"""The switch of the generic suite: RUSHLIGHT_TEST_DEVICE=cuda python -m pytest tests/ops runs it on a GPU.

Factories make their tensors there, and a test of an op that the device has no kernel for is skipped.
"""

import pytest

import rushlight
from tests.ops.harness import DEVICE


def pytest_collection_modifyitems(config, items):
    if DEVICE == "cpu":
        return
    try:
        rushlight.empty(1, device=DEVICE)
    except (AssertionError, RuntimeError) as error:
        raise pytest.UsageError(f"RUSHLIGHT_TEST_DEVICE={DEVICE}: {error}") from None


@pytest.fixture(autouse=True, scope="session")
def default_device():
    rushlight.set_default_device(DEVICE)
    yield
    rushlight.set_default_device(None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except NotImplementedError as error:
        if DEVICE != "cpu" and "it has no kernel there" in str(error):
            pytest.skip(str(error))
        raise
