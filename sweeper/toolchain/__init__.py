"""Programs that need an environment of their own, run as workers. No worker stands here yet."""
