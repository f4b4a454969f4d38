"""The Distributed Aggregation Protocol (DAP): messages, tasks, and what each party computes of them.

The protocol is draft-ietf-ppm-dap-16, whose version tag `VERSION` is bound to all that is encrypted or
verified. Here are values and bytes; `sfumato.server.dap` has the processes that speak them over HTTP.

>>> from sfumato.federated.dap.version import VERSION
>>> VERSION
b'dap-16'
"""
