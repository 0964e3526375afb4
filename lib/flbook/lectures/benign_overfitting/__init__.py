"""Benign overfitting with feature learning."""

# Where its experiments are: a folder or file of this chapter, or a file in a lecture's folder.
EXPERIMENTS = (
    "double_descent",
    "double_descent.trained_networks",
    "graphs_and_output_layers",
    "graphs_and_output_layers.output_layer",
    "label_noise_stages",
    "label_noise_stages.label_noise_images",
    "leaky_relu",
    "leaky_relu.smooth_leaky_relu",
    "relu_heatmap",
    "relu_power_phase",
    "token_selection",
    "vision_transformer",
    "xor",
    "xor.xor_crossover",
    "xor.xor_one_patch",
)
