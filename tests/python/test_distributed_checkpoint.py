"""Checkpoints of several processes."""

import enum
import io
import json
import os
import pickle
import warnings

import pytest

import rushlight as torch
import rushlight.distributed.checkpoint as dcp
from rushlight import distributed as dist
from rushlight._files import pickled as _pickled
from rushlight.distributed._shard._properties import _MEM_FORMAT_ENCODING
from rushlight.distributed.checkpoint import _storage_pickle, format_utils
from rushlight.distributed.checkpoint._nested_dict import flatten_state_dict, unflatten_state_dict
from rushlight.distributed.checkpoint._traverse import get_element, set_element
from rushlight.distributed.checkpoint.default_planner import (
    _create_default_local_metadata,
    create_default_global_save_plan,
    create_default_local_save_plan,
)
from rushlight.distributed.checkpoint.metadata import ChunkStorageMetadata, TensorStorageMetadata
from rushlight.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list

from . import distributed_checkpoint_workers as workers
from .distributed_workers import run

several = pytest.mark.skipif(not dist.is_gloo_available(), reason="built without Gloo")
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@several
@pytest.mark.parametrize("case", ["together", "rewrapped", "safe"])
def test_two_processes(case, tmp_path):
    run(getattr(workers, case), 2, tmp_path, str(tmp_path / "kept"))


@several
@pytest.mark.parametrize("savers, loaders", [(3, 2), (2, 4), (2, 1)])
def test_rows_go_to_another_number_of_processes(savers, loaders, tmp_path):
    run(workers.save_rows, savers, tmp_path, str(tmp_path / "kept"))
    run(workers.load_rows, loaders, tmp_path, str(tmp_path / "kept"))


def test_safetensors_of_one_process(tmp_path):
    state = {"w": torch.arange(6.0).reshape(2, 3), "b": torch.ones(4).half()}
    writer = dcp.HuggingFaceStorageWriter(str(tmp_path), {"w": 1, "b": 2})
    dcp.save(state, storage_writer=writer)
    index = json.loads((tmp_path / writer.metadata_path).read_text())
    assert index["metadata"] == {"total_size": 32}
    assert index["weight_map"]["b"] == "model-00002-of-00002.safetensors"
    got = {"w": torch.zeros(2, 3), "b": torch.zeros(4).half()}
    dcp.load(got, storage_reader=dcp.HuggingFaceStorageReader(str(tmp_path)))
    assert torch.equal(got["w"], state["w"]) and torch.equal(got["b"], state["b"])
    with pytest.raises(dcp.CheckpointException, match="tensors alone"):
        dcp.save({"n": 3}, storage_writer=dcp.HuggingFaceStorageWriter(str(tmp_path)))
    with pytest.raises(dcp.CheckpointException, match="no safetensors"):
        dcp.load(got, storage_reader=dcp.HuggingFaceStorageReader(str(tmp_path / "none")))


def test_one_process(tmp_path):
    dcp.save(workers.example(1), checkpoint_id=tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".metadata", "__0_0.distcp"]
    dcp.load(state := workers.example(7), checkpoint_id=tmp_path)
    assert torch.equal(state["model"]["w"], workers.example(1)["model"]["w"])
    dcp.async_save(workers.example(2), checkpoint_id=tmp_path).result()
    assert len(os.listdir(tmp_path)) == 2  # what was replaced has gone
    dcp.load(state, checkpoint_id=tmp_path)
    assert state["step"] == 2
    with pytest.raises(RuntimeError, match="checkpoint_id"):
        dcp.save(state)


