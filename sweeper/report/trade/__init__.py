"""What each way to store weights and cache buys, and what it costs: quality, speed, memory."""
