"""How the documentation is built: ``sphinx-build -W -b html docs docs/_build`` with sfumato installed."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sphinx.errors import ExtensionError

import sfumato

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from docs.pictures import (
    adaptive,
    attacks,
    bounds,
    concepts,
    games,
    inference,
    location,
    pufferfish,
    shuffling,
    structure,
)
from tools.walks.scenes import SCENES

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FACES = (
    "sfumato",
    *(f"sfumato.{name}" for name in sfumato.__all__ if isinstance(getattr(sfumato, name), ModuleType)),
    "sfumato.local.baselines",
    "sfumato.local.device",
    "sfumato.local.shuffle",
    "sfumato.local.surveys",
)

INHERITING = ("sfumato.Session", "sfumato.ledger.Ledger", "sfumato.ledger.LedgerView")
"""Classes whose pages list what they inherit: their bases are on no page, and are parts of them alone."""


def names_by_face() -> dict[str, list[str]]:
    """Return the names that each face's page shows: a thing that two faces export is shown by the first."""
    seen: set[int] = set()
    shown: dict[str, list[str]] = {}
    for face in FACES:
        module = importlib.import_module(face)
        things = {name: getattr(module, name) for name in module.__all__}
        shown[face] = [
            n for n, thing in things.items() if id(thing) not in seen and not isinstance(thing, ModuleType)
        ]
        seen.update(map(id, things.values()))
    return shown


project = "sfumato"
author = "The sfumato founders"
copyright = "2026, The sfumato founders"
version = release = sfumato.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build", "pictures", "**.ipynb_checkpoints"]
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The notebooks run when the site is built; one that fails, fails the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120

# The reference is written from the rooms' faces: a page for each name in __all__, under its public path.
autosummary_generate = True
autosummary_context = {"shown": names_by_face(), "inheriting": INHERITING}
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}  # a default would undo INHERITING
numpydoc_show_class_members = False


def setup(app: Sphinx) -> None:
    """Leave out the methods that scikit-learn makes, and fold what a page's sidebar does not need."""
    shown = {f"{face}.{name}" for face, names in names_by_face().items() for name in names}
    if not shown.issuperset(INHERITING):
        raise ExtensionError(f"INHERITING must be on pages, got {sorted({*INHERITING} - shown)}; correct it")
    app.connect("autodoc-skip-member", _made_for_routing)
    app.connect("html-page-context", _fold, priority=400)  # before the theme's own, at 500
    app.connect("builder-inited", _draw)


def _draw(app: Sphinx) -> None:
    """Draw the pictures of the code as it is, and of the concepts."""
    folder = Path(app.srcdir) / "_pictures"
    structure.rooms(folder / "rooms.svg")
    for scene, walked in SCENES.items():
        structure.walk(folder / f"walk_{scene}.svg", walked())
    adaptive.draw(folder / "adaptive.svg")
    attacks.draw(folder / "attacks.svg")
    bounds.draw(folder / "bounds.svg")
    games.draw(folder / "games.svg")
    inference.draw(folder / "inference.svg")
    games.equilibrium(folder / "equilibrium.svg")
    location.draw(folder / "location.svg")
    shuffling.draw(folder / "shuffling.svg")
    pufferfish.draw(folder / "pufferfish.svg")
    concepts.noise(folder / "noise.svg")
    concepts.trade_off(folder / "trade_off.svg")
    concepts.epsilon_over_steps(folder / "epsilon_over_steps.svg")


def _made_for_routing(
    _app: Sphinx, _what: str, name: str, _member: object, skip: bool, _options: object
) -> bool:
    """Leave them out: their text is scikit-learn's own, and names its pages."""
    return skip or bool(re.fullmatch(r"set_\w+_request", name))


def _fold(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """Show only the branch that a page is on: the theme would write all names of the reference into each."""
    whole = context["toctree"]
    context["toctree"] = lambda **options: whole(**{**options, "collapse": True})


html_theme = "furo"
html_title = f"sfumato {release}"
