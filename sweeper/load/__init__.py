"""Prompts, the streaming client and the closed-loop ladder."""
