"""Hugging Face's Trainer with a guarantee: its loop, evaluation and checkpoints; our batches and steps."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from sfumato import _check
from sfumato.learning.adapters.example_losses import example_losses, known_loss
from sfumato.learning.adapters.logical_batches import LogicalBatches, size_of
from sfumato.learning.adapters.privacy_arguments import PrivacyArguments
from sfumato.learning.adapters.training_arguments import check_arguments, private_arguments
from sfumato.learning.training.privacy_engine import PrivacyEngine
from sfumato.learning.training.setup.batches import epoch_of

__all__ = ["PrivateTrainer", "PrivateTrainerMixin"]

FOLDER = "_privacy"
"""Beside the checkpoints, with an underscore: what is pushed to a hub leaves such folders out."""

_OURS = ("compute_loss", "training_step", "get_train_dataloader", "_get_train_sampler")
_OF_ROWS = ("loss", "train_loss", "grad_norm", "total_flos")

_Loop: Any = Trainer if TYPE_CHECKING else object
"""What a mixin's `super()` is."""


class PrivateTrainerMixin(_Loop):
    """Makes a `transformers.Trainer` train privately; named first among the bases.

    Takes what `Trainer` takes, by the same names. A step of the optimizer is one private step on one logical
    batch, of ``per_device_train_batch_size * gradient_accumulation_steps`` examples expected; it goes through
    the model in parts of at most ``per_device_train_batch_size``.

    Parameters
    ----------
    model : torch.nn.Module or PreTrainedModel, optional
    args : TrainingArguments
    *more
        What else `Trainer` takes by position.
    privacy : PrivacyArguments
    **options
        What else `Trainer` takes by name.

    Raises
    ------
    ParameterError
        An argument breaks the guarantee, or a class among the bases replaces what it rests on.

    Notes
    -----
    Guarantee: `get_epsilon`, for the model and all that is computed from it, as `PrivacyEngine` says.
    Conditions: those of `TrainingRun`; a row of the dataset is one example; the collator makes an example's
    inputs from that row, so that its gradient does not follow from the others of its batch (padding to the
    batch's longest is passed over by attention masks, up to rounding); ``compute_loss_func``, where there is
    one, returns for each example a loss that follows from that example.

    The loss is the mean over the examples of each one's own mean; see `example_losses`.

    Examples
    --------
    >>> from sfumato.learning import PrivateTrainerMixin
    >>> class MyTrainer(PrivateTrainerMixin):  # before a subclass of transformers.Trainer
    ...     pass
    >>> issubclass(MyTrainer, PrivateTrainerMixin)
    True
    """

    def __init__(
        self,
        model: Any = None,
        args: TrainingArguments | None = None,
        *more: Any,
        privacy: PrivacyArguments,
        **options: Any,
    ) -> None:
        _check_bases(type(self))
        args = check_arguments(args, privacy)
        self.privacy = privacy
        self._logical = args.per_device_train_batch_size * args.gradient_accumulation_steps
        self._resumed: Path | None = None
        self._begun: PrivacyEngine | None = None
        self._training = False
        super().__init__(model, private_arguments(args), *more, **options)

    # what a user asks

    @property
    def privacy_engine(self) -> PrivacyEngine:
        """The engine of the run, once it has begun."""
        if self._begun is None:
            remedy = "call train()"
            _check.refuse_state("trainer", "have begun to train", "train() has not begun a run", remedy)
        return self._begun

    def get_epsilon(self) -> float:
        """Return the epsilon of the steps so far, at the arguments' delta, rounded up.

        Returns
        -------
        float
        """
        return 0.0 if self._begun is None else self._begun.get_epsilon(self.privacy.delta)

    def train(self, resume_from_checkpoint: str | bool | None = None, trial: Any = None, **more: Any) -> Any:
        """Train privately; once for each trainer, as a run is charged once.

        Parameters
        ----------
        resume_from_checkpoint : str or bool, optional
            A checkpoint of the same run: nothing is charged again.
        trial : object, optional
            Refused: `sfumato.learning.tune` charges for a search.
        **more
            What else `Trainer.train` takes.

        Returns
        -------
        TrainOutput
            Without the training loss, unless it is to be shown.
        """
        if self._begun is not None:
            remedy = "make another trainer, for another run"
            _check.refuse_state("trainer", "train only once", "it has already trained", remedy)
        if trial is not None:
            remedy = "sfumato.learning.tune charges for a search"
            _check.refuse_state("trial", "be left out", "a hyperparameter search passed one", remedy)
        if isinstance(resume_from_checkpoint, bool) and resume_from_checkpoint:
            resume_from_checkpoint = get_last_checkpoint(self.args.output_dir)
            if resume_from_checkpoint is None:
                rule = "have a checkpoint to go on from"
                _check.refuse("output_dir", rule, self.args.output_dir, "leave resume_from_checkpoint out")
        self._resumed = Path(str(resume_from_checkpoint)) if resume_from_checkpoint else None
        self._training = True
        try:
            output = super().train(resume_from_checkpoint=resume_from_checkpoint or None, **more)
        finally:
            self._end()
        if self.privacy.show_loss:
            return output
        return output._replace(training_loss=math.nan, metrics=_shown(output.metrics))

    def _end(self) -> None:
        self._training = False
        if self._begun is not None:
            self._begun.detach()

    # what the loop asks

    def get_train_dataloader(self) -> LogicalBatches:
        """Return the batches that the run draws; it begins here, and is charged if there is a ledger.

        Returns
        -------
        LogicalBatches
            Each item is one logical batch, as a list of its parts.
        """
        if not self._training:
            remedy = "make a DataLoader to look at the data"
            rule = "be asked for by train() only"
            _check.refuse_state("train_dataloader", rule, "it was asked for outside of train()", remedy)
        if self._begun is None:
            self._begun = self._begin()
        return LogicalBatches(self._begun.parts.loader)

    def _begin(self) -> PrivacyEngine:
        args = self.args
        if self.compute_loss_func is None:
            known_loss(self.model)
        loader = self._whole_loader()
        per_epoch = epoch_of(loader, self.privacy.sampling.population).steps
        steps = args.max_steps if args.max_steps > 0 else math.ceil(args.num_train_epochs * per_epoch)
        return self.privacy.begin(
            module=self.model,
            optimizer=self.create_optimizer(),
            data_loader=loader,
            steps=steps,
            max_physical_batch_size=args.per_device_train_batch_size,
            resume_from=None if self._resumed is None else self._private_part(self._resumed),
        )

    def _whole_loader(self) -> DataLoader[Any]:
        """Return a plain loader of logical batches, from whose dataset the private one draws."""
        args, dataset, collate = self.args, self.train_dataset, self.data_collator
        if dataset is None or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            remedy = "pass a dataset that rows can be drawn from"
            _check.refuse_type("train_dataset", "have a length and __getitem__", dataset, remedy)
        if hasattr(dataset, "remove_columns"):
            dataset = self._remove_unused_columns(dataset, description="Training")
        else:
            collate = self._get_collator_with_removed_columns(collate, description="Training")
        return DataLoader(
            dataset,
            batch_size=self._logical,
            collate_fn=collate,
            drop_last=args.dataloader_drop_last,
            num_workers=args.dataloader_num_workers,
            pin_memory=args.dataloader_pin_memory and torch.cuda.is_available(),
            persistent_workers=args.dataloader_persistent_workers,
            prefetch_factor=args.dataloader_prefetch_factor,
        )

    def training_step(
        self, model: Any, inputs: list[dict[str, Any]], num_items_in_batch: Any = None
    ) -> Tensor:
        """Bring a logical batch through the model, part by part; nobody's part is passed over.

        Parameters
        ----------
        model : torch.nn.Module
        inputs : list of dict
            The parts of one logical batch, as the collator makes them.
        num_items_in_batch : object
            Not used: a number of tokens follows from private rows.

        Returns
        -------
        torch.Tensor
            The logical batch's mean loss, detached; of private rows, and not logged.
        """
        del num_items_in_batch
        total, examples = torch.zeros((), device=self.args.device), 0
        for part in inputs:
            size = size_of(part)
            if size:
                total += size * super().training_step(model, part)
                examples += size
        return total / max(1, examples)

    def compute_loss(self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, **_: Any) -> Any:
        """Return the mean of the examples' losses; of evaluation too, so that both can be compared.

        Parameters
        ----------
        model : torch.nn.Module
        inputs : dict
            One part of a batch, with its labels.
        return_outputs : bool
            Whether to return the model's outputs too.

        Returns
        -------
        torch.Tensor, or tuple of torch.Tensor and outputs
            A scalar that can go backward.
        """
        inputs, size = dict(inputs), size_of(inputs)
        labels = inputs.pop("labels", None)
        outputs = model(**inputs)
        if self.compute_loss_func is not None:
            losses = self.compute_loss_func(outputs, labels, num_items_in_batch=None)
            if not isinstance(losses, Tensor) or losses.shape != (size,):
                remedy = "leave the mean over the batch out"
                _check.refuse_type("compute_loss_func", "return one loss for each example", losses, remedy)
        else:
            if labels is None:
                remedy = "name the targets so, or pass compute_loss_func="
                _check.refuse_state("inputs", "have labels", "there are none", remedy)
            losses = example_losses(
                outputs["logits"] if isinstance(outputs, dict) else outputs[0],
                labels,
                known_loss(self.model),
                problem_type=getattr(self.model.config, "problem_type", None),
                label_smoothing=self.args.label_smoothing_factor,
            )
        return (losses.mean(), outputs) if return_outputs else losses.mean()

    def floating_point_ops(self, inputs: Any) -> int:
        """Return nothing: how many tokens a batch has is of private rows, and checkpoints would show the sum.

        Parameters
        ----------
        inputs : object
            Not used.

        Returns
        -------
        int
            Always 0.
        """
        del inputs
        return 0

    def log(self, logs: dict[str, float], *more: Any, **options: Any) -> None:
        """Log with the epsilon spent so far, and without what is of private rows.

        Parameters
        ----------
        logs : dict of str to float
            What the trainer logs: the training loss and the gradients' norm are removed, epsilon is added.
        *more, **options
            Passed on to ``Trainer.log``.
        """
        if self._begun is not None:
            logs = (logs if self.privacy.show_loss else _shown(logs)) | {"epsilon": self.get_epsilon()}
        super().log(logs, *more, **options)

    # checkpoints

    def _save_checkpoint(self, *args: Any, **options: Any) -> None:
        """Write the run's part first: there is no checkpoint without it."""
        folder = Path(self.args.output_dir)
        if not self.args.save_only_model:
            part = self._private_part(folder / f"checkpoint-{self.state.global_step}")
            part.parent.mkdir(parents=True, exist_ok=True)
            self.privacy_engine.save_checkpoint(path=part)
        super()._save_checkpoint(*args, **options)
        for part in (folder / FOLDER).glob("checkpoint-*.pt"):
            if not (folder / part.stem).is_dir():
                part.unlink()
                part.with_name(f"{part.name}.secrets").unlink(missing_ok=True)

    @staticmethod
    def _private_part(checkpoint: Path) -> Path:
        return checkpoint.parent / FOLDER / f"{checkpoint.name}.pt"


class PrivateTrainer(PrivateTrainerMixin, Trainer):
    """Hugging Face's Trainer, privately: see `PrivateTrainerMixin`, for trainers of one's own.

    Examples
    --------
    >>> trainer = PrivateTrainer(  # doctest: +SKIP
    ...     model=model,
    ...     args=TrainingArguments(output_dir="out", num_train_epochs=3),
    ...     train_dataset=train,
    ...     privacy=PrivacyArguments(target_epsilon=3.0, delta=1e-5),
    ... )
    """


def _check_bases(kind: type) -> None:
    """Refuse classes that put something else in the place of what the guarantee rests on."""
    for base in kind.__mro__:
        for name in _OURS:
            if base not in (PrivateTrainerMixin, Trainer) and name in vars(base):
                _check.refuse_state(
                    "trainer",
                    f"not override {name}",
                    f"{base.__name__} overrides it",
                    "pass compute_loss_func= for another loss, and PrivacyArguments(options=) with a sampler "
                    "for other batches",
                )


def _shown(logs: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in logs.items() if name not in _OF_ROWS}
