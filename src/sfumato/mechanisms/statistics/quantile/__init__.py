"""Private quantiles: by the exponential mechanism, jointly for several, or from a noisy tree of counts."""
