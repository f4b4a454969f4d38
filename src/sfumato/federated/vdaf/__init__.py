"""Verifiable distributed aggregation (draft-irtf-cfrg-vdaf): sums of measurements that are proved valid.

>>> from sfumato.federated import prio3_count
>>> prio3_count().input_share_size(1)
32
"""
