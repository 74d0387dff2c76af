"""Files of every format, written by one Python and read by another.

    python -m tests.python.files_between_pythons write FOLDER/3.11
    python -m tests.python.files_between_pythons read FOLDER/3.11    # by another Python

`test_formats_between_pythons.py` does both in one.
"""

import copy
import enum
import pathlib
import pickle
import sys
from collections import Counter, OrderedDict

import rushlight as torch
import rushlight.distributed.checkpoint as dcp
from rushlight import fx, nn, safetensors
from rushlight.distributed.fsdp import ShardingStrategy
from rushlight.package import PackageExporter, PackageImporter
from rushlight.utils import data


class Colour(enum.Enum):
    RED = "red"


class Bits(enum.Flag):
    X = 1
    Y = 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 2)
        self.register_buffer("count", torch.tensor(3))

    def forward(self, x):
        return self.b(self.a(x).relu())


def network():
    torch.manual_seed(0)
    return Net()


def trained():
    """A network, its optimiser and its scheduler after a step."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, amsgrad=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.2, total_steps=5)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    scheduler.step()
    return model, optimizer, scheduler


def plain_data(legacy=False):
    """What `load` reads without permission. In the old format values come after what checks them."""
    torch.manual_seed(1)
    base = torch.arange(12.0).reshape(3, 4)
    return {
        "dtypes": {
            str(d): torch.ones(3).to(d)
            for d in torch._C._dtypes
            if not str(d).startswith("torch.q")
        },
        "views": [base, base[1:], base.t()],
        "parameter": nn.Parameter(torch.randn(2)),
        "meta": torch.empty(2, 3, device="meta"),
        **({} if legacy else layouts()),
        "names": [torch.float32, torch.device("cpu"), torch.strided, torch.Size([2, 3])],
        "version": torch.__version__,
        "python": [
            1,
            -(10**30),
            2.5,
            3 + 4j,
            "ü",
            b"\x00\xff",
            bytearray(b"a"),
            None,
            True,
            {1, 2},
        ],
        "ordered": OrderedDict(a=1, b=[2]),
        "counted": Counter("abca"),
        "storages": [torch.arange(3).untyped_storage(), torch.arange(3.0).storage()],
        "generator": torch.Generator().manual_seed(5).get_state(),
    }


def layouts():
    return {
        "sparse": torch.eye(3).to_sparse(),
        "csr": torch.eye(3).to_sparse_csr(),
        "jagged": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
    }


def objects():
    """What `weights_only=False` reads, too."""
    return {
        "members": [Colour.RED, Bits.X, Bits.X | Bits.Y, ShardingStrategy.FULL_SHARD],
        "paths": [pathlib.PurePosixPath("a/b"), pathlib.Path("c")],
        "network": network(),
        "distribution": torch.distributions.Normal(torch.zeros(2), torch.ones(2)),
        "slices": [range(3), frozenset([1]), complex(1, 2), Ellipsis],
        "quantised": torch.quantize_per_tensor(torch.arange(4.0), 0.5, 1, torch.quint8),
    }


def plain_objects():
    """What Python's own pickles hold: without paths, whose module Python 3.13 names anew there."""
    return [value for name, value in objects().items() if name != "paths"]


def states():
    """States of what trains."""
    model, optimizer, scheduler = trained()
    loader = data.DataLoader(range(8), 2, True, generator=torch.Generator().manual_seed(2))
    next(iter(loader))
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "scaler": torch.amp.GradScaler("cpu").state_dict(),
        "loader": loader.state_dict(),
    }


def write(folder):
    folder.mkdir(parents=True)
    for legacy in (False, True):
        options = {"_use_new_zipfile_serialization": not legacy}
        ending = "_legacy.pt" if legacy else ".pt"
        torch.save(plain_data(legacy), folder / f"data{ending}", **options)
        torch.save(states(), folder / f"states{ending}", **options)
        torch.save(objects(), folder / f"objects{ending}", **options)
    for protocol in (2, 3, 4, 5):
        torch.save(objects(), folder / f"protocol{protocol}.pt", pickle_protocol=protocol)
    for protocol in (2, 4):
        value = [
            torch.arange(3.0),
            torch.float16,
            torch.Size([1]),
            torch.device("cpu"),
            *plain_objects(),
        ]
        (folder / f"plain{protocol}.pickle").write_bytes(pickle.dumps(value, protocol))
    (folder / "graph.pickle").write_bytes(pickle.dumps(fx.symbolic_trace(network())))
    safetensors.save_file(dict(network().state_dict()), str(folder / "model.safetensors"))
    kept = states()
    del kept["loader"]
    dcp.save({**kept, "path": pathlib.PurePosixPath("a")}, checkpoint_id=folder / "distributed")
    with PackageExporter(str(folder / "package.zip")) as exporter:
        exporter.extern("**")
        exporter.save_pickle("things", "network.pkl", network())
        exporter.save_pickle("things", "members.pkl", [ShardingStrategy.FULL_SHARD, torch.int8])


