"""`save` and `load`: exported programs as `.pt2` files, which PyTorch reads and writes."""

from __future__ import annotations

import io
import json
import os
import zipfile
from typing import IO, Any

import rushlight
from rushlight import _C, Tensor, nn
from rushlight._files.archive import PyTorchFileReader, PyTorchFileWriter
from rushlight.export._read import program_of
from rushlight.export._schema import real_tensor, tensor_record
from rushlight.export._write import model_record
from rushlight.export.exported_program import ExportedProgram

__all__ = ["load", "save"]

File = str | os.PathLike[str] | IO[bytes]
_FORMAT, _VERSION = "pt2", "0"


def save(
    ep: ExportedProgram,
    f: File,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Write a program to a `.pt2` file.

    Args:
        ep: the program.
        f: a path, or a file that is open for writing.
        extra_files: by name, texts or bytes that are kept beside it.
        opset_version: by namespace, a number that readers may look at.
        pickle_protocol: of the example arguments.

    Raises:
        TypeError: `ep` is no ExportedProgram.
        NotImplementedError: an op or an argument has no form in the file; nothing is written.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file)
        >>> file.tell() > 0
        True
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', not {type(ep).__name__}"
        )
    model = json.dumps(model_record(ep, opset_version), allow_nan=False)
    records = [
        *_tensor_records(ep.state_dict, "weights", "weight", "model_weights_config.json"),
        *_tensor_records(ep.constants, "constants", "tensor", "model_constants_config.json"),
        ("models/model.json", model.encode()),
    ]
    if ep.example_inputs is not None:
        examples = io.BytesIO()
        rushlight.save(ep.example_inputs, examples, pickle_protocol=pickle_protocol)
        records.append(("data/sample_inputs/model.pt", examples.getvalue()))
    for name, content in (extra_files or {}).items():
        text = content.encode() if isinstance(content, str) else bytes(content)
        records.append((f"extra/{name}", text))
    records += [
        ("archive_format", _FORMAT.encode()),
        ("archive_version", _VERSION.encode()),
        (".data/version", b"6\n"),
    ]
    writer = PyTorchFileWriter(f)
    for name, content in records:
        writer.write_record(name, content, len(content))
    writer.write_end_of_file()


def _tensor_records(
    tensors: dict[str, Any], folder: str, prefix: str, config: str
) -> list[tuple[str, bytes]]:
    """The bytes of tensors, each storage once, and the record that says what they are."""
    paths: dict[int, str] = {}
    records: list[tuple[str, bytes]] = []
    told: dict[str, Any] = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise NotImplementedError(f"a .pt2 file cannot hold {name}, a {type(tensor).__name__}")
        meta = tensor_record(tensor)
        storage = tensor.detach().untyped_storage()
        if storage.device.type != "cpu":
            storage = storage.cpu()
        key = tensor.untyped_storage()._cdata
        if key not in paths:
            paths[key] = f"{prefix}_{len(paths)}"
            records.append((f"data/{folder}/{paths[key]}", _C._storage_bytes(storage)))
        told[name] = {
            "path_name": paths[key],
            "is_param": isinstance(tensor, nn.Parameter),
            "use_pickle": False,
            "tensor_meta": meta,
        }
    records.append((f"data/{folder}/{config}", json.dumps({"config": told}).encode()))
    return records


