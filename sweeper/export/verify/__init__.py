"""Whether what was exported keeps what was promised: started from its own files, and driven."""
