"""AISimulate, a simulator of serving engines over measured operator times, as a predictor."""
