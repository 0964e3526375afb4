"""Chapter 1: why learned features beat fixed ones."""

# Where its experiments are: a folder or file of this chapter, or a file in a lecture's folder.
EXPERIMENTS = (
    "committee",
    "committee.escape",
    "features_in_real_networks",
    "features_in_real_networks.photographs",
    "information_exponent",
    "information_exponent.cubic_step",
    "information_exponent.kernel_wall",
    "kernels_and_one_step",
    "kernels_and_one_step.samples_needed",
    "lazy_and_mean_field",
    "lazy_and_mean_field.relu_gates",
    "loss_path_kernel",
    "loss_path_kernel.convnet_path",
    "maximal_update",
    "maximal_update.output_size",
    "maximal_update.wider_is_better",
    "online_sgd",
    "rate_transfer",
    "rate_transfer.deep_rates",
    "rate_transfer.kernel_growth",
    "rate_transfer.prompt_rates",
    "rate_transfer.sharper",
    "rate_transfer.tuned_rates",
)
