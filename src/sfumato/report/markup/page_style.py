"""The style of every page: one sheet, whose hash the page's policy names, and nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from string import Template
from typing import Final

from sfumato.report.markup.elements import Markup

__all__ = ["COLORS", "POLICY", "STYLE", "STYLE_SOURCE"]

COLORS: Final = {
    "ink": "#1b1b1b",
    "paper": "#ffffff",
    "bar": "#8fb3d9",
    "quiet": "#545454",
    "warn": "#8a1c1c",
}
"""Text has a contrast of at least 7 to the paper; shapes, and not colours, carry a meaning."""

_SHEET: Final = """
body{font:1rem/1.5 system-ui,sans-serif;color:$ink;background:$paper;max-width:46rem;margin:0 auto;
padding:1rem;overflow-wrap:break-word}
h1{font-size:1.6rem;line-height:1.25}
h2{font-size:1.2rem;margin-top:2rem;border-bottom:1px solid $quiet}
table{border-collapse:collapse;margin:1rem 0}
caption{text-align:left;color:$quiet;padding-bottom:.3rem}
th,td{padding:.2rem .7rem .2rem 0;text-align:left;vertical-align:top;border-bottom:1px solid $quiet}
td.n{font-variant-numeric:tabular-nums;white-space:nowrap}
.i,figcaption{color:$quiet}
.scroll{overflow-x:auto}
figure{margin:1rem 0}
svg{width:100%;height:auto}
.notice{border:2px solid $warn;color:$warn;padding:.5rem 1rem;font-weight:bold}
code{overflow-wrap:anywhere;white-space:pre-wrap}
dt{font-weight:bold}
dd{margin:0 0 .5rem}
.skip{position:absolute;left:-99rem}
.skip:focus{position:static;color:$ink}
:focus-visible{outline:3px solid $ink;outline-offset:2px}
main:focus{outline:none}
@media print{
body{max-width:none;font-size:10pt}
h2{break-after:avoid}
figure,tr{break-inside:avoid}
thead{display:table-header-group}
.scroll{overflow:visible}
.skip{display:none}
}
"""

STYLE: Final = Markup(Template(_SHEET).substitute(COLORS))

_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

STYLE_SOURCE: Final = f"'sha256-{_HASH}'"
"""The sheet as a policy names it."""

POLICY: Final = f"default-src 'none'; style-src {STYLE_SOURCE}; base-uri 'none'; form-action 'none'"
"""The content security policy: this one sheet, and nothing else."""
