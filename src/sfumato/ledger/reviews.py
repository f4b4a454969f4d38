"""From a stored release to a published one: a second person signs for it, and a curator publishes it."""

from __future__ import annotations

from typing import final

from sfumato import _check
from sfumato.ledger.log.approval import Approval
from sfumato.ledger.log.review_book import ReviewBook
from sfumato.ledger.log.review_events import Approved, Published, Returned, ReviewRequested, Withdrawn
from sfumato.ledger.log.review_roll import Review, ReviewRoll
from sfumato.ledger.log.words import check_comment, check_name

__all__ = ["Reviews"]


@final
class Reviews:
    """The reviews of a ledger's releases; `Ledger.reviews` is one.

    Each step is an event of the hash chain, held to the rules in the transaction that records it: of two
    processes that take a step from the same state, one is refused.

    Parameters
    ----------
    book : ReviewBook
        The ledger's.

    Notes
    -----
    Guarantee: no release is published that nobody but its asker has signed for; see
    `sfumato.ledger.log.review_roll` for the rules and the condition. This is no differential privacy, and it
    may cost some: a return, a withdrawal or a comment that rests on rows releases something about them, which
    nobody has paid for. Let reviewers see releases only.

    Examples
    --------
    >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    >>> from sfumato.ledger import Budget, Dataset, Ledger, Role
    >>> from sfumato.privacy import Laplace, Neighboring
    >>> ledger = Ledger.open(
    ...     None,
    ...     budget=Budget.pure(epsilon=1.0),
    ...     privacy_unit="person_id",
    ...     neighboring=Neighboring.ADD_REMOVE,
    ...     dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
    ... )
    >>> key = Ed25519PrivateKey.generate()
    >>> ledger.members.set_roles("carl", {Role.CURATOR})
    >>> ledger.members.set_roles("rita", {Role.REVIEWER}, by="carl")
    >>> ledger.members.register_key("rita", key.public_key(), by="carl")
    >>> ledger.grant("ada", Budget.pure(epsilon=0.5), by="carl", reason="the yearly report")
    >>> receipt = ledger.charge(Laplace(2.0), delta=0.0, analyst="ada", purpose="how many we are")
    >>> ledger.commit(receipt, b"1204")
    >>> ledger.reviews.request(1, by="ada")
    >>> approval = ledger.reviews.approval(1, by="rita")
    >>> ledger.reviews.approve(approval, approval.sign(key))
    >>> ledger.reviews.publish(1, by="carl")
    >>> [step.state for step in ledger.reviews.of(1).steps]
    ['requested', 'approved', 'published']
    >>> ledger.verify().sound
    True
    >>> ledger.close()
    """

    def __init__(self, book: ReviewBook) -> None:
        self._book = book

    def of(self, number: int) -> Review:
        """Return where one release is.

        Parameters
        ----------
        number : int
            Of its charge.

        Returns
        -------
        Review

        Raises
        ------
        ParameterError
            No release was stored with this charge.
        """
        wanted = _number(number)
        return self._book.read(lambda roll: roll.review(wanted))

    def all(self, state: str = "") -> tuple[Review, ...]:
        """Return all releases that ever were in review, in order of their charges.

        Parameters
        ----------
        state : str
            Only those that are this now: "requested", "approved", "returned", "published" or "withdrawn".

        Returns
        -------
        tuple of Review
        """
        states = ("", "requested", "approved", "returned", "published", "withdrawn")
        if state not in states:
            _check.refuse("state", f"be one of {', '.join(states[1:])}", state, "leave it out for all")
        return tuple(review for review in self._book.read(ReviewRoll.reviews) if state in ("", review.state))

    def request(self, number: int, *, by: str, comment: str = "") -> None:
        """Ask that a release be reviewed.

        Parameters
        ----------
        number : int
            Of its charge.
        by : str
            Who asked the question, or a curator.
        comment : str
            What the reviewer should know.

        Raises
        ------
        ParameterError
            The release was not stored, has simulated noise, is in review or published; or ``by`` may not ask.
        LedgerUnavailable, LedgerCorrupt
            As for `Ledger.charge`.
        """
        self._book.write(ReviewRequested(number=_number(number), by=by, comment=comment))

    def approval(self, number: int, *, by: str, comment: str = "") -> Approval:
        """Return what a reviewer signs to approve a release; nothing is recorded.

        Parameters
        ----------
        number : int
            Of its charge.
        by : str
            The reviewer.
        comment : str
            What they say of it; it is signed, too.

        Returns
        -------
        Approval

        Raises
        ------
        ParameterError
            No release was stored with this charge.
        """
        wanted, name, words = _number(number), check_name("by", by), check_comment(comment)
        return self._book.read(lambda roll: roll.approval(wanted, name, words))

    def approve(self, approval: Approval, signature: bytes) -> None:
        """Record a reviewer's approval.

        Parameters
        ----------
        approval : Approval
            What `approval` returned.
        signature : bytes
            That of ``approval.sign`` with the key registered for the reviewer.

        Raises
        ------
        ParameterError
            The release is not in review or is another, the reviewer asked for it or is none, the key is
            not theirs or was registered by who asked, or the signature is of something else.
        LedgerUnavailable, LedgerCorrupt
            As for `Ledger.charge`.
        """
        _check.instance("approval", approval, Approval, "pass what reviews.approval(number, by=) returned")
        _check.instance("signature", signature, bytes, "pass what approval.sign(key) returned")

        def expected(roll: ReviewRoll) -> tuple[Approval, str | None]:
            meant = roll.approval(approval.number, approval.by, approval.comment)
            return meant, roll.members.key_of(approval.by)

        meant, public_key = self._book.read(expected)
        if meant != approval:
            found = "it is about another release or ledger"
            _check.refuse_state("approval", "be about this release", found, "sign reviews.approval(number)")
        self._book.write(
            Approved(
                number=approval.number,
                by=approval.by,
                public_key=public_key or "",
                signature=signature.hex(),
                comment=approval.comment,
            )
        )

    def send_back(self, number: int, *, by: str, comment: str) -> None:
        """Return a release to who asked, with what is to be changed.

        Parameters
        ----------
        number : int
            Of its charge.
        by : str
            A reviewer or a curator, and not who asked.
        comment : str
            Why; it must not rest on rows.

        Raises
        ------
        ParameterError
            The release is not in review, or ``by`` may not return it.
        LedgerUnavailable, LedgerCorrupt
            As for `Ledger.charge`.
        """
        self._book.write(Returned(number=_number(number), by=by, comment=comment))

    def publish(self, number: int, *, by: str) -> None:
        """Publish an approved release.

        Parameters
        ----------
        number : int
            Of its charge.
        by : str
            A curator.

        Raises
        ------
        ParameterError
            It is not approved, its key was revoked since, or ``by`` is no curator.
        LedgerUnavailable, LedgerCorrupt
            As for `Ledger.charge`.
        """
        self._book.write(Published(number=_number(number), by=by))

    def withdraw(self, number: int, *, by: str, comment: str) -> None:
        """Withdraw a published release: it is no longer offered; who has a copy has it.

        Parameters
        ----------
        number : int
            Of its charge.
        by : str
            A curator.
        comment : str
            Why; it must not rest on rows.

        Raises
        ------
        ParameterError
            It is not published, or ``by`` is no curator.
        LedgerUnavailable, LedgerCorrupt
            As for `Ledger.charge`.
        """
        self._book.write(Withdrawn(number=_number(number), by=by, comment=comment))


def _number(number: int) -> int:
    return _check.integer("number", number, minimum=1, remedy="pass the number of a charge")
