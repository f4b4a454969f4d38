"""Recurrent and attention layers by Opacus's names: torch's own, which need no replacement here.

>>> from sfumato.learning.opacus.layers import DPLSTM
>>> sorted(DPLSTM(3, 4).state_dict())
['bias_hh_l0', 'bias_ih_l0', 'weight_hh_l0', 'weight_ih_l0']
"""

from __future__ import annotations

from torch.nn import GRU as DPGRU
from torch.nn import LSTM as DPLSTM
from torch.nn import RNN as DPRNN
from torch.nn import GRUCell as DPGRUCell
from torch.nn import LSTMCell as DPLSTMCell
from torch.nn import MultiheadAttention as DPMultiheadAttention
from torch.nn import RNNCell as DPRNNCell

__all__ = ["DPGRU", "DPLSTM", "DPRNN", "DPGRUCell", "DPLSTMCell", "DPMultiheadAttention", "DPRNNCell"]
