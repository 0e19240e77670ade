"""What measures this product itself."""