def same(got, want, where=""):
    """Equal types and values, all the way down."""
    assert type(got) is type(want), (where, type(got), type(want))
    if isinstance(want, torch.Tensor):
        assert (got.dtype, got.layout, got.requires_grad) == (
            want.dtype,
            want.layout,
            want.requires_grad,
        ), where
        if want.is_meta:
            assert got.is_meta and got.shape == want.shape
        elif want.layout is torch.jagged:
            same(list(got.unbind()), list(want.unbind()), where)
        elif want.layout is not torch.strided:
            same(got.to_dense(), want.to_dense(), where)
        elif want.is_quantized:
            assert (got.q_scale(), got.q_zero_point()) == (want.q_scale(), want.q_zero_point())
            same(got.int_repr(), want.int_repr(), where)
        else:
            assert got.shape == want.shape and got.stride() == want.stride(), where
            assert bytes(got.contiguous().view(-1).view(torch.uint8).tolist()) == bytes(
                want.contiguous().view(-1).view(torch.uint8).tolist()
            ), where
    elif isinstance(want, nn.Module):
        same(dict(got.state_dict()), dict(want.state_dict()), where)
        assert repr(got) == repr(want)
    elif isinstance(want, torch.distributions.Normal):
        same([got.loc, got.scale], [want.loc, want.scale], where)
    elif isinstance(want, dict):
        assert list(got) == list(want), where
        for key, value in want.items():
            same(got[key], value, f"{where}/{key}")
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want), where
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            same(a, b, f"{where}/{i}")
    elif "Storage" in type(want).__name__:
        assert got.tolist() == want.tolist(), where
    else:
        assert got == want, (where, got, want)


def read(folder):
    for ending in (".pt", "_legacy.pt"):
        same(torch.load(folder / f"data{ending}"), plain_data(ending != ".pt"), ending)
        same(torch.load(folder / f"states{ending}"), states(), ending)
        same(torch.load(folder / f"objects{ending}", weights_only=False), objects(), ending)
    for protocol in (2, 3, 4, 5):
        path = folder / f"protocol{protocol}.pt"
        same(torch.load(path, weights_only=False), objects(), str(protocol))
    for protocol in (2, 4):
        value = [
            torch.arange(3.0),
            torch.float16,
            torch.Size([1]),
            torch.device("cpu"),
            *plain_objects(),
        ]
        same(
            pickle.loads((folder / f"plain{protocol}.pickle").read_bytes()),
            value,
            f"plain {protocol}",
        )
    graph = pickle.loads((folder / "graph.pickle").read_bytes())
    same(graph(torch.ones(1, 3)).detach(), network()(torch.ones(1, 3)).detach(), "graph")
    tensors = safetensors.load_file(str(folder / "model.safetensors"))
    want = network().state_dict()
    same(sorted(tensors.items()), sorted(want.items()), "safetensors")
    want = states()
    del want["loader"]
    got = {**copy.deepcopy(want), "path": None}
    for tensor in (*got["model"].values(), got["optimizer"]["state"][0]["exp_avg"]):
        tensor.zero_()
    dcp.load(got, checkpoint_id=folder / "distributed")
    assert got.pop("path") == pathlib.PurePosixPath("a")
    same(got, want, "distributed")
    importer = PackageImporter(str(folder / "package.zip"))
    same(importer.load_pickle("things", "network.pkl"), network(), "package")
    members = importer.load_pickle("things", "members.pkl")
    assert members == [ShardingStrategy.FULL_SHARD, torch.int8]


if __name__ == "__main__":
    if __spec__ is not None:  # by the module's name, which pickles have
        from tests.python import files_between_pythons as this

        {"write": this.write, "read": this.read}[sys.argv[1]](pathlib.Path(sys.argv[2]))
        print(sys.argv[1], sys.argv[2], "by", sys.version.split()[0])
