"""What to launch next, where this product decides itself instead of asking Optuna.

features   deployments → coordinates that a distance can be taken in
process    a Gaussian process over them, one an output
goals      what is modelled of an outcome, and what a predicted outcome would be worth
gain       expected growth of the dominated volume
model      sampler=gp: the open deployment with the largest expected gain
staged     sampler=staged: one parameter after another, in the order practitioners recommend
"""
