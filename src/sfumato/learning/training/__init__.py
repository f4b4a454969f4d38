"""Training with a guarantee: Opacus's names over the engine, a sampler, keyed noise and the ledger.

One step by hand. A line is fitted to five points, from zero, with loss ``(w x + b - y)**2``; so the gradient
of an example is ``(-2 x y, -2 y)``, which is clipped to norm 1.

>>> import torch
>>> from torch import nn
>>> from torch.utils.data import DataLoader, TensorDataset
>>> from sfumato.learning import PoissonSampler, PrivacyEngine, SamplingOptions
>>> from sfumato.learning.noise.keyed import SimulatedNoise
>>> x = torch.tensor([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
>>> y = torch.tensor([[-3.8], [-2.0], [0.2], [2.1], [3.9]])
>>> gradients = torch.cat([-2 * x * y, -2 * y], dim=1)
>>> clipped = gradients * (1 / gradients.norm(dim=1, keepdim=True)).clamp(max=1)
>>> [[round(entry, 3) for entry in row] for row in clipped.tolist()]
[[-0.894, 0.447], [-0.707, 0.707], [-0.0, -0.4], [-0.707, -0.707], [-0.894, -0.447]]

Each example is in the batch with probability 0.6, so that 3 are expected, and the sum has noise of standard
deviation 1 times the clip norm (and the slack that floats need). The rate is 0.1.

>>> module = nn.Linear(1, 1)
>>> _ = [nn.init.zeros_(parameter) for parameter in module.parameters()]
>>> engine = PrivacyEngine()
>>> module, optimizer, loader = engine.make_private(
...     module=module,
...     optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
...     data_loader=DataLoader(TensorDataset(x, y), batch_size=3),
...     noise_multiplier=1.0,
...     max_grad_norm=1.0,
...     noise_generator=4,  # a simulation, to be computed again below; left out for real data
...     sampling=SamplingOptions(
...         sampler=lambda population, steps, seed, **_: PoissonSampler(
...             population=population, sampling_probability=0.6, steps=steps, seed=seed
...         ),
...     ),
... )
>>> given_x, given_y = next(iter(loader))
>>> nn.functional.mse_loss(module(given_x), given_y).backward()
>>> optimizer.step()

The same by hand: the examples that were drawn, the noise of step 0, and the expected batch size.

>>> drawn = [x.flatten().tolist().index(value) for value in given_x.flatten().tolist()]
>>> noise = [torch.zeros(1, 1), torch.zeros(1)]
>>> SimulatedNoise(4).add_(noise, step=0, stddevs=[1 + 2**-12] * 2)
>>> step = (clipped[drawn].sum(0) + torch.cat([noise[0].flatten(), noise[1]])) / 3
>>> weights = torch.cat([module.weight.flatten(), module.bias])
>>> torch.allclose(weights, -0.1 * step, atol=1e-5)
True

What it costs: one Gaussian step on a Poisson sample, under zero-out, as that there are five is public.

>>> engine.accountant.loss.loss
Gaussian(noise_multiplier=1.0, neighboring=<Neighboring.ZERO_OUT: 'zero-out'>)
>>> engine.accountant.loss.sampling_probability
0.6
>>> round(engine.get_epsilon(1e-5), 2)
3.75
"""
