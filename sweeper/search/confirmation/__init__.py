"""When a search is over, its best and the defaults are launched again: which, when and how often.

design.py    how many launches of how many deployments the budget has room for
turns.py     which of them is next, from the journal alone
live.py      both, kept up with a running study
"""
