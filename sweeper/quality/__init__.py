"""Agreement with the reference, and the floor below which a fast deployment loses."""
