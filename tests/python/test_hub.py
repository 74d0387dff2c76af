"""Repositories of the hub: what they have, load and say."""

import zipfile

import pytest

import rushlight as torch


def test_help_of_a_hub_repository(tmp_path):
    """One that is in the cache, under the name of its branch."""
    folder = tmp_path / "owner_models_main"
    folder.mkdir()
    (folder / "hubconf.py").write_text("def model():\n    'Makes one.'\n    return 1\n")
    before = torch.hub.get_dir()
    torch.hub.set_dir(tmp_path)
    try:
        text = torch.hub.help("owner/models:main", "model", skip_validation=True, trust_repo=True)
    finally:
        torch.hub.set_dir(before)
    assert text == "Makes one."


def test_hub(tmp_path):
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['os']\ndef model(n, *, scale=1):\n    'Makes one.'\n    return n * scale\n"
    )
    assert torch.hub.load(str(tmp_path), "model", 3, scale=2, source="local") == 6
    with pytest.raises(RuntimeError, match="Cannot find callable"):
        torch.hub.load(str(tmp_path), "other", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        torch.hub.load(str(tmp_path), "model", source="somewhere")
    torch.hub.set_dir(tmp_path / "hub")
    source = tmp_path / "weights.pt"
    torch.save({"w": torch.ones(2)}, source)
    loaded = torch.hub.load_state_dict_from_url(source.as_uri(), progress=False)
    assert loaded["w"].tolist() == [1, 1] and zipfile.is_zipfile(source)
    with pytest.raises(RuntimeError, match="invalid hash"):
        torch.hub.download_url_to_file(
            source.as_uri(), str(tmp_path / "copy"), hash_prefix="0" * 8, progress=False
        )
    assert not (tmp_path / "copy").exists()
    torch.hub.set_dir(torch.hub._get_torch_home())
