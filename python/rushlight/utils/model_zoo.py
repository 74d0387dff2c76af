"""Deprecated names of downloads; see `rushlight.hub`."""

from rushlight.hub import _get_torch_home, load_state_dict_from_url
from rushlight.hub import download_url_to_file as _download_url_to_file

load_url = load_state_dict_from_url

__all__ = ["_download_url_to_file", "_get_torch_home", "load_state_dict_from_url", "load_url"]
