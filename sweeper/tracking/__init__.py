"""What a study leaves on disk: paths, the journal, the lock, the mirror in MLflow."""
