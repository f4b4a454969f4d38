"""A critic with a penalty on its gradient, as a Wasserstein GAN trains it, for each example its own."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor, nn

from sfumato import _check

__all__ = ["GradientPenalty"]


@final
class GradientPenalty(nn.Module):
    r"""A critic that returns, beside its scores, a penalty on the length of its gradient for each example.

    Make it private in the place of the critic (`PrivacyEngine.make_private`). A step on a batch calls it with
    the rows and with points between them and generated rows, and adds ``weight * penalties.mean()`` to the
    loss: score and penalty of one example are then one example's loss, whose gradient is clipped as a whole.
    A penalty that is taken outside of the module is refused.

    Parameters
    ----------
    critic : torch.nn.Module
        Takes rows, and whatever else of the examples comes behind them; returns a score for each. Examples
        must be apart in it: no batch normalisation.
    target : float
        The length that is not penalised: 1 for WGAN-GP, 0 for the penalties R1 and R2.
    one_sided : bool
        Whether only longer gradients are penalised.

    Notes
    -----
    Guarantee: that of any module whose examples are apart. The penalty of an example is a function of its own
    row, of the generated row and the share that it is mixed with, and of the parameters: :math:`(\|\nabla_x
    D(x)\| - \text{target})^2` at one point. The engine takes the gradient of score and penalty together, for
    each example, under `torch.func.vmap`.

    Condition: generated rows depend on no example, also not by their number. So `between` picks one for each
    row at random, out of a number that is public.

    References
    ----------
    Gulrajani, Ahmed, Arjovsky, Dumoulin, Courville, "Improved training of Wasserstein GANs" (NIPS 2017);
    Mescheder, Geiger, Nowozin, "Which training methods for GANs do actually converge?" (ICML 2018), for R1.

    Examples
    --------
    >>> import torch
    >>> critic = GradientPenalty(torch.nn.Linear(2, 1, bias=False))
    >>> _ = torch.nn.init.constant_(critic.critic.weight, 3.0)
    >>> scores, penalties = critic(torch.ones(4, 2), points=torch.zeros(4, 2))
    >>> scores[0].item(), round(penalties[0].item(), 4)  # (3 * sqrt(2) - 1) ** 2
    (6.0, 10.5147)
    """

    def __init__(self, critic: nn.Module, *, target: float = 1.0, one_sided: bool = False) -> None:
        super().__init__()
        _check.instance("critic", critic, nn.Module, "pass the critic itself")
        self.critic = critic
        self.target = _check.non_negative("target", target)
        self.one_sided = bool(one_sided)

    def forward(self, rows: Tensor, *further: Any, points: Tensor | None = None) -> Any:
        """Return the scores of rows, and with ``points`` the penalties there too.

        Parameters
        ----------
        rows : torch.Tensor of shape (n, ...)
            Of the examples, or generated.
        *further : tensor
            What the critic takes beside them, such as labels: of the same examples.
        points : torch.Tensor of shape (n, ...), optional
            Where each example's gradient is taken: `between`, or the rows themselves. None takes scores only,
            as for generated rows.

        Returns
        -------
        torch.Tensor, or tuple of two
            What the critic returns for the rows; and the penalties, of shape (n,).
        """
        scores = self.critic(rows, *further)
        if points is None:
            return scores
        pulled: Any = torch.func.vjp(lambda where: self.critic(where, *further), points)
        (slopes,) = pulled[1](torch.ones_like(pulled[0]))
        # The root has no derivative at 0: a length of zero has a gradient of zero.
        squares = slopes.flatten(1).square().sum(1)
        flat = squares == 0
        lengths = torch.where(flat, 0.0, torch.where(flat, 1.0, squares).sqrt())
        beyond = lengths - self.target
        return scores, (beyond.clamp_min(0) if self.one_sided else beyond).square()

    @staticmethod
    def between(rows: Tensor, generated: Tensor) -> Tensor:
        """Return a random point between each row and a generated one.

        Parameters
        ----------
        rows : torch.Tensor of shape (n, ...)
            Of the examples.
        generated : torch.Tensor of shape (m, ...)
            Their number is public, and need not be n: each row gets one of them at random.

        Returns
        -------
        torch.Tensor of shape (n, ...)
            Without a graph.
        """
        if not len(generated) or generated.shape[1:] != rows.shape[1:]:
            found = f"its shape is {tuple(generated.shape)}"
            remedy = "pass what the generator returns, a public number of rows"
            _check.refuse_state("generated", "be one row or more of the examples' shape", found, remedy)
        chosen = generated.detach()[torch.randint(len(generated), (len(rows),), device=rows.device)]
        share = torch.rand(len(rows), *[1] * (rows.dim() - 1), device=rows.device, dtype=rows.dtype)
        return torch.lerp(chosen.to(rows.dtype), rows.detach(), share)
