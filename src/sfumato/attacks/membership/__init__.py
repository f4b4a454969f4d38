"""Membership inference: whether a person's record was among those that a model was trained on."""
