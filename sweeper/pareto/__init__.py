"""The front, the knee and the recommendation. Pure functions on data frames."""
