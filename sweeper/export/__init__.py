"""Deployment files from a recommendation."""
