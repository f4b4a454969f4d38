r"""The budget of one device over all collections: no report is drawn that it has not paid for.

>>> import os, tempfile
>>> from sfumato.local.device import Domain, RandomizedResponseRandomizer
>>> budget = DeviceBudget.create(
...     os.path.join(tempfile.mkdtemp(), "budget"), lifetime_epsilon=20.0, daily_epsilon=2.0, max_epsilon=1.0
... )
>>> asked = RandomizedResponseRandomizer(epsilon=0.75, domain=Domain(["no", "yes"]))
>>> len(budget.randomize(asked, "yes")), budget.remaining().today
(5, 1.25)

Guarantee: all that a device sends through its budget is ``lifetime_epsilon``-DP, and all that it pays for on
one day ``daily_epsilon``-DP, whoever sees it and however the questions were chosen: replace-one for all
values of the device at once, where answers are memoized between histories alike in the changes of what is
memoized (see `sfumato.local.device.longitudinal.memory`). Memos count on the day on which they are paid for,
with all reports that are ever made of them: what is sent on a later day may lose as much as they cost besides
the cap of that day.

Proof. Count a report as sent when it is paid for, and so all memos of a question, of which its reports are
made. Fix two histories of values, and what was sent so far. Whether and what the device is asked, whether it
answers and what that costs, are functions of the specifications, of what was asked and answered before, and
of the clock: the same for both histories. Each answer multiplies the ratio of their likelihoods by at most
:math:`e^{c}`, where c is what it costs; so the ratio of all answers is at most e to the sum of what was paid,
which never exceeds the cap, as each payment is checked against it first. A value that cannot be reported is
not answered, at no cost: that no answer comes is outside of the guarantee, as it is without a budget.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, final

from sfumato import _check
from sfumato.errors import SimulatedCharge, SourceError
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.base.report_batch import ReportBatch
from sfumato.local.device.budget.budget_file import (
    UNIT,
    BudgetFile,
    BudgetState,
    units_below,
)
from sfumato.local.device.budget.payment import begin_day, pay
from sfumato.local.device.longitudinal.memo_store import MemoClient
from sfumato.local.device.shuffle.collection import PublicCollection
from sfumato.numerics.randomness.source import Rng, random_source

__all__ = ["BudgetRemaining", "DeviceBudget"]

_MAX_CAP: Final = 4096.0
_REPORTING: Final = threading.Lock()
"""Held from a memo's payment to its report: two at one generation of the store would look like a lost one."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRemaining:
    """What a device may still spend; its user's to see, and no server's.

    Parameters
    ----------
    lifetime : float
        Of all days to come.
    today : float
        Of this day; never more than ``lifetime``.

    Examples
    --------
    >>> print(BudgetRemaining(lifetime=18.5, today=0.5))
    epsilon 0.5 left today, 18.5 in all
    """

    lifetime: float
    today: float

    def __str__(self) -> str:
        return f"epsilon {self.today:g} left today, {self.lifetime:g} in all"


