"""How Sphinx builds these pages: ``sphinx-build -n -W --keep-going docs docs/_build``."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import pictures  # noqa: E402

# Behind what is installed, as `pictures` has put it.
from papers import page  # noqa: E402

project = "dpq_fast"
author = "The dpq_fast founders"
copyright = author
try:
    release = metadata.version("dpq_fast")
except metadata.PackageNotFoundError:  # a checkout, built in its place
    release = ""

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "dpq_docs",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "examples"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = ["_templates"]

# A warning is an error in the gate, and so is a name that leads nowhere.
nitpicky = True
default_role = "name"
suppress_warnings = ["config.cache"]  # options that hold functions

autodoc_typehints = "none"  # docstrings say it in words
autodoc_member_order = "bysource"
autosummary_generate = True
numpydoc_show_class_members = False  # by the template of classes

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "plot_gallery": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "dpq_fast"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["dpq.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# Pages without others below them.
html_sidebars = {
    page: []
    for page in (
        *("index", "tour", "command_line", "faq", "accuracy", "performance", "audits", "security"),
        *("papers", "reproduction", "architecture", "contributing", "changelog"),
        *("genindex", "search"),
    )
}

pictures.draw(HERE / "_generated")
page.draw(HERE / "_generated" / "reproduction")
