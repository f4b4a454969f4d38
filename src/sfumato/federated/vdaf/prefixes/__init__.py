"""What Poplar1 and Mastic share: prefixes that are asked for, level by level, and what is found of them.

>>> from sfumato.federated import AggregationParameter
>>> AggregationParameter.of("0", "1").prefixes
('0', '1')
"""
