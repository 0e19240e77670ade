"""Studies as pandas frames and figures, for notebooks and scripts; see docs/python.md."""
