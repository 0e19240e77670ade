"""Which parameters mattered in a study, which did nothing, and how sure that is."""
