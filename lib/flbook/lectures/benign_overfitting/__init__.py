"""Benign overfitting with feature learning."""
