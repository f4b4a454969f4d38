"""Features of a frozen extractor: computed once, row by row, by what is said to be public."""

from __future__ import annotations

import pytest

from sfumato.errors import ParameterError, UnfitModule
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import Tensor, nn
    from torch.utils.data import Dataset, TensorDataset

    from sfumato.learning.recipes.frozen_features import frozen_features


def extractor() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(), nn.Flatten())


def data(count: int = 21) -> TensorDataset:
    torch.manual_seed(1)
    return TensorDataset(torch.randn(count, 1, 5, 5), torch.arange(count))


def test_features_come_in_order_in_eval_mode_and_without_a_trace() -> None:
    module = extractor()
    module[3].eval()  # type: ignore[index]
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    made = frozen_features(module, data(), public=True, normalization="none", batch_size=4)
    features, labels = made.tensors
    assert torch.equal(labels, torch.arange(21))
    assert not features.requires_grad
    assert [m.training for m in module.children()] == [True, True, True, False, True]
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    with torch.no_grad():
        torch.testing.assert_close(features, module.eval()(data().tensors[0]))


def test_a_row_follows_from_its_own_example_to_the_last_bit() -> None:
    for normalization in ("length", "standard"):
        whole = frozen_features(extractor(), data(), public=True, normalization=normalization, batch_size=1)
        rest = TensorDataset(*(t[3:] for t in data().tensors))
        left = frozen_features(extractor(), rest, public=True, normalization=normalization, batch_size=1)
        assert torch.equal(whole.tensors[0][3:], left.tensors[0])


def test_rows_are_normalised_each_by_itself() -> None:
    inputs = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1e-3, 3e-3]])
    (length,) = frozen_features(nn.Identity(), TensorDataset(inputs), public=True).tensors
    torch.testing.assert_close(length.norm(dim=1), torch.tensor([1.0, 0.0, 1.0]))
    (standard,) = frozen_features(
        nn.Identity(), TensorDataset(inputs), public=True, normalization="standard"
    ).tensors
    torch.testing.assert_close(standard, torch.tensor([[-1.0, 1.0], [0.0, 0.0], [-1.0, 1.0]]))


if run_time(__name__):

    class Sentences(Dataset[object]):
        def __len__(self) -> int:
            return 2

        def __getitem__(self, place: int) -> object:
            return "text", place

    class Centred(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x - x.mean(0)


def test_what_would_not_be_private_is_refused() -> None:
    with pytest.raises(ParameterError, match="public must be True, for an extractor"):
        frozen_features(extractor(), data())
    with pytest.raises(UnfitModule, match="changes the outputs of others"):
        frozen_features(Centred(), TensorDataset(torch.randn(4, 3)), public=True)
    with pytest.raises(ParameterError, match="normalization must be one of"):
        frozen_features(extractor(), data(), public=True, normalization="batch")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="dataset must give tuples of tensors"):
        frozen_features(extractor(), Sentences(), public=True)
    with pytest.raises(ParameterError, match="dataset must have a length and examples"):
        frozen_features(extractor(), TensorDataset(torch.zeros(0, 1, 5, 5)), public=True)
    with pytest.raises(ParameterError, match="a row for each input"):
        frozen_features(Summed(), data(), public=True)


if run_time(__name__):

    class Summed(nn.Module):
        """Gives rows for whole batches of the probe's, and fewer for others."""

        def forward(self, x: Tensor) -> Tensor:
            rows = x.flatten(1)
            return rows if len(x) < 20 else rows[:20]
