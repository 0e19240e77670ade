"""Two measurements side by side: conditions first, then results, then whether it is fair. Pure."""
