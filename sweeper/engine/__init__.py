"""Engines behind one protocol: processes, readiness, read-back, log diagnosis."""
