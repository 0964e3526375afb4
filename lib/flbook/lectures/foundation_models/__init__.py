"""Foundation models: features that contrastive pre-training and diffusion learn, and attention made linear."""

# Where its experiments are: a folder or file of this chapter, or a file in a lecture's folder.
EXPERIMENTS = (
    "contrastive",
    "contrastive.epochs",
    "contrastive_digits",
    "contrastive_digits.variations",
    "denoising_from_scratch",
    "diffusion",
    "distilled_attention",
    "distilled_attention.layer_costs",
    "distilled_attention.more_networks",
    "distilled_attention.other_networks",
    "linear_attention_dimension",
    "two_clocks",
    "two_clocks.copied_samples",
    "two_clocks.tanh_denoiser",
    "two_clocks.trained_denoiser",
    "two_clocks.wide_features",
)
