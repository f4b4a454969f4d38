"""Every form of the console: who sends it, what is typed, and what then is read on the page and holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sfumato.ledger import Approval, Budget, LedgerExport, Role
from sfumato.server.console.services.reviewing import CHECKLIST
from tests.server.console.desk import Desk
from tests.server.console.template_forms import TemplateForm
from tests.server.console.visitor import TICKED, read_only

__all__ = ["FORMS", "KeyboardForm"]

_AGES: Final = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(delta=0) COUNT(*) AS n FROM data WHERE age > 60"
_COUNT: Final = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.01, delta=0) COUNT(*) AS c FROM data"
_PUBLIC_KEY: Final = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
"""The first one of RFC 8032's test vectors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyboardForm:
    """A form that is sent, and what comes of it."""

    who: str
    """"" is the public."""
    way: tuple[str, ...] = ()
    """What is pressed until the form is there; nothing on the page that the form before led to."""
    form: TemplateForm
    press: str = ""
    """What is pressed to send it, where its words are made, or no button is: ``Enter`` in the last field."""
    under: str = ""
    """The heading that it stands under, where that says which one is meant."""
    fields: Mapping[str, str | Callable[[Desk], str]] = field(default_factory=dict)
    before: Callable[[Desk], object] = lambda desk: None
    """Makes what there must be first."""
    says: str
    """What is then read, on the page that comes or once it was looked at again."""
    look: str = ""
    """What is pressed to read it, where a file comes and no page."""
    holds: Callable[[Desk], object] | None = None
    """What is other afterwards; without it, nothing may be."""
    becomes: object = None


def _form(template: str, action: str, button: str, method: str = "post") -> TemplateForm:
    return TemplateForm(f"{template}.html", method, action, button)


def _hint(desk: Desk) -> str:
    """Return the question that the page gives as an example."""
    return desk.visitor.hint("Question").removeprefix("Such as ")


def _last_job(desk: Desk) -> tuple[int, str, int]:
    return len(desk.jobs), desk.jobs[0].state if desk.jobs else "", desk.ledger.head().charges


def _requests(desk: Desk) -> list[tuple[str, str, str]]:
    return [(one.analyst, str(one.budget), one.purpose) for one in desk.ledger.members.budget_requests()]


def _request(desk: Desk) -> None:
    desk.ledger.members.request_budget("ada", Budget.pure(epsilon=2.0), purpose="even more")


def _budgets(desk: Desk) -> tuple[int, dict[str, str], str]:
    """Return how many ask for a budget, the budgets there are, and the reason that was given last."""
    accounts = {one.analyst or "": str(one.budget) for one in desk.ledger.accounts() if one.analyst}
    (event,) = desk.ledger.events.newest(1)
    return len(desk.ledger.members.budget_requests()), accounts, json.loads(event.body).get("reason", "")


def _eve(desk: Desk) -> tuple[set[Role], str | None]:
    eve = next((one for one in desk.ledger.members.all() if one.name == "eve"), None)
    return (set(), None) if eve is None else (set(eve.roles), eve.public_key)


def _review(number: int) -> Callable[[Desk], tuple[str, str, str]]:
    def last_step(desk: Desk) -> tuple[str, str, str]:
        review = desk.ledger.reviews.of(number)
        return (review.state, review.steps[-1].by, review.steps[-1].comment) if review.steps else ("", "", "")

    return last_step


def _signed(desk: Desk) -> str:
    return Approval.from_json(read_only(desk.visitor)["Statement"]).sign(desk.key).hex()


def _queued(desk: Desk) -> None:
    desk.clock.stop()
    assert desk.submit(_COUNT, "one that waits").state == "queued"


def _exported(desk: Desk) -> tuple[bool, int]:
    """Return whether the head is the one that was taken away last, and how many exports of it are there."""
    head, last = desk.ledger.head(), desk.office.console.heads.last()
    exports = [LedgerExport.parse(text) for text in desk.files]
    whole = [one for one in exports if one.verify(public_key=desk.ledger.public_key).sound]
    return last is not None and last.head == head, [one.head_digest for one in whole].count(head.digest)