@final
class DeviceBudget:
    r"""The budget of one device: made by `create`, opened by `open`; every answer goes through it.

    Parameters
    ----------
    file : BudgetFile
    clock : callable
        Returns seconds since 1970.

    Notes
    -----
    Guarantee: see the top of `sfumato.local.device.budget.device_budget`. Losses are added up; amounts are
    multiples of 2^-40, what is spent rounded up and caps down: ten reports of 0.1 need a cap somewhat above
    1, such as 1.001.

    *Before anything is drawn*, the payment is on disk. A device that is killed between the two has paid and
    sent nothing. Processes and threads that share a file pay one after the other, and never more than there
    is.

    *What a report costs.* The epsilon of its randomizer, each time. A report of a memo store
    (`report`) pays at the first one for all memos that it may ever draw, ``memo_limit`` times
    ``permanent_epsilon``, and then nothing: to pay for a memo when it is drawn would show, by a refusal,
    that the value is new. It pays again where the memos are lost, or older than after the last report, and
    where the device was killed between a payment and its report.

    *The caps are the device's.* They and the pins are fixed by `create`; no specification raises them. The
    day is that of the device's clock in UTC, and never an earlier one than before: a clock that is set back
    returns nothing, one that is set ahead uses up its days' caps, and never more than the lifetime's.

    *What a server sees.* An absent report: of a device that is off, has no value, or refuses. When a device
    refuses depends on what it was asked and answered, by all servers, and on its clock; a server that knows
    the caps learns by it how much others have asked. It says nothing of values.

    *Losing the file* returns all that was spent; `open` never creates one. An older copy returns what was
    spent since: an application that stores `generation` elsewhere passes it as ``at_least``.
    """

    __slots__ = ("_clock", "_file")

    def __init__(self, file: BudgetFile, clock: Callable[[], float] = time.time) -> None:
        self._file, self._clock = file, clock

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        lifetime_epsilon: float,
        daily_epsilon: float,
        max_epsilon: float,
        collection_epsilon: float | None = None,
        digests: Iterable[bytes] | None = None,
        simulated: bool = False,
    ) -> DeviceBudget:
        """Return a new budget, of which nothing is spent; a file that is there is refused.

        Parameters
        ----------
        path : path
            Of the file; its folder must exist.
        lifetime_epsilon, daily_epsilon : float
            The caps of all reports, and of those of one day; at most 4096.
        max_epsilon : float
            The largest epsilon of one report, or of one memo.
        collection_epsilon : float, optional
            The cap of all reports to one collection.
        digests : iterable of bytes, optional
            ``randomizer.digest`` of the only specifications that are answered; any, if left out.
        simulated : bool
            Whether ``rng=`` may seed reports; then nobody is protected.

        Returns
        -------
        DeviceBudget

        Raises
        ------
        ParameterError
            If a cap is not positive, or a digest is not 32 bytes.
        SourceError
            If there is a file already, or none can be written.
        """
        state = BudgetState(
            lifetime=_cap("lifetime_epsilon", lifetime_epsilon),
            daily=_cap("daily_epsilon", daily_epsilon),
            report=_cap("max_epsilon", max_epsilon),
            collection=None if collection_epsilon is None else _cap("collection_epsilon", collection_epsilon),
            digests=None if digests is None else sorted(_digest(one) for one in digests),
            simulated=bool(simulated),
        )
        file = BudgetFile(path)
        with file.changing(new=state):
            pass
        return cls(file)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        at_least: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> DeviceBudget:
        """Return the budget of a file.

        Parameters
        ----------
        path : path
        at_least : int
            The last `generation` that the application knows of: an older copy is refused.
        clock : callable
            Returns seconds since 1970; the system's, if left out.

        Returns
        -------
        DeviceBudget

        Raises
        ------
        SourceError
            If there is none, or it is damaged, or older than it should be.
        """
        made = cls(BudgetFile(path), clock)
        known, found = _check.integer("at_least", at_least), made.generation
        if found < known:
            raise SourceError(
                f"budget must be of generation {known} or later, got {found}: an older copy; "
                "pass at_least=0 to go on with it, and spend what it forgot once more"
            )
        return made

    @property
    def generation(self) -> int:
        """How often the file was written: once for each payment, and when it was made."""
        return self._file.read().generation

    def remaining(self) -> BudgetRemaining:
        """Return what is left of both caps now.

        Returns
        -------
        BudgetRemaining
        """
        state = self._file.read()
        begin_day(state, self._clock())
        lifetime = state.lifetime - state.spent
        return BudgetRemaining(
            lifetime=lifetime / UNIT, today=min(lifetime, state.daily - state.today) / UNIT
        )

    def randomize(self, randomizer: Randomizer, value: Any, rng: Rng = None) -> bytes:
        """Return the report of a value, after it is paid for.

        Parameters
        ----------
        randomizer : Randomizer
        value
            The truth; it does not leave this call.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; seeds are for simulated budgets.

        Returns
        -------
        bytes

        Raises
        ------
        DeviceBudgetExceeded
            If a cap or a pin does not allow it; nothing is paid or drawn.
        ParameterError
            If the value cannot be reported; nothing is paid, and the message does not show it.
        """
        return self.randomize_batch(randomizer, [value], rng).records.tobytes()

    def randomize_batch(self, randomizer: Randomizer, values: Any, rng: Rng = None) -> ReportBatch:
        """Return a report of each of some values of this one device: all are paid for, or none.

        Parameters
        ----------
        randomizer : Randomizer
        values : array or list
        rng : None, int, numpy Generator or RandomSource
            See `randomize`.

        Returns
        -------
        ReportBatch

        Raises
        ------
        DeviceBudgetExceeded, ParameterError
            See `randomize`.
        """
        _check.instance("randomizer", randomizer, Randomizer, "pass protocol.device")
        if isinstance(values, list | tuple | Iterator):
            values = list(values)  # read once: as many are drawn as are paid for
        source, count = random_source(rng), _reportable(randomizer, values)
        self._pay(randomizer, count, randomizer.digest, source.simulated)
        return ReportBatch(
            randomizer.randomize_batch(values, source).records, randomizer.digest, source.simulated
        )

    def envelope(self, collection: PublicCollection, value: Any, secret: bytes, rng: Rng = None) -> bytes:
        """Return what the device sends to a shuffled collection, after it is paid for.

        Parameters
        ----------
        collection : PublicCollection
        value, secret
            See `PublicCollection.envelope`.
        rng : None, int, numpy Generator or RandomSource
            See `randomize`.

        Returns
        -------
        bytes
            To send it again, send these same bytes: another call pays again.

        Raises
        ------
        DeviceBudgetExceeded, ParameterError
            See `randomize`.

        Notes
        -----
        It costs what the client's messages lose to somebody who sees them as the client's, so that the
        shuffler need not be trusted for the budget. Split sums alone hide nothing, and are refused.
        """
        _check.instance("collection", collection, PublicCollection, "pass collection.device")
        source = random_source(rng)
        collection.nonce(secret)
        _reportable(collection.randomizer, [value])
        self._pay(collection.randomizer, 1, collection.id, source.simulated)
        return collection.envelope(value, secret, source)

    def report(self, client: MemoClient, value: Any, rng: Rng = None) -> bytes:
        """Return a report made of a device's memos; the first one pays for all of them.

        Parameters
        ----------
        client : MemoClient
            Of `MemoStore.client`, of one store for one budget.
        value
            The truth of now.
        rng : None, int, numpy Generator or RandomSource
            See `randomize`.

        Returns
        -------
        bytes

        Raises
        ------
        DeviceBudgetExceeded, ParameterError
            See `randomize`.
        SourceError
            If the memo store cannot be written; what was paid stays so.
        """
        _check.instance("client", client, MemoClient, "pass store.client(randomizer)")
        source, randomizer = random_source(rng), client.protocol
        _reportable(randomizer, [value])
        simulated = source.simulated or client.simulated
        with _REPORTING:
            self._pay(randomizer, 1, randomizer.digest, simulated, client)
            return client.report(value, source)

    def _pay(
        self,
        randomizer: Randomizer,
        count: int,
        collection: bytes,
        simulated: bool,
        client: MemoClient | None = None,
    ) -> None:
        """Write down what some reports cost, or refuse them."""
        with self._file.changing() as state:
            if simulated and not state.simulated:
                raise SimulatedCharge(
                    "rng must be None for a real budget, and no memo of a seed; create(..., simulated=True)"
                )
            begin_day(state, self._clock())
            pay(state, randomizer, count, collection.hex(), client)


def _cap(name: str, given: object) -> int:
    """Return a cap in units."""
    value = _check.positive(name, given)
    if value > _MAX_CAP:
        _check.refuse(name, "be at most 4096", given, "lower it: it protects nobody")
    found = units_below(value)
    if not found:
        _check.refuse(name, "be at least 2**-40", given, "raise it: no report costs less")
    return found


def _digest(given: object) -> str:
    if not isinstance(given, bytes) or len(given) != 32:
        _check.refuse_type("digests", "be 32 bytes each", given, "pass randomizer.digest")
    return given.hex()


def _reportable(randomizer: Randomizer, values: Any) -> int:
    """Return how many values there are, if all can be reported: a draw from a seed, which is thrown away."""
    return len(randomizer.randomize_batch(values, 0)) // randomizer.messages
