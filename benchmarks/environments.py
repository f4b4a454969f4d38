"""Virtual environments of the peers, one each, under ``benchmarks/.peers``: no two of them fit into one.

They are made on first use, from the package index that pip knows, and made anew when a requirement changes. A
peer may see all that the running interpreter has, and then runs in one process with ours; see `_BESIDE`.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

__all__ = ["interpreter", "script", "title"]

_HERE = Path(__file__).parent
_REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "dp_accounting": ("dp-accounting==0.6.0",),
    "opendp": ("opendp[polars]==0.16.0",),
    "smartnoise": ("smartnoise-sql==1.0.10", "pyarrow"),
    "pipelinedp": ("pipeline-dp==0.3.1", "pyarrow"),
    "tumult": ("tmlt.analytics==0.21.0",),
    # With the newest scikit-learn it does not import.
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.6.1", "pyarrow"),
    "opacus": ("opacus==1.6.0",),
    # What they import and do not declare; all as new as the index has it, as for anybody who installs them.
    "pure_ldp": ("pure-ldp==1.2.0", "scikit-learn", "statsmodels"),
    "multi_freq_ldpy": ("multi-freq-ldpy==0.2.5",),
    "anjana": ("anjana==1.2.3", "pyarrow"),
    "pycanon": ("pycanon==1.3.6", "pyarrow"),
    "ldp_toolbox": ("ldp-toolbox==0.1.3",),
    "mbi": ("mbi==2.0.0",),
    "smartnoise_synth": ("smartnoise-synth==1.0.8",),
    "dpmm": ("dpmm==0.1.9",),  # needs CPython below 3.12
    "privsyn": ("privsyn-core==0.1.1",),
}
_BESIDE = ("opacus",)
"""What fits beside our own packages, which it sees after its own: torch is not installed twice."""


def title(peer: str) -> str:
    """Return the peer's distribution and version."""
    return _REQUIREMENTS[peer][0].replace("==", " ")


def script(peer: str, benchmark: str) -> Path:
    """Return the file that runs a benchmark inside of the peer's environment."""
    return _HERE / "peers" / f"{peer}_{benchmark}.py"


def interpreter(peer: str) -> Path:
    """Return the interpreter of the peer's environment, made first if it is missing or out of date."""
    home = _HERE / ".peers" / peer
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    wanted, installed = "\n".join(_REQUIREMENTS[peer]), home / "requirements.txt"
    if not installed.exists() or installed.read_text() != wanted:
        venv.create(home, with_pip=True, clear=True)
        if peer in _BESIDE:
            _show(python)
        subprocess.run([python, "-m", "pip", "install", "-q", *_REQUIREMENTS[peer]], check=True)
        installed.write_text(wanted)
    return python


def _show(python: Path) -> None:
    """Let a new environment see the packages of the running one, after its own."""
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    own = Path(subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
    ours = sysconfig.get_path("purelib")
    (own / "running.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
