"""Which checkpoint a deployment serves: published ones so far; none are made here yet."""
