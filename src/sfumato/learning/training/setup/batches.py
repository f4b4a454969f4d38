"""What a loader says of the batches to draw: a public number of examples, steps, and the sampler of a run."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
)

from sfumato import _check
from sfumato.learning.sampling.epoch_sampler import ShuffledSampler
from sfumato.learning.sampling.independent import IndependentSampler
from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.sampling.seed import Seed, SeedLike
from sfumato.learning.sampling.users import UserRecordsSampler, UserSampler
from sfumato.learning.training.loop.private_loader import PrivateLoader
from sfumato.learning.training.setup.arguments import check_maker
from sfumato.learning.training.setup.options import SamplingOptions
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Epoch", "epoch_of", "examples_of", "planned_for", "public_part", "sampler_for", "steps_of"]

ENDLESS = 2**31 - 1
"""Steps of a run whose length was not given."""


class Epoch(NamedTuple):
    """What is public of an epoch: a number of examples, an expected batch size, and how many steps it has."""

    examples: int
    batch_size: int
    steps: int


def public_part(loader: DataLoader[Any], sampling: SamplingOptions) -> DataLoader[Any]:
    """Return a loader of the examples at a sampler's indices where these are declared public, else itself.

    Parameters
    ----------
    loader : DataLoader
    sampling : SamplingOptions

    Raises
    ------
    ParameterError
        If the loader has no such sampler or list, an index is in it twice or beyond the dataset, or the run
        would be under add/remove, where a record has no index of its own.
    """
    if not sampling.public_indices:
        return loader
    _check.instance("data_loader", loader, DataLoader, "pass your own DataLoader")
    drawn, size = _drawing_of(loader), _size_of(loader)
    if type(drawn) not in (SubsetRandomSampler, list, tuple, range) or size is None:
        remedy = "pass sampler=SubsetRandomSampler(indices), or leave public_indices out"
        rule = "have a SubsetRandomSampler or a list of indices, and a batch_size"
        _check.refuse_type("data_loader", rule, drawn, remedy)
    if sampling.population is not None:
        remedy = "leave population out: the number of indices is public"
        _check.refuse("population", "be left out with public_indices", sampling.population, remedy)
    try:
        indices = [operator.index(index) for index in getattr(drawn, "indices", drawn)]
    except TypeError:
        _check.refuse_state("indices", "be whole numbers", "one is none", "pass places of the dataset")
    if len(set(indices)) < len(indices) or not all(0 <= index < examples_of(loader) for index in indices):
        rule, remedy = "be different places of the dataset", "pass each index once"
        _check.refuse_state("indices", rule, "one occurs twice, or lies beyond it", remedy)
    taken = ("num_workers", "collate_fn", "pin_memory", "timeout")
    more = ("worker_init_fn", "multiprocessing_context", "generator", "prefetch_factor", "persistent_workers")
    settings = {name: getattr(loader, name) for name in (*taken, *more)}
    drop_last = bool(getattr(loader.batch_sampler, "drop_last", loader.drop_last))
    return DataLoader(Subset(loader.dataset, indices), batch_size=size, drop_last=drop_last, **settings)


def _drawing_of(loader: DataLoader[Any]) -> Any:
    """Return what says which examples are drawn: the sampler, or the user's own batch sampler."""
    if type(loader.batch_sampler) is BatchSampler:
        return loader.batch_sampler.sampler
    return loader.sampler if loader.batch_sampler is None else loader.batch_sampler


def _size_of(loader: DataLoader[Any]) -> int | None:
    """Return the size of batches where it is known."""
    size: Any = loader.batch_size
    if size is None:
        size = getattr(loader.batch_sampler, "batch_size", None)
    return size if isinstance(size, int) and size >= 1 else None


def epoch_of(loader: DataLoader[Any], population: int | None = None) -> Epoch:
    """Return what is public of an epoch of the user's loader.

    Parameters
    ----------
    loader : DataLoader
    population : int, optional
        The public number of examples where that of the dataset is private: nothing follows from the latter.

    Raises
    ------
    ParameterError
        If the dataset has no length, batches have no size, or the loader draws other batches than a random or
        sequential sampler does.
    """
    _check.instance("data_loader", loader, DataLoader, "pass your own DataLoader")
    if isinstance(loader, PrivateLoader):
        remedy = "pass your own loader"
        _check.refuse_state("data_loader", "be a plain DataLoader", "it is a private loader already", remedy)
    if isinstance(loader.dataset, IterableDataset):
        remedy = "use a dataset with a length and __getitem__"
        rule = "have a dataset that can be drawn from"
        _check.refuse_state("data_loader", rule, "its dataset is an IterableDataset", remedy)
    if loader.batch_sampler is not None:
        _check_drawing(loader)
    size = _size_of(loader)
    if size is None:
        remedy = "pass batch_size= to the DataLoader"
        _check.refuse_state("data_loader", "have a batch_size", "it has none", remedy)
    if population is None:
        examples = examples_of(loader)
        if examples < 1:
            remedy = "pass population= where the number of examples is private and may be 0"
            _check.refuse_state("data_loader", "have examples", "its dataset is empty", remedy)
    else:
        remedy = "pass a public number of examples, such as one that was released"
        examples = _check.integer("population", population, minimum=1, remedy=remedy)
    size = min(size, examples)
    whole, rest = divmod(examples, size)
    return Epoch(examples, size, whole + (1 if rest and not loader.drop_last else 0))


