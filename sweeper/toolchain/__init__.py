"""Programs that need an environment of their own: run as workers, spoken to by JSON lines."""
