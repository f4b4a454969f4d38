"""Sources of random bits, and uniform and normal numbers made from them.

`source` is the operating system's entropy, stretched by a stream cipher, or a seed for simulation; `uniform`
draws as many bits as a decision needs; `keyed_normal` makes normal numbers a function of a key, for noise
that is recomputed.
"""
