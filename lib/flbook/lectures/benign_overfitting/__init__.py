"""Benign overfitting with feature learning."""

# Where its experiments are: a folder or file of this chapter, or a file in a lecture's folder.
EXPERIMENTS = (
    "double_descent",
    "double_descent.trained_networks",
    "graph_convolution",
    "label_noise_stages",
    "label_noise_stages.label_noise_images",
    "label_noise_stages.stage_errors",
    "label_noise_stages.start_size",
    "leaky_relu",
    "leaky_relu.sample_weights",
    "output_layers",
    "relu_heatmap",
    "relu_power_phase",
    "token_selection",
    "token_selection.reported_cells",
    "two_borders",
    "vision_transformer",
    "vision_transformer.attention_border",
    "vision_transformer.attention_rivals",
    "xor",
    "xor.xor_crossover",
    "xor.xor_one_patch",
)
