"""Mastic (draft-mouris-cfrg-mastic): sums of weights by prefix, weighted heavy hitters, metrics by attribute.

>>> from sfumato.federated import MasticParameter
>>> MasticParameter.of("00", "10", check_weights=True).to_bytes().hex()
'000100000002008001'
"""
