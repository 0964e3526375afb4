"""Foundation models: features that contrastive pre-training and diffusion learn, and attention made linear."""
