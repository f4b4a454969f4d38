"""The curator's console: pages and an interface by which an organisation runs one ledger.

`pages` is what a screen takes and gives, `screens` are the pages, `access` says who asks and what they may
do, `guard` lets requests in, `asking` prices questions and answers them. It needs ``sfumato[console]``.
"""
