"""``sfumato check-model``: whether a PyTorch module can be trained privately; no data is needed."""

from __future__ import annotations

import math
from typing import Annotated, Any, Final

import typer

from sfumato import _check, learning
from sfumato._wire import Format
from sfumato.cli.input.arguments import AsJson
from sfumato.cli.naming import named, unusable
from sfumato.cli.output.facts import print_json

__all__ = ["UNFIT", "check_model"]

FORMAT: Final = Format("sfumato.model-check", 1)

UNFIT = 4
"""Exit code where the module is refused."""

_TARGET = "MODULE:FACTORY"


def check_model(
    target: Annotated[str, typer.Argument(metavar=_TARGET, help="A module, its class, or what returns one.")],
    *,
    shape: Annotated[
        list[str],
        typer.Option(
            metavar="[NAME=]SIZES[:TYPE]",
            help="One example's shape in an argument, such as 3,32,32 or ids=128:int64; may be repeated.",
        ),
    ],
    clip_norm: Annotated[float, typer.Option(help="What gradients are clipped to.")] = 1.0,
    mode: Annotated[str, typer.Option(help="The engine's: auto, book_keeping, vmap or microbatch.")] = "auto",
    examples: Annotated[int, typer.Option(help="Random examples, from 2 to 8.")] = 8,
    seed: Annotated[int, typer.Option(help="What they are drawn from.")] = 0,
    fix: Annotated[
        bool, typer.Option("--fix", help="Replace layers that mix examples, and check the result.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Also print how each parameter's gradients are found.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check that no example reaches another in a module, and that the engine clips it right."""
    batch = learning.batch_of(*shape)
    module = _made(named(target, metavar=_TARGET, example="my_package.models:make_model"))
    if fix:
        module = learning.fix_module(module)
    tested = learning.self_test(
        module,
        None,
        batch,
        learning.Flat(clip_norm=clip_norm),
        mode=mode,  # type: ignore[arg-type]  # checked where it is used
        examples=examples,
        seed=seed,
    )
    if as_json:
        print_json(FORMAT, _facts(tested))
    else:
        typer.echo(str(tested))
        if plan and tested.findings is not None:
            typer.echo(tested.findings.plan)
    if not tested.passed:
        raise typer.Exit(UNFIT)


def _made(found: Any) -> Any:
    """Return the module that is named, or that what is named returns."""
    if hasattr(found, "named_parameters"):
        return found
    rule = "name a torch.nn.Module or what returns one"
    if not callable(found):
        _check.refuse_type(_TARGET, rule, found, "write package.module:Model")
    try:
        made = found()
    except Exception as error:
        raise unusable(_TARGET, "name what needs no arguments", error) from error
    if not hasattr(made, "named_parameters"):
        _check.refuse_type(_TARGET, rule, made, "write package.module:make_model")
    return made


def _facts(tested: learning.SelfTest) -> dict[str, Any]:
    leaks = [
        {"module": leak.module, "kind": leak.kind, "change": leak.change, "into": leak.into}
        for leak in tested.leaks.leaks
    ]
    facts: dict[str, Any] = {"passed": tested.passed, "faults": list(tested.faults), "leaks": leaks}
    if (found := tested.findings) is not None:
        facts |= {
            "examples": found.examples,
            "reference": found.reference,
            "norm_error": _finite(found.norm_error),
            "sum_error": _finite(found.sum_error),
            "removal": _finite(found.removal),
            "plan": found.plan,
        }
    return facts


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
