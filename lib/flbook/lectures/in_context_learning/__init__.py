"""In-context learning: what attention computes from a prompt, and what pretraining has to see first."""

# Where its experiments are: a folder or file of this chapter, or a file in a lecture's folder.
EXPERIMENTS = (
    "attention_landscape",
    "bayes_gap",
    "bayes_gap.empirical_minimum",
    "bayes_gap.two_planes",
    "concept_prompts",
    "linear_attention",
    "low_dimensional_targets",
    "mamba_features",
    "mamba_regression",
    "mean_field_features",
    "mean_field_langevin",
    "mean_field_langevin.sparse_parity",
    "nonparametric_rates",
    "nonparametric_rates.hidden_basis",
    "nonparametric_rates.learned_basis",
    "perturbed_flow",
    "task_diversity",
    "test_time_training",
    "vector_arithmetic",
    "what_is_icl",
    "what_is_icl.fine_tuning",
    "what_is_icl.training_laws",
)
