"""torch.Stream, torch.Event and torch.accelerator without an accelerator, torch.cpu's streams.

What they do on a device is tested in tests/cpp/test_streams.cpp, with one made of host memory.
"""

import pytest

import rushlight as torch

without_accelerator = pytest.mark.skipif(
    torch.accelerator.current_accelerator() is not None, reason="this build has an accelerator"
)


@without_accelerator
def test_the_cpu_stands_in():
    stream = torch.Stream()
    assert stream == torch.Stream("cpu") == torch.Stream(device=torch.device("cpu"), priority=-1)
    assert stream.device == torch.device("cpu") and stream.device_type == 0
    assert stream.stream_id == stream.native_handle == 0 and stream.device_index == -1
    assert stream.query() and stream.synchronize() is None
    assert repr(stream) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0"
    assert hash(stream) == hash(torch.Stream("cpu")) and stream != 0
    again = torch.Stream(stream_id=3, device_index=-1, device_type=0)
    assert again.stream_id == 3 and again != stream
    with stream as entered:
        assert entered is stream
    with pytest.raises(RuntimeError, match="was not entered"):
        stream.__exit__(None, None, None)


@without_accelerator
def test_events_of_the_cpu_have_passed():
    stream, event = torch.Stream(), torch.Event(enable_timing=True)
    assert event.query() and event.event_id == 0 and event.device.type == "cpu"
    assert stream.record_event(event) is event
    event.record()
    event.wait(stream)
    event.synchronize()
    stream.wait_event(event)
    stream.wait_stream(torch.Stream())
    with pytest.raises(ValueError, match="have no times"):
        event.elapsed_time(event)
    with pytest.raises(ValueError, match="enable_timing=True"):
        torch.Event().elapsed_time(event)
    with pytest.raises(ValueError, match="must be recorded"):
        event.elapsed_time(torch.Event(enable_timing=True))
    with pytest.raises(NotImplementedError, match="several processes"):
        torch.Event(interprocess=True)


@without_accelerator
def test_no_accelerator():
    place = torch.accelerator
    assert not place.is_available() and place.device_count() == 0 and place.empty_cache() is None
    for use in (
        place.synchronize,
        place.current_stream,
        place.current_device_index,
        lambda: place.set_device_index(0),
        lambda: place.set_stream(torch.Stream()),
        place.device_index(0).__enter__,
    ):
        with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is"):
            use()
    with place.device_index(None):
        pass
    for use in (lambda: torch.Stream("cuda"), torch.Event("cuda").record):
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            use()


def test_wrong_arguments():
    stream = torch.cpu.Stream()
    for wrong in (lambda: stream.wait_event(3), lambda: stream.wait_stream(torch.Event("cpu"))):
        with pytest.raises(TypeError, match=r"expected a torch\.(Stream|Event)"):
            wrong()
    with pytest.raises(RuntimeError, match="stream_id needs"):
        torch.Stream(stream_id=1)
    with pytest.raises(TypeError):
        torch.Stream(colour="red")


def test_streams_of_the_cpu_module():
    cpu = torch.cpu
    assert isinstance(cpu.current_stream(), cpu.Stream) and cpu.Stream(-1) == cpu.Stream()
    event = cpu.Stream().record_event()
    assert isinstance(event, cpu.Event) and event.query()
    event.record()
    event.wait()
    cpu.Stream().wait_event(event)
    with cpu.stream(cpu.Stream()):
        assert cpu.set_device("cpu") is None and cpu.is_initialized()
    assert cpu.synchronize() is None


def test_record_stream_is_for_tensors_of_the_device():
    torch.ones(1).record_stream(torch.cpu.Stream())
    with pytest.raises(NotImplementedError, match="is not used by a stream of cpu"):
        torch.ones(1, device="meta").record_stream(torch.cpu.Stream())
