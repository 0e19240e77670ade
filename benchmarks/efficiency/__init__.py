"""How few launches a search needs: problems with a known answer, policies, and what they spent."""
