"""Foundation models: features learned by contrastive pre-training, by diffusion, and by attention distilled to linear."""
