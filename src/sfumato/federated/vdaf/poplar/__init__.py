"""Poplar1 (draft-irtf-cfrg-vdaf): how many strings have each of some prefixes, and private heavy hitters.

>>> from sfumato.federated import AggregationParameter
>>> AggregationParameter.of("00", "10").to_bytes().hex()
'0001000000020080'
"""
