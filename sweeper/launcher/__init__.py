"""Where launches run. Local, one after the other."""