def test_a_failed_save_leaves_the_checkpoint_before_it(tmp_path):
    dcp.save(workers.example(1), checkpoint_id=tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(dcp.CheckpointException, match="pickle"):
        dcp.save({**workers.example(2), "z": lambda: 0}, checkpoint_id=tmp_path)
    after = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    assert before.items() <= after.items()
    dcp.save(workers.example(3), checkpoint_id=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_metadata_is_data(tmp_path):
    dcp.save(workers.example(1), checkpoint_id=tmp_path)

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    (tmp_path / ".metadata").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(dcp.CheckpointException, match="no part of one"):
        dcp.load(workers.example(1), checkpoint_id=tmp_path)
    assert not (tmp_path / "made").exists()


def test_metadata_of_any_release(tmp_path, monkeypatch):
    """Python 3.11.2 pickles members of an Enum by `getattr`; ours are by value whatever it does."""

    def by_name(self, protocol):
        return getattr, (type(self), self.name)

    dcp.save(workers.example(1), checkpoint_id=tmp_path)
    written = (tmp_path / ".metadata").read_bytes()
    assert b"getattr" not in written
    metadata = _storage_pickle.load(io.BytesIO(written))
    monkeypatch.setattr(enum.Enum, "__reduce_ex__", by_name)
    others = _storage_pickle.dumps(metadata)
    monkeypatch.undo()
    assert b"getattr" in others
    (tmp_path / ".metadata").write_bytes(others)
    dcp.load(state := workers.example(7), checkpoint_id=tmp_path)
    assert torch.equal(state["model"]["w"], workers.example(1)["model"]["w"])

    class Evil:
        def __init__(self, *arguments):
            self.arguments = arguments

        def __reduce__(self):
            return getattr, self.arguments

    for arguments in ((metadata, "__class__"), (_MEM_FORMAT_ENCODING, "mro"), (str, "format")):
        evil = _pickled.pickle_bytes(Evil(*arguments), _pickled.StorageKeys(), pickle, 3)
        with pytest.raises(pickle.UnpicklingError, match="Enums that are allowed|no part of one"):
            _storage_pickle.load(io.BytesIO(evil))


def test_cut_files_are_noticed(tmp_path):
    dcp.save(workers.example(1), checkpoint_id=tmp_path)
    path = tmp_path / "__0_0.distcp"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(dcp.CheckpointException, match="cut short"):
        dcp.load(workers.example(1), checkpoint_id=tmp_path)


def test_one_file_and_back(tmp_path):
    torch.save(workers.example(3), tmp_path / "one.pt")
    format_utils.torch_save_to_dcp(tmp_path / "one.pt", tmp_path / "folder")
    format_utils.dcp_to_torch_save(tmp_path / "folder", tmp_path / "two.pt")
    state = torch.load(tmp_path / "two.pt")
    assert state["list"][1] == 3 and torch.equal(state["list"][0], torch.ones(2) + 3)
    target = {"model": {"w": torch.zeros(2, 3)}}
    dcp.load(
        target,
        storage_reader=format_utils.BroadcastingTorchSaveReader(),
        planner=format_utils.DynamicMetaLoadPlanner(),
        checkpoint_id=tmp_path / "one.pt",
    )
    assert torch.equal(target["model"]["w"], workers.example(3)["model"]["w"])


def test_nested_states():
    state = {"a": [1, 2], "b": [[torch.ones(1), "x"], [3]], "c": {1: 2}, "d": {}}
    flat, paths = flatten_state_dict(state)
    assert flat["a"] == [1, 2] and flat["b.0.1"] == "x" and flat["b.1"] == [3] and flat["c.1"] == 2
    assert paths["b.0.0"] == ("b", 0, 0)
    assert unflatten_state_dict(flat, paths)["b"][0][1] == "x"
    with pytest.raises(ValueError, match="duplicated flatten key"):
        flatten_state_dict({"a.b": 1, "a": {"b": 2}})
    nested = {}
    set_element(nested, ("k", 2, "z"), 5)
    assert nested == {"k": [None, None, {"z": 5}]}
    assert get_element(nested, ("k", 2, "z")) == 5 and get_element(nested, ("k", 9)) is None


def test_boxes():
    """What is read of stored boxes to fill others."""
    size = torch.Size

    def box(begin, rows):
        return ChunkStorageMetadata(size([begin, 0]), size([rows, 3]))

    md = TensorStorageMetadata(torch.float32, size([10, 3]), [box(0, 4), box(4, 4), box(8, 2)])
    items = create_read_items_for_chunk_list("w", md, [box(2, 5)])
    assert [
        (i.storage_index.index, i.storage_offsets, i.dest_offsets, i.lengths) for i in items
    ] == [
        (0, (2, 0), (0, 0), (2, 3)),
        (1, (0, 0), (2, 0), (3, 3)),
    ]
    plan = create_default_local_save_plan({"w": torch.ones(4), "n": 3}, False)
    assert [item.index.fqn for item in plan.items] == ["w"]
    plans, metadata = create_default_global_save_plan([plan])
    assert plans[0].items[0].index.index == 0
    assert metadata.state_dict_metadata["w"].size == (4,)
    assert "n" in _create_default_local_metadata({"n": 3}).state_dict_metadata
