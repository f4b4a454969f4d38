"""The 2-D wavelet scattering transform of images (Bruna, Mallat 2013): fixed features, learned from nobody.

A frozen transform of each image by itself costs no privacy, and a linear model on it needs far fewer noisy
numbers than a network does (Tramer, Boneh 2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

__all__ = ["Scattering", "group_normalised"]

_SHIFTS = range(-2, 3)
"""Copies of a filter beside it that a periodic image also sees; those further off are below 1e-9."""


def _gabor(size: int, sigma: float, frequency: float, angle: float, slant: float) -> Tensor:
    """Return a periodic Gaussian bump, elongated across its wave, times the wave; complex, in space."""
    turned = torch.tensor(
        [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]], dtype=torch.float64
    )
    form = turned @ torch.diag(torch.tensor([1.0, slant * slant], dtype=torch.float64)) @ turned.T
    form = form / (2 * sigma * sigma)
    total = torch.zeros(size, size, dtype=torch.complex128)
    for row in _SHIFTS:
        for column in _SHIFTS:
            y = (torch.arange(size, dtype=torch.float64) + row * size)[:, None]
            x = (torch.arange(size, dtype=torch.float64) + column * size)[None, :]
            bump = -(form[0, 0] * y * y + 2 * form[0, 1] * y * x + form[1, 1] * x * x)
            wave = frequency * (y * math.cos(angle) + x * math.sin(angle))
            total += torch.exp(torch.complex(bump, wave))
    return total * (slant / (2 * math.pi * sigma * sigma))


def _morlet(size: int, sigma: float, frequency: float, angle: float, slant: float) -> Tensor:
    """Return a wavelet's spectrum: a wave under a bump, less so much of the bump that its sum is 0."""
    wave = _gabor(size, sigma, frequency, angle, slant)
    bump = _gabor(size, sigma, 0.0, angle, slant)
    spectrum: Tensor = torch.fft.fft2(wave - bump * (wave.sum() / bump.sum()))
    return spectrum.real.to(torch.float32)


def _folded(spectrum: Tensor, factor: int) -> Tensor:
    """Return the spectrum of the image of which each ``factor``-th pixel is kept."""
    *rest, rows, columns = spectrum.shape
    parts = spectrum.reshape(*rest, factor, rows // factor, factor, columns // factor)
    return parts.mean(dim=(-4, -2))


@dataclass(frozen=True, kw_only=True)
class Scattering:
    """Scattering of order two: moduli of wavelets of moduli of wavelets, averaged over ``2**scales`` pixels.

    Parameters
    ----------
    size : int
        Rows, and columns, of an image.
    scales : int
        How many octaves.
    angles : int
        How many directions of each.

    Examples
    --------
    >>> Scattering(size=28, scales=2, angles=8)(torch.zeros(3, 28, 28)).shape
    torch.Size([3, 81, 7, 7])
    """

    size: int
    scales: int = 2
    angles: int = 8
    _bands: list[Tensor] = field(init=False, repr=False)
    _means: list[Tensor] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        padded = self.size + 2 * 2**self.scales
        turns = [math.pi * (k + self.angles // 2) / self.angles for k in range(self.angles)]
        bands = [
            torch.stack(
                [_morlet(padded, 0.8 * 2**j, 0.75 * math.pi / 2**j, a, 4.0 / self.angles) for a in turns]
            )
            for j in range(self.scales)
        ]
        object.__setattr__(self, "_bands", bands)
        means = [_averages(padded, self.scales, octave) for octave in range(self.scales)]
        object.__setattr__(self, "_means", means)

    def __call__(self, images: Tensor) -> Tensor:
        """Return the coefficients of images of shape (n, size, size), as (n, channels, side, side)."""
        edge = 2**self.scales
        wide = torch.nn.functional.pad(images[:, None], (edge,) * 4, mode="reflect")
        spectrum = torch.fft.fft2(wide)
        kept, deeper = [self._averaged(wide, 0)], []
        for j, first in enumerate(self._bands):
            moduli = torch.fft.ifft2(_folded(spectrum * first, 2**j)).abs()
            kept.append(self._averaged(moduli, j))
            for later in range(j + 1, self.scales):
                second = _folded(self._bands[later], 2**j) * 4**j
                waves = torch.fft.fft2(moduli)[:, :, None] * second
                twice = torch.fft.ifft2(_folded(waves, 2 ** (later - j))).abs().flatten(1, 2)
                deeper.append(self._averaged(twice, later))
        return torch.cat([*kept, *deeper], dim=1)

    def _averaged(self, images: Tensor, octave: int) -> Tensor:
        mean = self._means[octave]
        return mean @ images @ mean.T


def _averages(padded: int, scales: int, octave: int) -> Tensor:
    """Return the matrix that averages a line, of which each ``2**octave``-th pixel is kept."""
    sigma, step = 0.8 * 2 ** (scales - 1), 2**octave
    places = torch.arange(2**scales, padded - 2**scales, 2**scales, dtype=torch.float64)
    pixels = torch.arange(0, padded, step, dtype=torch.float64)
    shifts = torch.tensor(_SHIFTS, dtype=torch.float64)[:, None, None] * padded
    distance = places[:, None] - pixels[None, :] + shifts
    bumps: Tensor = torch.exp(-(distance**2) / (2 * sigma * sigma)).sum(dim=0)
    mean: Tensor = bumps * (step / math.sqrt(2 * math.pi * sigma * sigma))
    return mean.to(torch.float32)


def group_normalised(features: Tensor, groups: int) -> Tensor:
    """Return features of mean 0 and variance 1 over each group of channels of each image by itself."""
    return torch.nn.functional.group_norm(features, groups)
