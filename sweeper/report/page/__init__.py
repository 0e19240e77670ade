"""The report as one web page: its frame, its figures, its sections, its style and its script."""
