"""The study: what to try next, what the sampler is told, budget, resuming."""