FORMS: Final = (
    KeyboardForm(
        who="",
        way=("Sign in",),
        form=_form("sign_in", "/sign-in", "Sign in"),
        fields={"Token": "sfumato_wrong"},
        says="not valid",
        holds=lambda desk: [event.kind for event in desk.ledger.events.newest(1)],
        becomes=["login"],
    ),
    KeyboardForm(
        who="",
        form=_form("sign_in", "/sign-in", "Sign in"),
        press="Enter",
        fields={"Token": lambda desk: desk.office.tokens["ada"]},
        says="Signed in as ada",
        holds=lambda desk: desk.visitor.menu(),
        becomes=["/releases", "/ask", "/history", "/dry-run", "/dataset", "/account"],
    ),
    KeyboardForm(
        who="ada",
        way=("Ask",),
        form=_form("ask", "/ask/price", "What does it cost?"),
        under="In SQL",
        fields={"Question": "SELECT name FROM data"},
        says="SELECT WITH DIFFERENTIAL_PRIVACY",
    ),
    KeyboardForm(
        who="ada",
        form=_form("ask", "/ask/price", "What does it cost?"),
        under="In SQL",
        fields={"Question": _AGES.replace("delta=0", "epsilon=2, delta=0")},
        says="Needs 2, more than may be spent of your 0.75 epsilon.",
    ),
    KeyboardForm(
        who="ada",
        form=_form("proposal", "/ask/price", "What does it cost?"),
        fields={"Question": _AGES.replace("delta=0", "epsilon=0.5, delta=0")},
        says="Spend 0.5 of your 0.75 epsilon.",
    ),
    KeyboardForm(
        who="ada",
        way=("Ask",),
        form=_form("ask", "/ask/price", "What does it cost?"),
        under="In SQL",
        fields={"Question": _hint, "Epsilon": "1.5", "Purpose": "a report"},
        says="Price it at epsilon 0.75",
    ),
    KeyboardForm(
        who="ada",
        form=_form("proposal", "/ask/price", "Price it at epsilon …"),
        says="Spend 0.75 of your 0.75 epsilon",
    ),
    KeyboardForm(
        who="ada",
        way=("Another question",),
        form=_form("ask", "/ask/price", "What does it cost?"),
        under="Without SQL",
        fields={
            "What": "SUM",
            "Of column": "age",
            "Lower bound": "-1.5",
            "Upper bound": "120",
            "Delta": "0",
            "Epsilon": "0.25",
            "Purpose": "a sum",
        },
        says="Spend 0.25 of your 0.75 epsilon",
    ),
    KeyboardForm(
        who="ada",
        form=_form("proposal", "/ask/run", "…"),
        press="Spend …",
        says="State: done",
        holds=_last_job,
        becomes=(1, "done", 2),
    ),
    KeyboardForm(
        who="ada",
        form=_form("job", "/history/{}/review", "Ask for a review"),
        fields={"Comment": "for print"},
        says="Release 2: requested",
        holds=_review(2),
        becomes=("requested", "ada", "for print"),
    ),
    KeyboardForm(
        who="ada",
        way=("Change the question",),
        form=_form("ask", "/ask/price", "What does it cost?"),
        under="In SQL",
        says="Costs nothing: it was charged before.",
    ),
    KeyboardForm(
        who="ada",
        form=_form("proposal", "/ask/run", "Ask again, for nothing"),
        says="State: done",
        holds=_last_job,
        becomes=(2, "done", 2),
    ),
    KeyboardForm(
        who="ada",
        before=_queued,
        way=("History", "SELECT…"),
        form=_form("job", "/history/{}/cancel", "Cancel"),
        says="State: cancelled",
        holds=_last_job,
        becomes=(3, "cancelled", 3),
    ),
    KeyboardForm(
        who="ada",
        way=("Dry run",),
        form=_form("dry_run", "/dry-run", "Try it"),
        fields={"Question": _AGES, "Epsilon": "1"},
        says="Made up",
    ),
    KeyboardForm(
        who="ada",
        way=("My budget",),
        form=_form("account", "/account/request", "Ask the curator"),
        fields={"Epsilon": "1.5", "Purpose": "more of it"},
        says="You asked for 1.5-DP: more of it. A curator has not decided yet.",
        holds=_requests,
        becomes=[("ada", "1.5-DP", "more of it")],
    ),
    KeyboardForm(
        who="rita",
        before=lambda desk: desk.ledger.reviews.request(1, by="ada"),
        way=("Review", "Release 1"),
        form=_form("review", "/review/{}/statement", "Continue to the signature"),
        fields={words: TICKED for _, words in CHECKLIST} | {"Comment": "well done"},
        says="Sign release 1",
    ),
    KeyboardForm(
        who="rita",
        form=_form("statement", "/review/{}/approve", "Approve with this signature"),
        fields={"Signature": _signed},
        says="approved by rita: well done",
        holds=_review(1),
        becomes=("approved", "rita", "well done\nconfirmed: purpose, groups, bounds, numbers, release"),
    ),
    KeyboardForm(
        who="rita",
        way=("Review", "Release 2"),
        form=_form("review", "/review/{}/return", "Return to who asked"),
        fields={"What is to be changed": "other bounds"},
        says="returned by rita: other bounds",
        holds=_review(2),
        becomes=("returned", "rita", "other bounds"),
    ),
    KeyboardForm(
        who="carl",
        way=("Review", "Release 1"),
        form=_form("review", "/review/{}/publish", "Publish"),
        says="published by carl",
        holds=_review(1),
        becomes=("published", "carl", ""),
    ),
    KeyboardForm(
        who="carl",
        form=_form("review", "/review/{}/withdraw", "Withdraw"),
        fields={"Reason, which everybody reads": "an error"},
        says="withdrawn by carl: an error",
        holds=_review(1),
        becomes=("withdrawn", "carl", "an error"),
    ),
    KeyboardForm(
        who="carl",
        way=("Grants",),
        form=_form("grants", "/grants/decide", "Grant it"),
        fields={"Reason to grant it": "agreed"},
        says="Nobody asks for a budget.",
        holds=_budgets,
        becomes=(0, {"ada": "1.5-DP"}, "agreed"),
    ),
    KeyboardForm(
        who="carl",
        before=_request,
        way=("Grants",),
        form=_form("grants", "/grants/decide", "Decline"),
        press="Enter",
        fields={"Reason to decline": "too much"},
        says="Nobody asks for a budget.",
        holds=_budgets,
        becomes=(0, {"ada": "1.5-DP"}, "too much"),
    ),
    KeyboardForm(
        who="carl",
        form=_form("grants", "/grants/grant", "Grant"),
        under="Grant a budget",
        fields={"Analyst": "eve", "Epsilon": "0.25", "Reason": "a thesis"},
        says="0.25-DP",
        holds=_budgets,
        becomes=(0, {"ada": "1.5-DP", "eve": "0.25-DP"}, "a thesis"),
    ),
    KeyboardForm(
        who="carl",
        form=_form("grants", "/grants/close", "Close"),
        under="Close an account",
        fields={"Analyst": "eve", "Reason": "it is over"},
        says="closed",
        holds=_budgets,
        becomes=(0, {"ada": "1.5-DP", "eve": "None"}, "it is over"),
    ),
    KeyboardForm(
        who="carl",
        way=("Members",),
        form=_form("members", "/members/roles", "Set these roles"),
        under="Give roles",
        fields={"Name": "eve", "analyst": TICKED, "reviewer": TICKED},
        says="analyst, reviewer",
        holds=_eve,
        becomes=({Role.ANALYST, Role.REVIEWER}, None),
    ),
    KeyboardForm(
        who="carl",
        form=_form("members", "/members/key", "Register"),
        under="Register a key",
        fields={"Name": "eve", "Public key": _PUBLIC_KEY},
        says=_PUBLIC_KEY,
        holds=_eve,
        becomes=({Role.ANALYST, Role.REVIEWER}, _PUBLIC_KEY),
    ),
    KeyboardForm(
        who="carl",
        way=("eve",),
        form=_form("members", "/members/revoke", "Revoke"),
        under="Revoke a key",
        says="analyst, reviewer\tnone",
        holds=_eve,
        becomes=({Role.ANALYST, Role.REVIEWER}, None),
    ),
    KeyboardForm(
        who="carl",
        way=("Set epsilon",),
        form=_form("epsilon", "/epsilon", "Show what it means", "get"),
        fields={"Epsilon": "1"},
        says="at most 73.2 in 100",
    ),
    KeyboardForm(
        who="carl",
        way=("Budget",),
        form=_form("budget", "/log/verify", "Verify the whole log"),
        says="the chain is unbroken",
    ),
    KeyboardForm(
        who="carl",
        way=("Budget",),
        form=_form("budget", "/log/export", "Take the log away, signed"),
        look="Budget",
        says="A head of the log was last taken away",
        holds=_exported,
        becomes=(True, 1),
    ),
    KeyboardForm(
        who="otto",
        way=("Log",),
        form=_form("log", "/log/verify", "Verify the whole log"),
        says="every loss costs what was recorded",
    ),
    KeyboardForm(
        who="otto",
        before=lambda desk: desk.ledger.members.record_failed_login("otto"),
        way=("Log",),
        form=_form("log", "/log/export", "Export, signed"),
        look="Budget",
        says="0 charges came since",
        holds=_exported,
        becomes=(True, 1),
    ),
    KeyboardForm(
        who="otto",
        form=_form("frame", "/sign-out", "Sign out"),
        says="Sign in",
        holds=lambda desk: desk.visitor.menu(),
        becomes=["/releases"],
    ),
)
"""In this order: some need what those before them made."""
