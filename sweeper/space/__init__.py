"""What is searched: parameters, conditions, canonical form, Optuna distributions. Pure."""
