"""Degrees of freedom and the contrastive loss, which several lectures on foundation models use."""
