"""The TopDown algorithm of the 2020 Census: counts of nested places that add up, from noisy measurements."""
