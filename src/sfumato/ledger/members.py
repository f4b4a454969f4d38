"""Who may do what with a ledger: roles, signing keys, failed logins, and requests for budgets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from sfumato import _check
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.log.member_events import (
    BudgetDeclined,
    BudgetRequested,
    KeySet,
    LoginFailed,
    Role,
    RolesSet,
)
from sfumato.ledger.log.member_roll import Member
from sfumato.ledger.log.review_book import ReviewBook

__all__ = ["Members"]


@final
class Members:
    """The members of the organisation that runs a ledger; `Ledger.members` is one.

    Every change is an event of the hash chain. ``by`` names the curator who makes it; "" is whoever holds the
    ledger itself, as a command on the curator's machine does, and who makes the first curator. A service
    always passes a name.

    Parameters
    ----------
    book : ReviewBook
        The ledger's.

    Notes
    -----
    Guarantee: none of differential privacy. A ledger in one Python process separates nobody from the data; a
    service that holds it and knows who asks enforces by these roles. On PostgreSQL, only a database role that
    may grant can change roles and keys.

    Examples
    --------
    >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    >>> from sfumato.ledger import Budget, Dataset, Ledger, Role
    >>> from sfumato.privacy import Neighboring
    >>> ledger = Ledger.open(
    ...     None,
    ...     budget=Budget.pure(epsilon=1.0),
    ...     privacy_unit="person_id",
    ...     neighboring=Neighboring.ADD_REMOVE,
    ...     dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
    ... )
    >>> ledger.members.set_roles("carl", {Role.CURATOR})
    >>> ledger.members.set_roles("rita", {Role.REVIEWER}, by="carl")
    >>> ledger.members.register_key("rita", Ed25519PrivateKey.generate().public_key(), by="carl")
    >>> [(member.name, member.public_key is not None) for member in ledger.members.all()]
    [('carl', False), ('rita', True)]
    >>> ledger.close()
    """

    def __init__(self, book: ReviewBook) -> None:
        self._book = book

    def all(self) -> tuple[Member, ...]:
        """Return all who ever had a role, by name.

        Returns
        -------
        tuple of Member
        """
        return self._book.read(lambda roll: roll.members.members())

    def of(self, name: str) -> Member:
        """Return one member.

        Parameters
        ----------
        name : str
            Their name.

        Returns
        -------
        Member

        Raises
        ------
        ParameterError
            Nobody of this name ever had a role.
        """
        found = {member.name: member for member in self.all()}
        if name not in found:
            _check.refuse("name", "be that of a member", name, "members.all() lists them")
        return found[name]

    def set_roles(self, name: str, roles: Iterable[Role], *, by: str = "") -> None:
        """Give a member these roles and no others; none of them if they leave.

        Parameters
        ----------
        name : str
            Who.
        roles : iterable of Role
            All that they have from now on.
        by : str
            The curator who does it.

        Raises
        ------
        ParameterError
            No name, no roles, or ``by`` is no curator or takes their own role of a curator away.
        LedgerUnavailable, LedgerCorrupt
            As for `Ledger.grant`.
        """
        wanted = tuple(roles)
        for role in wanted:
            _check.instance("roles", role, Role, "pass a set such as {Role.ANALYST}")
        ordered = tuple(sorted(set(wanted), key=lambda role: role.value))
        self._book.write(RolesSet(name=name, roles=ordered, by=by))

    def register_key(self, name: str, public_key: Ed25519PublicKey | str, *, by: str = "") -> None:
        """Register the key that a member signs with, in place of one before.

        What the earlier key signed stays trusted; `revoke_key` is for a key that others may have.

        Parameters
        ----------
        name : str
            A member's.
        public_key : Ed25519PublicKey or str
            The key, or its 32 bytes in hexadecimal, from the member in person.
        by : str
            The curator who vouches that it is theirs.

        Raises
        ------
        ParameterError
            It is no key, or was registered before for anybody: one person could sign under two names.
        LedgerUnavailable, LedgerCorrupt
            As for `Ledger.grant`.
        """
        given: object = public_key
        if isinstance(public_key, Ed25519PublicKey):
            text = public_key.public_bytes_raw().hex()
        elif isinstance(given, str):
            text = given.strip().lower()
        else:
            remedy = "pass private_key.public_key()"
            _check.refuse_type(
                "public_key", "be an Ed25519PublicKey, or 64 hexadecimal digits", given, remedy
            )
        self._book.write(KeySet(name=name, public_key=text, by=by))

    def revoke_key(self, name: str, *, by: str = "") -> None:
        """Revoke a member's key: what it approved and is not published yet must be approved anew.

        Parameters
        ----------
        name : str
            A member's.
        by : str
            The curator who does it.

        Raises
        ------
        ParameterError
            They have no key.
        LedgerUnavailable, LedgerCorrupt
            As for `Ledger.grant`.
        """
        self._book.write(KeySet(name=name, public_key=None, by=by))

    def record_failed_login(self, name: str) -> None:
        """Record that somebody failed to log in under a name; to be limited in rate by who calls it.

        Parameters
        ----------
        name : str
            That was given.

        Raises
        ------
        ParameterError
            It is no name.
        LedgerUnavailable, LedgerCorrupt
            As for `Ledger.charge`.
        """
        self._book.write(LoginFailed(name=name))

    def request_budget(self, analyst: str, budget: Budget, *, purpose: str) -> None:
        """Record that an analyst asks for a budget; a later request takes the place of an open one.

        It is answered by `Ledger.grant` or by `decline_budget`.

        Parameters
        ----------
        analyst : str
            Who asks: one with an account, or an analyst by role.
        budget : Budget
            What they want in all, of the dataset's kind.
        purpose : str
            What for: one line.

        Raises
        ------
        ParameterError
            Nobody who may ask, another kind of budget, or no purpose.
        LedgerUnavailable, LedgerCorrupt
            As for `Ledger.charge`.
        """
        self._book.write(BudgetRequested(analyst=analyst, budget=budget, purpose=purpose))

    def decline_budget(self, analyst: str, *, reason: str, by: str = "") -> None:
        """Decline an analyst's open request.

        Parameters
        ----------
        analyst : str
            Who asked.
        reason : str
            Why: one line, which the analyst sees. It must not rest on rows, which it would release.
        by : str
            The curator who does it.

        Raises
        ------
        ParameterError
            There is no such request, or no reason.
        LedgerUnavailable, LedgerCorrupt
            As for `Ledger.grant`.
        """
        self._book.write(BudgetDeclined(analyst=analyst, reason=reason, by=by))

    def budget_requests(self) -> tuple[BudgetRequested, ...]:
        """Return the requests that are not answered, by analyst.

        Returns
        -------
        tuple of BudgetRequested
            Each with ``analyst``, ``budget`` and ``purpose``.
        """
        return self._book.read(lambda roll: roll.members.wishes())
