"""What Hugging Face's training arguments mean for a private run, and which of them would break it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from transformers import TrainingArguments

from sfumato import _check
from sfumato.learning.adapters.privacy_arguments import PrivacyArguments

__all__ = ["check_arguments", "private_arguments"]

_ITS_OWN_CLIP = 1.0
"""What ``max_grad_norm`` is where nobody has set it."""

_UNFIT: tuple[tuple[str, Callable[[Any], bool], str, str], ...] = (
    ("n_gpu", lambda n: n > 1, "be at most 1", "DataParallel copies the module: make one device visible"),
    ("world_size", lambda n: n > 1, "be 1", "train in one process, or in a loop of your own with DPDDP"),
    ("deepspeed", bool, "be left out", "gradients are never whole there"),
    ("fsdp", bool, "be left out", "gradients are never whole there"),
    ("fp16", bool, "be off", "gradient scalers change what is clipped: use bf16=True"),
    ("auto_find_batch_size", bool, "be off", "set per_device_train_batch_size, which only bounds memory"),
    ("torch_compile", bool, "be off", "the engine's hooks do not run in a compiled module"),
    ("activation_checkpointing", bool, "be off", "lower per_device_train_batch_size for less memory"),
    ("gradient_checkpointing", bool, "be off", "lower per_device_train_batch_size for less memory"),
    ("use_liger_kernel", bool, "be off", "its loss is the mean over the tokens of all examples"),
    (
        "neftune_noise_alpha",
        lambda alpha: alpha is not None,
        "be left out",
        "its noise is as large as the longest example of a batch makes it, for all others too",
    ),
    ("group_by_length", bool, "be off", "batches are drawn at random, or nothing is amplified"),
    (
        "train_sampling_strategy",
        lambda way: str(way) != "random",
        "be 'random'",
        "batches are drawn at random, or nothing is amplified",
    ),
    (
        "include_num_input_tokens_seen",
        lambda value: value not in (False, "no"),
        "be 'no'",
        "how many tokens there are is of private rows",
    ),
    (
        "optim",
        lambda name: any(word in str(getattr(name, "value", name)) for word in ("layerwise", "lomo")),
        "step once for all parameters",
        "use adamw_torch, say",
    ),
)


def check_arguments(args: Any, privacy: Any) -> TrainingArguments:
    """Return training arguments, or refuse those that break a guarantee, each by its name.

    Raises
    ------
    ParameterError
        With what to do instead.
    """
    _check.instance("args", args, TrainingArguments, "pass transformers.TrainingArguments(...)")
    _check.instance("privacy", privacy, PrivacyArguments, "pass privacy=PrivacyArguments(...)")
    for name, unfit, rule, remedy in _UNFIT:
        value = getattr(args, name, None)
        if value is not None and unfit(value):
            _check.refuse(name, rule, value, remedy)
    own = args.max_grad_norm
    if own and own not in (_ITS_OWN_CLIP, privacy.max_grad_norm):
        remedy = "pass PrivacyArguments(max_grad_norm=...), the clip norm of an example"
        rule = "be the privacy's, or left out: noisy gradients are not clipped a second time"
        _check.refuse("max_grad_norm", rule, own, remedy)
    return args


def private_arguments(args: TrainingArguments) -> TrainingArguments:
    """Return the arguments that the loop runs with: one item of the loader, and no clipping, for each step.

    A resumed run draws the next batches, so that none is passed over.
    """
    changed = copy.copy(args)
    changed.gradient_accumulation_steps = 1
    changed.max_grad_norm = 0.0
    changed.ignore_data_skip = True
    return changed