def load(
    f: File,
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """Read a program from a `.pt2` file; nothing of it is run.

    Args:
        f: a path, or a file that is open for reading.
        extra_files: names of texts beside the program; their values are set.
        expected_opset_version: by namespace, the number that the file must have.

    Raises:
        ValueError: it is no such file, or one of another version, or damaged.
        RuntimeError: its schema is of another version.
        NotImplementedError: it has ops that are not there, or objects; they are named.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file)
        >>> _ = file.seek(0)
        >>> torch.export.load(file).module()(torch.tensor([-5.0, 5.0]))
        tensor([0., 5.])
    """
    try:
        reader = PyTorchFileReader(f)
    except RuntimeError as error:
        raise zipfile.BadZipFile(f"{f} is no .pt2 file: it is not a zip archive") from error
    if "version" in reader._zip.NameToInfo:  # files of before the format had a name
        raise RuntimeError(
            f"Serialized version {reader._zip.read('version').decode(errors='replace')} does not "
            f"match our current schema version: {f} is of a PyTorch before 2.8, whose files are "
            "not read"
        )
    form = _text(reader, "archive_format")
    if form != _FORMAT:
        raise ValueError(f"{f} is no .pt2 file: its archive_format is {form!r}")
    version = _text(reader, "archive_version")
    if version != _VERSION:
        raise ValueError(
            f"Saved archive version {version} does not match our current archive version "
            f"{_VERSION}."
        )
    names = [n for n in reader.get_all_records() if n.startswith("models/")]
    name = "models/model.json" if "models/model.json" in names else (names or [""])[0]
    if not name:
        raise ValueError(
            f"{f} has no model: it may be of native code (AOTInductor), which no other "
            "program can run"
        )
    stem = name.removeprefix("models/").removesuffix(".json")
    model = _record(reader, name)
    for space, number in (expected_opset_version or {}).items():
        told = model.get("opset_version") or {}
        if told.get(space) != number:
            raise ValueError(
                f"{f} has opset version {told.get(space)} of {space}, expected {number}"
            )
    try:
        state = _tensors(reader, "weights", f"{stem}_weights_config.json")
        constants = _tensors(reader, "constants", f"{stem}_constants_config.json")
        program = program_of(model, state, constants, _examples(reader, stem))
    except (KeyError, TypeError, AttributeError, IndexError, ArithmeticError) as error:
        raise ValueError(f"{f} is damaged: {type(error).__name__}: {error}") from error
    except RecursionError as error:
        raise ValueError(f"{f} is damaged: its parts are nested too deep") from error
    for wanted in extra_files or {}:
        if reader.has_record(f"extra/{wanted}") and extra_files is not None:
            extra_files[wanted] = reader.get_record(f"extra/{wanted}").decode()
    return program


def _record(reader: PyTorchFileReader, name: str) -> dict[str, Any]:
    """A record of the file's JSON."""
    try:
        record = json.loads(reader.get_record(name))
    except RecursionError as error:
        raise ValueError(f"{name} of a .pt2 file is damaged: it is nested too deep") from error
    if not isinstance(record, dict):
        raise ValueError(f"{name} of a .pt2 file is damaged: it holds no record")
    return record


def _text(reader: PyTorchFileReader, name: str) -> str | None:
    return reader.get_record(name).decode().strip() if reader.has_record(name) else None


def _examples(reader: PyTorchFileReader, stem: str) -> Any:
    """The arguments that were exported, if they are nothing but data."""
    name = f"data/sample_inputs/{stem}.pt"
    if not reader.has_record(name):
        return None
    try:
        return rushlight.load(io.BytesIO(reader.get_record(name)), weights_only=True)
    except Exception:  # of types that a file may not name, or damaged: they are but examples
        return None


def _tensors(reader: PyTorchFileReader, folder: str, config: str) -> dict[str, Any]:
    """The tensors of a folder; those on one storage share it."""
    if not reader.has_record(f"data/{folder}/{config}"):
        return {}
    told = _record(reader, f"data/{folder}/{config}")["config"]
    storages: dict[str, Any] = {}
    made: dict[str, Any] = {}
    result = {}
    for name, entry in told.items():
        if entry.get("use_pickle"):
            raise NotImplementedError(f"a .pt2 file has {name} as a pickle, which is not read")
        path, meta = entry["path_name"], entry["tensor_meta"]
        if path not in storages:
            content = reader.get_record(f"data/{folder}/{path}")
            held = rushlight.empty(len(content), dtype=rushlight.uint8)
            if content:
                held.copy_(rushlight.frombuffer(bytearray(content), dtype=rushlight.uint8))
            storages[path] = held.untyped_storage()
        key = json.dumps([path, meta, entry.get("is_param")])
        if key not in made:
            tensor = real_tensor(meta, storages[path])
            wanted = bool(meta.get("requires_grad"))
            made[key] = nn.Parameter(tensor, wanted) if entry.get("is_param") else tensor
        result[name] = made[key]
    return result
