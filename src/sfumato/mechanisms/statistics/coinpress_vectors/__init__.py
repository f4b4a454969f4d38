"""CoinPress for vectors: their mean and their covariance matrix."""
