"""``sfumato demo --attack``: what attackers get out of four ways to publish the census excerpt."""

from __future__ import annotations

from sfumato.attacks.base.findings import Findings
from sfumato.cli.demos.attack_story import introduction, publications
from sfumato.cli.output.page import Page
from sfumato.cli.output.tables import plain_table, shown

__all__ = ["attack_demo"]


def attack_demo() -> None:
    """Publish one table four times, and attack each."""
    page = Page()
    page.say(introduction())
    for number, publication in enumerate(publications(), 1):
        page.title(f"{number}. {publication.title}")
        page.say(publication.text)
        _show(page, publication.found)


def _show(page: Page, found: Findings) -> None:
    """Print what was found of the people who are in the release, and of those who are not."""
    table = plain_table(("", "people", "claims", "right", "of claims", "of people"), right=range(1, 6))
    for name, group in (("in the release", found.targets), ("not in it", found.controls)):
        if group is not None and group.hits is not None:
            shares = [f"{100 * group.hits / max(count, 1):.1f} %" for count in (group.claims, group.people)]
            table.add_row(name, shown(group.people), shown(group.claims), shown(group.hits), *shares)
    page.table(table)
    if found.bounds:
        page.say(
            "Whatever the attack: in the mean over the noise, the loss allows at most "
            f"{100 * found.bounds[0].allowed:.1f} % of those in the release, given what was found of others.",
            style="green",
        )
    else:
        page.say("No bound: nothing about this release limits what another attack finds.", style="red")
