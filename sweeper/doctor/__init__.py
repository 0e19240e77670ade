"""Is this machine ready for a study? Gathered once, then judged by pure functions."""
