"""Chapter 1: why learned features beat fixed ones."""
