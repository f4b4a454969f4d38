"""Client halves of the protocols for several attributes: one by one, by tables or by coefficients."""
