"""Tab completion: what may follow a half-typed command line. Nothing heavy is imported."""
