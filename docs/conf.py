"""What Sphinx is told of the site; docs/make.py puts this file beside the pages."""

import functools

from sphinx.search.en import SearchEnglish

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
html_use_index = False  # search finds names
html_domain_indices = False


def setup(app):
    app.connect("html-page-context", share_tree, priority=400)
    SearchEnglish.stem = functools.cache(SearchEnglish.stem)  # pages have few words, many times


_trees = {}


def share_tree(app, page, template, context, doctree):
    """Makes the tree on the left once for all pages of a folder that it does not name.

    Sphinx makes it anew for each page, which takes longer than all else.
    """
    named = {name for names in app.env.toctree_includes.values() for name in names}
    make = context.get("toctree")
    if make is None or page in named:
        return
    folder = page.rpartition("/")[0]

    def shared(**options):
        if folder not in _trees:
            _trees[folder] = make(**options)
        return _trees[folder]

    context["toctree"] = shared
