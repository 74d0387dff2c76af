"""`.pt2` files: what is written is read again, damaged files raise, nothing of a file is run."""

import io
import json
import random
import zipfile

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.export import export, load, save
from tests.python.test_export import Branchy, branchy_inputs


def saved(program, **options):
    file = io.BytesIO()
    save(program, file, **options)
    file.seek(0)
    return file


def changed(file, change):
    """The same file with other contents, by name of the record."""
    out = io.BytesIO()
    with zipfile.ZipFile(file) as before, zipfile.ZipFile(out, "w") as after:
        for name in before.namelist():
            content = change(name.partition("/")[2], before.read(name))
            if content is not None:
                after.writestr(name, content)
    out.seek(0)
    return out


def with_model(file, change):
    def edit(name, content):
        if name != "models/model.json":
            return content
        model = json.loads(content)
        change(model)
        return json.dumps(model)

    return changed(file, edit)


class Views(nn.Module):
    """Tensors that share storages, empty ones, several dtypes and layouts."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.register_buffer("whole", torch.arange(12.0).view(3, 4).t()[1:])
        self.register_buffer("row", self.whole[0])
        self.register_buffer("nothing", torch.zeros(0, 3))
        self.register_buffer("tiny", torch.ones(2, dtype=torch.bfloat16), persistent=False)
        image = torch.ones(2, 2, 3, 3).contiguous(memory_format=torch.channels_last)
        self.register_buffer("image", image)

    def forward(self, x, n, *, inf=float("inf")):
        y = self.b(self.a(x)) + self.whole.sum() + self.row.sum() + n + self.tiny.sum()
        return y.clamp(max=inf), torch.full((2,), float("nan")), self.image.mean((0, 2), True)


def test_round_trip():
    torch.manual_seed(0)
    for net, args, kwargs in (
        (Branchy().eval(), *branchy_inputs()),
        (Views(), (torch.randn(2, 3), 3), {"inf": 1.5}),
    ):
        program = export(net, args, kwargs)
        again = load(saved(program))
        assert str(again) == str(program)
        assert again.graph_signature == program.graph_signature
        assert list(again.state_dict) == list(program.state_dict)
        for name, tensor in program.state_dict.items():
            assert torch.equal(again.state_dict[name], tensor)
            assert again.state_dict[name].stride() == tensor.stride()
            assert isinstance(again.state_dict[name], nn.Parameter) == isinstance(
                tensor, nn.Parameter
            )
        (x, *_), _ = again.example_inputs
        assert torch.equal(x, args[0])
        got = torch.utils._pytree.tree_leaves(again.module()(*args, **kwargs))
        expected = torch.utils._pytree.tree_leaves(net(*args, **kwargs))
        for a, b in zip(got, expected, strict=True):
            if isinstance(a, torch.Tensor):
                assert torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
            else:
                assert a == b
        nodes = zip(again.graph.nodes, program.graph.nodes, strict=True)
        for a, b in nodes:
            assert a.meta.get("stack_trace") == b.meta.get("stack_trace")
            assert dict(a.meta.get("nn_module_stack") or {}) == dict(
                b.meta.get("nn_module_stack") or {}
            )


def test_shared_storages_stay_shared():
    program = load(saved(export(Views(), (torch.ones(2, 3), 3))))
    state = program.state_dict
    assert state["a.weight"] is state["b.weight"]
    state["whole"][0] = 7
    assert torch.equal(state["row"], torch.full((3,), 7.0))
    assert state["nothing"].shape == (0, 3) and "tiny" in program.constants


def test_paths_and_files_beside(tmp_path):
    program = export(nn.Linear(2, 2), (torch.ones(1, 2),))
    path = tmp_path / "net.pt2"
    save(program, path, extra_files={"note.txt": "hello", "raw": b"\x01"})
    assert zipfile.ZipFile(path).namelist()[0].startswith("net/")
    extra = {"note.txt": "", "raw": "", "absent": "?"}
    load(str(path), extra_files=extra)
    assert extra == {"note.txt": "hello", "raw": "\x01", "absent": "?"}
    with open(path, "rb") as file:
        assert torch.equal(
            load(file).module()(torch.ones(1, 2)), program.module()(torch.ones(1, 2))
        )


def test_versions():
    file = saved(export(nn.Linear(2, 2), (torch.ones(1, 2),)))

    def version(major, minor):
        return with_model(file, lambda m: m.update(schema_version={"major": major, "minor": minor}))

    def unknown(model):
        model["later"] = 1
        model["graph_module"]["graph"]["nodes"][0]["later"] = {"x": []}

    load(version(8, 99))
    load(with_model(file, unknown))
    with pytest.raises(RuntimeError, match=r"schema 9\.0 is not read"):
        load(version(9, 0))
    with pytest.raises(ValueError, match="archive version 1 does not match"):
        load(changed(file, lambda n, c: b"1" if n == "archive_version" else c))
    with pytest.raises(ValueError, match="archive_format is 'zip'"):
        load(changed(file, lambda n, c: b"zip" if n == "archive_format" else c))
    with pytest.raises(zipfile.BadZipFile):
        load(io.BytesIO(b"no zip"))
    with pytest.raises(ValueError, match="no model"):
        load(changed(file, lambda n, c: None if n.startswith("models") else c))
    load(file, expected_opset_version={"aten": 10})
    with pytest.raises(ValueError, match="opset version 10 of aten, expected 11"):
        load(file, expected_opset_version={"aten": 11})


def test_what_is_not_known_is_named_at_once():
    file = saved(export(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), (torch.ones(1, 2),)))

    def ops(model):
        nodes = model["graph_module"]["graph"]["nodes"]
        nodes[0]["target"], nodes[1]["target"] = "torch.ops.aten.nope.default", "os.system"

    with pytest.raises(NotImplementedError, match=r"aten.nope.default, os.system"):
        load(with_model(file, ops))
    for name in ("__class__", "a.__init__", "forward", "", 'x")+exit("', "a b"):

        def rename(model, name=name):
            spec = model["graph_module"]["signature"]["input_specs"][0]
            spec["parameter"]["parameter_name"] = name

        with pytest.raises(ValueError, match="a module cannot have"):
            load(with_model(file, rename))


def test_programs_that_no_file_can_hold():
    class Own(nn.Module):
        def forward(self, x):
            return torch.ops.rushlight._share_of(x, x, 1.0)

    file = io.BytesIO()
    with pytest.raises(NotImplementedError, match="op of rushlight alone"):
        save(export(Own(), (torch.ones(2),)), file)
    assert file.getvalue() == b""
    with pytest.raises(TypeError, match="ExportedProgram"):
        save(nn.Linear(1, 1), file)


def places(value, path=()):
    """All places in a record."""
    yield path
    if not isinstance(value, dict | list):
        return
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        yield from places(part, (*path, key))


OTHERS = [None, -1, 2**70, "x", "__class__", [], {}, 1.5, True, {"as_int": 3}, {"name": "x"}]


def test_damaged_models_raise():
    """Whatever stands in the record of the model: it is read, or one of these is raised."""
    file = saved(export(Branchy().eval(), *branchy_inputs()))
    with zipfile.ZipFile(file) as archive:
        name = next(n for n in archive.namelist() if n.endswith("models/model.json"))
        text = archive.read(name)
    draw = random.Random(0)
    everywhere = [p for p in places(json.loads(text)) if p]
    for _ in range(150):
        model = json.loads(text)
        path = draw.choice(everywhere)
        holder = model
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = draw.choice(OTHERS)
        bad = with_model(file, lambda m, model=model: (m.clear(), m.update(model)))
        try:
            load(bad)
        except (ValueError, NotImplementedError, RuntimeError, OverflowError):
            continue


def test_damaged_tensors_raise():
    file = saved(export(nn.Linear(3, 2), (torch.ones(1, 3),)))
    short = changed(file, lambda n, c: c[:8] if n == "data/weights/weight_0" else c)
    with pytest.raises((ValueError, RuntimeError)):
        load(short)

    def offset(name, content):
        if not name.endswith("weights_config.json"):
            return content
        config = json.loads(content)
        config["config"]["weight"]["tensor_meta"]["storage_offset"] = {"as_int": 2**40}
        return json.dumps(config)

    with pytest.raises((ValueError, RuntimeError)):
        load(changed(file, offset))


EVIL = "x=exit(3)):#\"'); exit(3)\n"


def test_no_text_of_a_file_becomes_code():
    """Every text in the record of a program is replaced by code: it is refused or stays a text."""
    programs = [
        export(Branchy().eval(), *branchy_inputs()),
        export(nn.Linear(4, 4), (torch.ones(3, 4),), dynamic_shapes=({0: torch.export.Dim("n")},)),
    ]
    for program in programs:
        file = saved(program)
        with zipfile.ZipFile(file) as archive:
            name = next(n for n in archive.namelist() if n.endswith("models/model.json"))
            text = archive.read(name)
        for path in [p for p in places(json.loads(text)) if p]:
            model = json.loads(text)
            holder = model
            for key in path[:-1]:
                holder = holder[key]
            if not isinstance(holder[path[-1]], str):
                continue
            evil = EVIL
            if path[-1] == "expr_str":
                evil = "exit(Symbol('s0', positive=True, integer=True))"
            if path[-1] == "in_spec":
                evil = holder[path[-1]].replace("bias", 'b\\":exit(3),\\"')
            holder[path[-1]] = evil
            bad = with_model(file, lambda m, model=model: (m.clear(), m.update(model)))
            try:
                module = load(bad).module()
                (args, kwargs) = program.example_inputs
                module(*args, **kwargs)
            except (ValueError, NotImplementedError, RuntimeError, AssertionError, TypeError):
                continue


def test_records_that_are_nested_deep_or_unpack_to_more():
    file = saved(export(nn.Linear(2, 2), (torch.ones(1, 2),)))
    deep = b'{"graph_module": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(ValueError, match="nested too deep"):
        load(changed(file, lambda n, c: deep if n == "models/model.json" else c))
    with pytest.raises(ValueError, match="holds no record"):
        load(changed(file, lambda n, c: b"[]" if n == "models/model.json" else c))

    def compressed(method, content):
        out = io.BytesIO()
        with zipfile.ZipFile(file) as before, zipfile.ZipFile(out, "w") as after:
            for name in before.namelist():
                is_weight = name.endswith("weight_0")
                how = method if is_weight else zipfile.ZIP_STORED
                after.writestr(name, content if is_weight else before.read(name), how)
        out.seek(0)
        return out

    weight = bytes(16)
    assert load(compressed(zipfile.ZIP_DEFLATED, weight)).state_dict["weight"].sum() == 0
    with pytest.raises(RuntimeError, match="no text is so large"):
        load(compressed(zipfile.ZIP_DEFLATED, bytes(1 << 24)))
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with pytest.raises(RuntimeError, match="compressed by the method"):
            load(compressed(method, weight))
