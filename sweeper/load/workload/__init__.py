"""What is sent: prompts and lengths, by kind of workload."""
