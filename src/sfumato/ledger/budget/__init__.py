"""Budgets and the rules that hold them: filters, renewal, the price of a charge, the budget check, odometers.

A budget is a total that is fixed beforehand, and its filters are stopping rules that hold although each
charge depends on earlier answers. `budget_check` says what a charge costs each filter, whether it fits and
what is left, and `refused_question` at which smaller epsilon a question would have fitted.
`PrivacyFilter`, `Odometer` and `IndividualFilter` are the rules on their own, without a file. Nothing here
stores anything.
"""
