"""The style: enough contrast, and a policy that names this sheet and nothing else."""

from __future__ import annotations

import base64
import hashlib

from sfumato.report.markup.page_style import COLORS, POLICY, STYLE


def luminance(color: str) -> float:
    parts = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_can_be_read_on_paper_and_bars_have_an_outline() -> None:
    assert round(contrast("#000000", "#ffffff")) == 21
    for name in ("ink", "quiet", "warn"):
        assert contrast(COLORS[name], COLORS["paper"]) >= 7
    assert contrast(COLORS["ink"], COLORS["bar"]) >= 3  # whiskers over bars, and the bars' outline


def test_the_policy_is_of_this_sheet() -> None:
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in POLICY
    assert POLICY.startswith("default-src 'none'")
    assert "url(" not in STYLE
    assert "<" not in STYLE
