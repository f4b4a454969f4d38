"""Exact samplers: every draw follows its distribution to the last bit, whatever floats round to.

`integer_noise` draws discrete Laplace, discrete Gaussian, geometric and Polya noise by the tables of `plans`;
`rounded_noise` rounds multiples of real noise to integers; `choice` and `exponential_race` select candidates
by weight; `run_counts` draws how often private selection runs; `normal_tail` flips coins that show a normal
tail.
"""
