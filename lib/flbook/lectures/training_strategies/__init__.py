"""Training strategies: same data, same network, another rule."""

# Where its experiments are: a folder or file of this chapter, or a file in a lecture's folder.
EXPERIMENTS = (
    "adam_and_gradient_descent",
    "adam_and_gradient_descent.feature_border",
    "adam_and_gradient_descent.noisy_digits",
    "adam_and_gradient_descent.small_batches",
    "cutmix",
    "cutmix.cut_sizes",
    "every_rule",
    "expert_clusters",
    "expert_clusters.leaks",
    "expert_clusters.relu_rival",
    "expert_clusters.single_neurons",
    "federated_learning",
    "federated_learning.federated_alone",
    "federated_learning.federated_rounds",
    "label_noise_gd",
    "large_steps",
    "mixture_of_experts",
    "mixup",
    "momentum",
    "out_of_distribution",
    "sharpness_aware",
    "sign_descent",
    "sign_descent.sign_convnet",
    "sign_descent.sign_tokens",
)
