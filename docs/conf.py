"""What Sphinx is told of the site; docs/make.py puts this file beside the pages."""

project = "rushlight"
author = "the authors of rushlight"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "rushlight"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
pygments_style = "friendly"
pygments_dark_style = "monokai"
nitpicky = False
toc_object_entries = False
# Pages of single functions are reached by links and by search, not by the bar on the left.
suppress_warnings = [
    "toc.not_included",
    "toc.not_readable",
    "myst.header",
    "misc.highlighting_failure",
]
