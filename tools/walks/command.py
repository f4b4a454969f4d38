"""The command that prints a walk."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tools.walks.scenes import SCENES

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Print a walk."""
    parser = argparse.ArgumentParser(description="Follow one call through the house.")
    parser.add_argument("scene", choices=sorted(SCENES))
    walk = SCENES[parser.parse_args(argv).scene]()
    for number, (folder, files) in enumerate(walk.folders().items(), 1):
        print(f"{number:3}. {folder or '.'}: {', '.join(files)}")
    climbs = [*walk.climbs()]
    print(f"{len(walk.files)} files, {len(walk.functions)} functions, {len(climbs)} climbs")
    for caller, called in climbs:
        print(f"  climb: {caller} calls {called}")
    return 0
