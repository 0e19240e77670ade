"""Request records → summaries with intervals, the server's own figures, and validity. Pure."""
