"""What a person reads: live view, terminal tables, the HTML report."""
