"""What a worker finds on its path: this folder, in an interpreter that knows nothing of sweeper."""
