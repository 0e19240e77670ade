"""What is sent, when, and what came of it: workloads, arrivals, the client, the ladder."""
