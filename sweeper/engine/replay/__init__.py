"""The `replay` engine: measured tables instead of launches."""
