"""Where older programs look for `hub.load_state_dict_from_url`."""

from rushlight.hub import load_state_dict_from_url as load_state_dict_from_url
