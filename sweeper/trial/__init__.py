"""One launch from plan to outcome."""
