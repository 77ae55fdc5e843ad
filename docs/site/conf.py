"""How the site is made of the pages in docs/; run docs/build.

The pages are written for GitHub and are not changed for the site. Two of them are completed here, because what they need
would be noise on GitHub: the table of contents is read from the lists of docs/index.md, and the classes of the Python
package follow the text of docs/api.md.
"""

import re
from pathlib import Path

import svml

DOCS = Path(__file__).resolve().parent.parent

project = "svml"
author = "the authors of svml"
version = release = svml.__version__
html_title = f"svml {release}"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["site", "build", "**.ipynb_checkpoints"]
html_theme = "furo"
html_static_path = ["static"]
pygments_dark_style = "github-dark"
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False

# Anchors as GitHub makes them, to the depth that the pages have.
myst_heading_anchors = 4
myst_enable_extensions = []
# Formulas and what programs print are shown as they are.
highlight_language = "text"

# The notebook is run, whatever output it holds, and a cell that fails ends the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True

# Docstrings have numpy's sections, with types in them, and names in single backticks.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# The list beside the page has the names of classes, not every attribute.
toc_object_entries = False
default_role = "code"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

GROUPS = {
    "Estimators": ["SVMLClassifier", "SVML", "NCA", "LMNN", "ITML", "PairsITML"],
    "Functions": ["load", "measures"],
    "Displays": [name for name in svml.__all__ if name.endswith("Display")],
}


def contents(text: str) -> str:
    """The table of contents: each list of links to pages below a heading of docs/index.md, then all other pages."""
    groups: dict[str, list[tuple[str, str]]] = {}
    heading = ""
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif found := re.match(r"- \[([^]]+)\]\(([\w-]+)\.(?:md|ipynb)\)", line):
            groups.setdefault(heading, []).append(found.groups())
    listed = {page for pages in groups.values() for _, page in pages} | {"index"}
    files = sorted([*DOCS.glob("*.md"), *DOCS.glob("*.ipynb")])
    others = [path.stem for path in files if path.stem not in listed]
    blocks = [(heading, [f"{title} <{page}>" for title, page in pages]) for heading, pages in groups.items()]
    if others:
        blocks.append(("More", others))
    return "".join(
        "\n```{toctree}\n:hidden:\n:caption: " + heading + "\n\n" + "\n".join(entries) + "\n```\n" for heading, entries in blocks
    )


def reference() -> str:
    """The classes and functions of the package, from their docstrings."""
    groups = GROUPS | {"Other": [name for name in svml.__all__ if name not in sum(GROUPS.values(), [])]}
    lines = []
    for heading, names in groups.items():
        lines += ["", f"## {heading}", ""]
        for name in names:
            kind = "autoclass" if isinstance(getattr(svml, name), type) else "autofunction"
            lines += [f"### {name}", "", "```{eval-rst}", f".. {kind}:: svml.{name}"]
            if kind == "autoclass":
                lines += ["   :members:", "   :inherited-members: Exception, dict"]
            lines += ["```", ""]
    return "\n".join(lines)


def complete(app, name, source):
    if name == "index":
        source[0] += contents(source[0])
    elif name == "api":
        source[0] += reference()


def skip(app, what, name, member, skipped, options):
    """Leaves out what scikit-learn's own base classes bring: it is on scikit-learn's pages, to which its text links."""
    home = getattr(member, "__module__", None) or ""
    return True if home.startswith("sklearn.") else None


def plain(app, what, name, member, options, lines):
    """Makes references of docstrings plain text: many classes on one page have a [1] of their own."""
    reference = False
    for k, line in enumerate(lines):
        reference = line.lstrip().startswith(".. [") or reference and line.startswith(" ")
        if reference:
            line = line.strip().removeprefix(".. ")
        line = re.sub(r"\[(\d+)\]_", r"[\1]", line)
        lines[k] = line.replace("(n_features_in_,", r"(n_features_in\_,")


def setup(app):
    # Before napoleon, which has 500.
    app.connect("autodoc-process-docstring", plain, priority=400)
    app.connect("autodoc-skip-member", skip)
    app.connect("source-read", complete)
