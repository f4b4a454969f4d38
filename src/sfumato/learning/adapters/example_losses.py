"""The loss of each example, from what a Hugging Face model predicts: others' tokens weigh nothing in it."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from sfumato import _check

__all__ = ["example_losses", "known_loss"]

IGNORED = -100
_WHOLE = {
    "ForSequenceClassification",
    "ForImageClassification",
    "ForAudioClassification",
    "ForVideoClassification",
}
_TOKENS = {"ForMaskedLM", "ForTokenClassification"}
_SHIFTED = "ForCausalLM"


def known_loss(model: nn.Module) -> str:
    """Return which loss a model's labels are for.

    Raises
    ------
    ParameterError
        If it is none of those whose examples are known to be apart.
    """
    base: Any = getattr(model, "get_base_model", None)  # peft's
    inner = base() if callable(base) else model
    config = getattr(inner, "config", None)
    kind = getattr(inner, "loss_type", None)
    if kind is None and type(inner).__name__ in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        kind = _SHIFTED
    if kind not in {_SHIFTED, *_WHOLE, *_TOKENS} or getattr(config, "is_encoder_decoder", False):
        remedy = "pass compute_loss_func=, which returns one loss for each example"
        rule = "be a classifier of sequences or tokens, or a language model without an encoder"
        _check.refuse_type("model", rule, inner, remedy)
    return str(kind)


def example_losses(
    logits: Tensor,
    labels: Tensor,
    kind: str,
    *,
    problem_type: str | None = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return one loss for each example, in float32.

    Parameters
    ----------
    logits : Tensor
        Of shape (examples, labels), or (examples, tokens, labels).
    labels : Tensor
        Of classes, of shape (examples,) or (examples, tokens), where -100 is passed over; or of numbers.
    kind : str
        As `known_loss` says.
    problem_type : str, optional
        Of a classifier of whole sequences; from the labels if None, as the models do.
    label_smoothing : float

    Returns
    -------
    Tensor
        Of shape (examples,). That of an example without labels is zero.

    Notes
    -----
    Each entry follows from the example's own logits and labels: of tokens it is the mean over the example's
    own labels. The models' own loss is the mean over all labels of a batch, in which one example's labels
    change what all others weigh, and no clipping of single examples bounds that.

    Examples
    --------
    >>> import torch
    >>> labels = torch.tensor([[0, 1], [1, -100], [-100, -100]])
    >>> example_losses(torch.zeros(3, 2, 2), labels, "ForTokenClassification").tolist()
    [0.6931471824645996, 0.6931471824645996, 0.0]
    """
    logits = logits.float()
    if kind in _WHOLE:
        return _whole(logits, labels, problem_type, label_smoothing)
    if logits.ndim != 3 or logits.shape[:2] != labels.shape:
        rule = "have as many tokens as the predictions"
        _check.refuse_state(
            "labels",
            rule,
            f"labels have shape {tuple(labels.shape)} and predictions {tuple(logits.shape)}",
            "pass compute_loss_func=",
        )
    if kind == _SHIFTED:
        logits, labels = logits[:, :-1], labels[:, 1:]
    losses = nn.functional.cross_entropy(
        logits.transpose(1, 2),
        labels,
        ignore_index=IGNORED,
        reduction="none",
        label_smoothing=label_smoothing,
    )
    return losses.sum(1) / (labels != IGNORED).sum(1).clamp(min=1)


def _whole(logits: Tensor, labels: Tensor, problem_type: str | None, label_smoothing: float) -> Tensor:
    if problem_type is None:
        several = (
            "multi_label_classification" if labels.is_floating_point() else "single_label_classification"
        )
        problem_type = "regression" if logits.shape[1] == 1 else several
    if problem_type == "single_label_classification":
        return nn.functional.cross_entropy(
            logits,
            labels.reshape(-1),
            ignore_index=IGNORED,
            reduction="none",
            label_smoothing=label_smoothing,
        )
    loss: Any = nn.functional.mse_loss
    if problem_type == "multi_label_classification":
        loss = nn.functional.binary_cross_entropy_with_logits
    losses: Tensor = loss(logits, labels.reshape(logits.shape).float(), reduction="none")
    return losses.mean(1)
