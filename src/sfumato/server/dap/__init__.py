"""The processes of the Distributed Aggregation Protocol: leader, helper, and who speaks with them.

The protocol is in `sfumato.federated.dap`; here are the stores that survive being killed, and the services
around them, which need ``sfumato[server]``.
"""
