"""Request records to summaries: percentiles, intervals, windows, validity gates. Pure."""
