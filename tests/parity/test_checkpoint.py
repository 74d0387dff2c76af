"""Checkpoints of several processes between PyTorch and rushlight, both ways."""

import warnings

import pytest

import rushlight

torch = pytest.importorskip("torch")


def modules(lib):
    name = lib.__name__ + ".distributed.checkpoint"
    return __import__(name, fromlist=["save"])


def sample(lib, value):
    """The same state in either library."""
    t = lib.arange(24, dtype=lib.float32).reshape(2, 3, 4) + value
    return {
        "model": {
            "w": t,
            "view": t[1].t(),
            "half": (t * 0.5).bfloat16(),
            "flags": t > 5,
            "empty": lib.empty(0, 3),
        },
        "optim": {
            "state": {0: {"step": lib.tensor(float(value)), "exp": [t[0], t[1]]}},
            "param_groups": [{"lr": 0.1 * value, "params": [0], "betas": (0.9, 0.99)}],
        },
        "epoch": value,
        "text": f"t{value}",
        "none": None,
    }


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if hasattr(a, "shape"):
        return a.float().tolist() == b.float().tolist() and str(a.dtype) == str(b.dtype)
    return a == b


@pytest.mark.parametrize("writer, reader", [(torch, rushlight), (rushlight, torch)])
def test_one_reads_what_the_other_writes(writer, reader, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules(writer).save(sample(writer, 2), checkpoint_id=tmp_path)
        state = sample(reader, 5)
        modules(reader).load(state, checkpoint_id=tmp_path)
        assert same(state, sample(writer, 2))
        modules(writer).save(sample(writer, 3), checkpoint_id=tmp_path)  # replaces the first
        modules(reader).load(state, checkpoint_id=tmp_path)
        assert same(state, sample(writer, 3))


@pytest.mark.parametrize("writer, reader", [(torch, rushlight), (rushlight, torch)])
@pytest.mark.parametrize("pieces", [False, True])
def test_safetensors(writer, reader, pieces, tmp_path):
    pytest.importorskip("safetensors")

    def example(m, value):
        return {"w": m.arange(6.0).reshape(2, 3) * value, "b": m.ones(4, dtype=m.bfloat16) * value}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        to = modules(writer).HuggingFaceStorageWriter(
            str(tmp_path), {"w": 1, "b": 2}, save_distributed=pieces, enable_consolidation=pieces
        )
        modules(writer).save(example(writer, 2), storage_writer=to)
        for folder in [tmp_path] + [tmp_path / "sharded"] * pieces:
            state = example(reader, 5)
            kept = modules(reader).HuggingFaceStorageReader(str(folder))
            modules(reader).load(state, storage_reader=kept)
            assert same(state, example(writer, 2))


def spread(rank, folder):
    """Two processes of PyTorch save rows of a distributed tensor."""
    from torch.distributed.tensor import Shard, distribute_tensor

    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2
    )
    mesh = torch.distributed.init_device_mesh("cpu", (2,))
    rows = distribute_tensor(torch.arange(15.0).reshape(5, 3), mesh, [Shard(0)])
    modules(torch).save({"rows": rows, "all": torch.ones(3)}, checkpoint_id=f"{folder}/kept")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def test_pieces_of_two_processes(tmp_path):
    context = torch.multiprocessing.get_context("spawn")
    processes = [context.Process(target=spread, args=(r, str(tmp_path))) for r in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    state = {"rows": rushlight.zeros(5, 3), "all": rushlight.zeros(3)}
    modules(rushlight).load(state, checkpoint_id=tmp_path / "kept", no_dist=True)
    assert state["rows"].tolist() == rushlight.arange(15.0).reshape(5, 3).tolist()
    assert state["all"].tolist() == [1, 1, 1]
