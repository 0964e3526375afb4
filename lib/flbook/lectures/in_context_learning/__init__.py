"""In-context learning: what attention computes from a prompt, and what pretraining has to see first."""
