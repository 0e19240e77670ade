"""Arithmetic before any launch: cross-flag rules, memory, speed of light. Pure."""
