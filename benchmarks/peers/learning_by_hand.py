"""Private steps as one writes them by hand: by vmap, an example at a time, and from books of each layer.

All clip to norm 1 and add torch's noise, which nobody may rely on. `books_step` is the way of fastDP, one
backward and norms that are read off activations, written here anew: fastDP is not on PyPI. It holds for
layers of these kinds whose parameters are used once, and for no others.
"""

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F  # noqa: N812
from learning_models import setting
from torch import Tensor, nn


def vmap_step(name: str) -> Callable[[], None]:
    """Return a step from per-example gradients by vmap."""
    model, inputs, classes = setting(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    parameters = dict(model.named_parameters())

    def loss(values: Mapping[str, Tensor], one: Tensor, own: Tensor) -> Tensor:
        return F.cross_entropy(torch.func.functional_call(model, values, (one[None],)), own[None])

    run = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))

    def step() -> None:
        gradients = run({k: v.detach() for k, v in parameters.items()}, inputs, classes)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(dim=0)
        factors = (1 / (norms + 1e-6)).clamp(max=1)
        for key, parameter in parameters.items():
            total = torch.einsum("i,i...->...", factors, gradients[key])
            parameter.grad = (total + torch.randn_like(total)) / len(inputs)
        optimizer.step()

    return step


def microbatch_step(name: str) -> Callable[[], None]:
    """Return a step that runs each example alone."""
    model, inputs, classes = setting(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    parameters = list(model.parameters())

    def step() -> None:
        sums = [torch.zeros_like(parameter) for parameter in parameters]
        for place in range(len(inputs)):
            one = slice(place, place + 1)
            gradients = torch.autograd.grad(F.cross_entropy(model(inputs[one]), classes[one]), parameters)
            norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
            factor = (1 / (norm + 1e-6)).clamp(max=1)
            for total, gradient in zip(sums, gradients, strict=True):
                total.addcmul_(gradient, factor)
        for parameter, total in zip(parameters, sums, strict=True):
            parameter.grad = total.add_(torch.randn_like(total)).div_(len(inputs))
        optimizer.step()

    return step


class Attention(nn.Module):
    """Self-attention out of linear layers, which hooks see; the layer of torch calls none."""

    batch_first = True

    def __init__(self, whole: nn.MultiheadAttention) -> None:
        super().__init__()
        width = whole.embed_dim
        self.heads = whole.num_heads
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.into.weight, self.into.bias = whole.in_proj_weight, whole.in_proj_bias
        self.out.weight, self.out.bias = whole.out_proj.weight, whole.out_proj.bias

    def forward(self, tokens: Tensor, *_: Tensor, **__: object) -> tuple[Tensor, None]:
        parts = self.into(tokens).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        return self.out(mixed.transpose(1, 2).flatten(2)), None


class Books:
    """Notes of each layer's input and of its output's gradient; no gradient of a weight is taken by autograd.

    A layer's norms come from the two Gram matrices where these are smaller than the gradient, and from its
    per-example gradients elsewhere, which are then kept.
    """

    def __init__(self, model: nn.Module, count: int) -> None:
        self.count = count
        self.squares = torch.zeros(count)
        self.sums: list[tuple[nn.Parameter, Callable[[Tensor], Tensor]]] = []
        for module in list(model.modules()):
            for name, child in module.named_children():
                if isinstance(child, nn.MultiheadAttention):
                    setattr(module, name, Attention(child))
        for module in model.modules():
            if next(module.parameters(recurse=False), None) is not None:
                module.register_forward_hook(self._follow)
        model.requires_grad_(requires_grad=False)

    def _follow(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if not output.requires_grad:
            output.requires_grad_()
        kept = inputs[0].detach()
        output.register_hook(lambda gradient: self._note(module, kept, gradient))

    def _note(self, module: nn.Module, x: Tensor, g: Tensor) -> None:
        if isinstance(module, nn.Linear):
            self._matrix(module.weight, x.reshape(self.count, -1, x.shape[-1]), self._rows(g))
            self._bias(module.bias, self._rows(g))
        elif isinstance(module, nn.Conv2d):
            patches = F.unfold(x, module.kernel_size, module.dilation, module.padding, module.stride)  # type: ignore[arg-type]
            g = g.flatten(2).transpose(1, 2)
            self._matrix(module.weight, patches.transpose(1, 2), g)
            self._bias(module.bias, g)
        elif isinstance(module, nn.Embedding):
            self._rows_of(module.weight, x.reshape(self.count, -1), self._rows(g))
        elif isinstance(module, nn.LayerNorm):
            plain = F.layer_norm(x, module.normalized_shape, eps=module.eps)
            self._dense(module.weight, self._rows(g * plain).sum(1))
            self._bias(module.bias, self._rows(g))
        elif isinstance(module, nn.GroupNorm):
            plain = F.group_norm(x, module.num_groups, eps=module.eps)
            self._dense(module.weight, (g * plain).flatten(2).sum(2))
            self._bias(module.bias, g.flatten(2).transpose(1, 2))
        else:
            raise TypeError(f"no books are kept for {type(module).__name__}")

    def _rows(self, gradient: Tensor) -> Tensor:
        return gradient.reshape(self.count, -1, gradient.shape[-1])

    def _bias(self, bias: nn.Parameter | None, g: Tensor) -> None:
        if bias is not None:
            self._dense(bias, g.sum(1))

    def _dense(self, parameter: nn.Parameter, gradients: Tensor) -> None:
        flat = gradients.reshape(self.count, -1)
        self.squares += flat.square().sum(1)
        self.sums.append((parameter, lambda factors: factors @ flat))

    def _matrix(self, weight: nn.Parameter, x: Tensor, g: Tensor) -> None:
        if 2 * x.shape[1] ** 2 >= weight.numel():
            self._dense(weight, g.transpose(1, 2) @ x)
            return
        self.squares += ((x @ x.transpose(1, 2)) * (g @ g.transpose(1, 2))).sum((1, 2))
        self.sums.append(
            (weight, lambda factors: (g * factors[:, None, None]).flatten(0, 1).T @ x.flatten(0, 1))
        )

    def _rows_of(self, table: nn.Parameter, indices: Tensor, g: Tensor) -> None:
        same = indices[:, :, None] == indices[:, None, :]
        self.squares += (same * (g @ g.transpose(1, 2))).sum((1, 2))

        def weighted(factors: Tensor) -> Tensor:
            own = (g * factors[:, None, None]).flatten(0, 1)
            return torch.zeros_like(table).index_add_(0, indices.flatten(), own)

        self.sums.append((table, weighted))

    def clipped(self) -> list[tuple[nn.Parameter, Tensor]]:
        """Return each parameter and its sum of clipped gradients, and begin anew."""
        factors = (1 / (self.squares.sqrt() + 1e-6)).clamp(max=1)
        found = [(parameter, weighted(factors).view_as(parameter)) for parameter, weighted in self.sums]
        self.squares, self.sums = torch.zeros(self.count), []
        return found


def books_step(name: str) -> Callable[[], None]:
    """Return a step that keeps books in hooks of the layers, as fastDP does."""
    model, inputs, classes = setting(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    books = Books(model, len(inputs))

    def step() -> None:
        F.cross_entropy(model(inputs), classes, reduction="sum").backward()
        for parameter, total in books.clipped():
            parameter.grad = total.add_(torch.randn_like(total)).div_(len(inputs))
        optimizer.step()

    return step