def examples_of(loader: DataLoader[Any]) -> int:
    """Return how many examples there are to draw from, which may be private."""
    return len(loader.dataset)  # type: ignore[arg-type]


def _check_drawing(loader: DataLoader[Any]) -> None:
    """Refuse a loader whose own sampler would say what is drawn: the run draws from the whole dataset."""
    drawn = _drawing_of(loader)
    plain = type(drawn) is SequentialSampler or (
        type(drawn) is RandomSampler and not drawn.replacement and drawn.num_samples == len(drawn.data_source)
    )
    if plain and getattr(drawn, "data_source", None) is loader.dataset:
        return
    remedy = (
        "the run draws its own batches: pass Subset(dataset, indices), "
        "SamplingOptions(public_indices=True) for indices that are public, or SamplingOptions(sampler=)"
    )
    rule = "have torch's RandomSampler or SequentialSampler of its dataset, without replacement"
    _check.refuse_type("data_loader", rule, drawn, remedy)


def steps_of(loader: DataLoader[Any], sampling: SamplingOptions) -> int | None:
    """Return how many steps a run has; None if nobody said."""
    epochs, steps = sampling.epochs, sampling.steps
    if epochs is not None and steps is not None:
        _check.refuse("steps", "be given without epochs", steps, "pass one of them")
    if epochs is not None:
        return _check.integer("epochs", epochs, minimum=1) * epoch_of(loader, sampling.population).steps
    return None if steps is None else _check.integer("steps", steps, minimum=1)


def sampler_for(
    loader: DataLoader[Any], sampling: SamplingOptions, *, poisson: bool, steps: int | None, seed: SeedLike
) -> Sampler:
    """Return the sampler of a run: the user's own making, or what Opacus's arguments mean.

    Poisson's probability is one over the steps of an epoch. With a public ``population`` the run is under
    add/remove, and draws from as many examples as there are; without one the number of examples is public, so
    that zero-out is what holds.
    """
    population = sampling.population
    epoch = epoch_of(loader, population)
    made = _made(loader, epoch, sampler=sampling.sampler, poisson=poisson, steps=steps, seed=seed)
    if population is None:
        alone = isinstance(made, IndependentSampler) and made.neighboring is Neighboring.ADD_REMOVE
        return made.zeroing_out() if isinstance(made, IndependentSampler) and alone else made
    if not isinstance(made, IndependentSampler) or made.neighboring is not Neighboring.ADD_REMOVE:
        remedy = "draw each example by itself, as PoissonSampler does, under add/remove"
        rule = (
            f"be left out with {type(made).__name__} under {made.neighboring}, which needs the number itself"
        )
        _check.refuse("population", rule, population, remedy)
    return made.over(examples_of(loader))


def _made(
    loader: DataLoader[Any],
    epoch: Epoch,
    *,
    sampler: Callable[..., Sampler] | None,
    poisson: bool,
    steps: int | None,
    seed: SeedLike,
) -> Sampler:
    """Return the sampler of an epoch's public numbers."""
    population, batch_size, steps_per_epoch = epoch
    planned = ENDLESS if steps is None else steps
    if sampler is not None:
        rest = "lambda population, batch_size, steps, seed, **_: ..."
        check_maker("sampler", sampler, "population, batch_size, steps_per_epoch, steps and seed", rest)
        made = sampler(
            population=population,
            batch_size=batch_size,
            steps_per_epoch=steps_per_epoch,
            steps=planned,
            seed=seed,
        )
        given: object = made
        if not isinstance(given, Sampler) or not _draws_from(given, loader, population):
            remedy = "use the numbers it is given; of users, pass as many ids as there are examples"
            _check.refuse_type("sampler", f"draw from {population} examples", given, remedy)
        if seed is not None and Seed.of(made.seed).reveal() != Seed.of(seed).reveal():
            # Another seed may be another run's, and is another in each of several processes.
            _check.refuse("sampler", "be made of the seed that it is given", made, "pass seed=seed")
        if made.clips != "example":
            remedy = "pass clip='example' to the sampler, or sum and clip by user in a loop of your own"
            _check.refuse("sampler", "be priced for clipping each example", made, remedy)
        return made
    if poisson:
        return PoissonSampler(
            population=population, sampling_probability=1 / steps_per_epoch, steps=planned, seed=seed
        )
    warnings.warn(
        "poisson_sampling=False: shuffled batches hide nobody, and each epoch costs a whole "
        "unamplified step, under zero-out",
        UserWarning,
        stacklevel=6,
    )
    return ShuffledSampler(population=population, batch_size=batch_size, steps=planned, seed=seed)


def planned_for(loader: DataLoader[Any], sampling: SamplingOptions, *, poisson: bool) -> Sampler:
    """Return a sampler like that of the run, to find its noise by; how long the run is must be known."""
    loader = public_part(loader, sampling)
    planned = steps_of(loader, sampling)
    if planned is None:
        _check.refuse("epochs", "be given", None, "pass epochs= or steps=")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run itself says it again
        return sampler_for(loader, sampling, poisson=poisson, steps=planned, seed=None)


def _draws_from(made: Sampler, loader: DataLoader[Any], population: int) -> bool:
    """Whether a sampler is of the public number of examples, or, with a declared batch size, of users."""
    declared = isinstance(made, UserSampler | UserRecordsSampler) and made.public_batch_size is not None
    return made.population == (examples_of(loader) if declared else population)
