"""A module is looked at once for each form of its arguments, not whenever the form changes."""

from __future__ import annotations

from typing import Any

from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn

    from sfumato.learning import Engine, Flat
    from sfumato.learning.engine.first_look import CallForms

    class Masked(nn.Module):
        """Uses other layers with a mask than without one, and counts its forwards."""

        def __init__(self) -> None:
            super().__init__()
            self.plain, self.other = nn.Linear(3, 2), nn.Linear(3, 2)
            self.forwards = 0

        def forward(self, rows: Any, mask: Any = None, *, scale: float = 1.0) -> Any:
            self.forwards += 1
            if mask is None:
                return scale * self.plain(rows)
            return self.other(rows * mask).tanh()


def test_forms_differ_by_nesting_and_by_where_tensors_are() -> None:
    forms, x = CallForms(), torch.zeros(2)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((x,), {}),
        ((x, None), {}),
        ((x, x), {}),
        ((x,), {"mask": x}),
        ((x,), {"mask": None}),
        (([x, x],), {}),
        (([x, None],), {}),
        (({"a": x},), {}),
    ]
    noted: Any = (None, None)
    for number, (args, kwargs) in enumerate(calls):
        found: Any = forms.switched(args, kwargs, *noted)
        assert found == (None, None)
        noted = number, None
    for number, (args, kwargs) in enumerate(calls):
        noted = forms.switched(args, kwargs, *noted)
        assert noted == (number, None)
        assert forms.switched(tuple(args), dict(kwargs), *noted) == noted


def test_each_form_of_a_call_is_known_after_its_first_forward() -> None:
    torch.manual_seed(0)
    module = Masked()
    engine = Engine(module, Flat(clip_norm=1e9))
    engine.attach()
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((torch.randn(4, 3),), {}),
        ((torch.randn(5, 3), torch.ones(5, 3)), {}),
        ((torch.randn(4, 3),), {"mask": torch.ones(4, 3)}),
        ((torch.randn(4, 3), None), {"scale": 2.0}),
    ]
    explained = []
    for args, kwargs in calls:
        module(*args, **kwargs).mean().backward()
        engine.clipped_sums()
        explained.append(engine.explain())
    looked = module.forwards
    assert looked > len(calls)
    for _ in range(2):
        for (args, kwargs), way in zip(calls, explained, strict=True):
            module(*args, **kwargs).mean().backward()
            sums = engine.clipped_sums(len(args[0]))
            assert engine.explain() == way
            masked = "mask" in kwargs or (len(args) == 2 and args[1] is not None)
            assert bool(sums.gradients["other.weight"].any()) == masked
            assert bool(sums.gradients["plain.weight"].any()) != masked
    assert module.forwards == looked + 2 * len(calls)
    assert "plain.weight: linear" in explained[0]
    assert "other.weight: linear" in explained[1]
