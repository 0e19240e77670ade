"""Model facts from config.json, and where a model comes from: embedded, a folder, a hub."""
