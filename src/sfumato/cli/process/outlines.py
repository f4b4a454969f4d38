"""What the help of each group of commands lists, so that it is shown without importing one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

__all__ = ["OUTLINES", "Outline"]


@final
@dataclass(frozen=True, slots=True)
class Outline:
    """A group's help.

    Parameters
    ----------
    help : str
        Of the group itself.
    commands : mapping of str to str
        Its commands, each with its own help's first paragraph.
    """

    help: str
    commands: Mapping[str, str]


OUTLINES: Final[Mapping[str, Outline]] = {
    "ledger": Outline(
        "Look at a ledger, check it and export it; for its curator, grant budgets to analysts.",
        {
            "show": "Show the budget, what is left, and every charge.",
            "release": "Show a stored release again; needs no data and costs nothing.",
            "verify": "Check the whole chain and price every loss again; exit code 1 if anything is wrong.",
            "head": "Print the chain's head as JSON, to be stored where those who write the ledger cannot.",
            "key": (
                "Print the public key by which others know this ledger's exports; give it to them in person."
            ),
            "export": (
                "Write the log for a third party, signed: one line of JSON for each event, without "
                "key and releases."
            ),
            "accounts": "Show the analysts' accounts: budgets and numbers of charges.",
            "grant": (
                "Open an analyst's account or change its budget, of the dataset's kind; for the curator."
            ),
        },
    ),
    "members": Outline(
        "Say who is curator, analyst, reviewer or auditor of a ledger; for its curator.",
        {
            "list": "Show members with roles, keys and failed logins, and the open requests for budgets.",
            "roles": (
                "Give a member these roles and no others: curator, analyst, reviewer, auditor; or "
                "none of them."
            ),
            "key": (
                "Register the public key that a member signs with, or revoke it; the member gives it "
                "in person."
            ),
            "decline": "Decline an analyst's open request for a budget; 'sfumato ledger grant' grants it.",
        },
    ),
    "review": Outline(
        "Review stored releases, sign, publish and withdraw them; each step is an event of the ledger.",
        {
            "keygen": "Make a reviewer's key, and print its public half for the curator to register.",
            "list": "Show the releases that are or were in review, and what happened to each.",
            "request": "Ask that a stored release be reviewed.",
            "approve": "Sign a release; look at it first, by 'sfumato ledger release'.",
            "sign": (
                "Sign a release's approval away from the ledger, and print the signature for the console."
            ),
            "return": "Return a release to who asked, with what is to be changed.",
            "publish": "Publish an approved release.",
            "withdraw": "Withdraw a published release: it is no longer offered; who has a copy has it.",
        },
    ),
    "console": Outline(
        "Run the curator's console, and make the tokens by which its members are recognised.",
        {
            "serve": "Run the console until it is stopped.",
            "demo": (
                "Run a console on real census data, with a member for each role, and say how to "
                "publish an answer."
            ),
            "token": "Make, list and revoke the tokens of a console.",
        },
    ),
    "survey": Outline(
        "Ask a question so that no answer betrays anybody.",
        {
            "design": "Write a sheet to print: a page for the respondents, and one for the analyst.",
            "analyse": "Estimate a prevalence, the shares of categories or a mean from randomized answers.",
            "score": (
                "Estimate how many of several things are true of a person: the mean, and the share of "
                "each number."
            ),
            "report": (
                "Write the report of one survey: what was found, how it was asked, and what an answer shows."
            ),
        },
    ),
    "local": Outline(
        "Collect from devices that trust nobody: plan, randomize, count.",
        {
            "plan": "Compare protocols by error, bytes and CPU time, before anybody is asked.",
            "protocol": "Write down a protocol that you choose yourself.",
            "randomize": (
                "Randomize each value of a column as its device would, in an order that tells nothing."
            ),
            "budget": (
                "Make the budget of one device, with all three caps, or say what is left of it, with none."
            ),
            "serve": "Collect reports from devices over HTTP until it is asked to end.",
            "aggregate": "Count reports, and merge counts, into one file of counts.",
            "estimate": "Estimate from counts, with intervals, and say what each report cost.",
        },
    ),
    "shuffle": Outline(
        "Mix the reports of many people before anybody sees them.",
        {
            "keygen": "Make a key: the secret half goes to a file, the public half is printed.",
            "collection": "Write down a collection: what is asked, of how many, and for whom it is sealed.",
            "serve": (
                "Run the shuffler of a collection, or of all collections of a file, until it is asked to end."
            ),
            "submit": "Randomize, seal and send values, each as if from a device of its own: for trials.",
            "open": (
                "Open batches with the analyst's key, count them, and print the estimate and what it cost."
            ),
            "sparse": "Count texts of an unknown domain, above a threshold.",
        },
    ),
    "dap": Outline(
        "Sum measurements over two aggregators, of whom neither sees one (DAP, draft 16).",
        {
            "keygen": (
                "Draw one party's secrets: they go to a file, and the public part for the others is printed."
            ),
            "join": "Make one party of a task, from its own secrets and what the others made public.",
            "task": (
                "Write down a new task; without --collector also all secrets of the three parties, "
                "for trials."
            ),
            "serve": "Run the leader or the helper of a task until it is asked to end.",
            "upload": "Send a report of each measurement, each as if from a client of its own.",
            "collect": "Ask for a batch's sum, and print it with what it cost.",
        },
    ),
    "anonymity": Outline(
        "Measure how anonymous a table is, and generalise it, for its curator.",
        {
            "check": (
                "Print k-anonymity, l-diversity, t-closeness and the risk of re-identification of a table."
            ),
            "generalize": (
                "Write the table with the optimal full-domain generalisation, k-anonymous and with "
                "the models."
            ),
        },
    ),
}
"""By the name of the group. The groups themselves say the same: a test compares what the two show."""
