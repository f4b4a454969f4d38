"""Commands are imported when they are used; lists of them and help need none."""

from __future__ import annotations

import os
import subprocess
import sys

from typer.main import get_command
from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.cli.process.groups import LazyGroup

HEAVY = frozenset({"numpy", "scipy", "duckdb", "pyarrow", "sqlglot", "cryptography", "torch", "pandas"})
CODE = """
import sys
from sfumato.cli.main import main
sys.argv = ["sfumato", *sys.argv[1:]]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def ran(*words: str, **environment: str) -> tuple[str, set[str]]:
    """Run a command line in a process of its own; return its output, and what it imported."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return done.stdout, set(done.stderr.splitlines()[-1].split())


def test_version_and_help_import_no_command() -> None:
    group = get_command(app)
    assert isinstance(group, LazyGroup)
    modules = {each.home.partition(":")[0] for each in group.homes.values()}
    for words in (["--version"], ["-h"], ["ledger", "-h"]):
        shown, imported = ran(*words)
        assert shown
        assert imported.isdisjoint(HEAVY | modules)
        assert words != ["-h"] or all(name in shown for name in group.homes)


def test_a_command_imports_no_other() -> None:
    shown, imported = ran("calibrate", "-h")
    assert "--epsilon" in shown
    assert "sfumato.cli.accounting" in imported
    assert imported.isdisjoint({"torch", "sfumato.cli.train", "sfumato.cli.auditing", "sfumato.cli.survey"})


def test_a_command_that_is_not_there_is_named_with_the_nearest() -> None:
    done = CliRunner().invoke(app, ["ledgr"])
    assert done.exit_code == 2
    assert "'ledger'" in done.stderr


def test_short_options() -> None:
    assert CliRunner().invoke(app, ["-V"]).stdout == CliRunner().invoke(app, ["--version"]).stdout
    assert "Usage" in CliRunner().invoke(app, ["ledger", "show", "-h"]).stdout
