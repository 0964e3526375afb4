"""In-context learning: what attention computes from a prompt, and what pretraining has to see first."""

# Where its experiments are: a folder or file of this chapter, or a file in a lecture's folder.
EXPERIMENTS = (
    "attention_landscape",
    "bayes_gap",
    "bayes_gap.two_planes",
    "mean_field_features",
    "nonparametric_rates",
    "nonparametric_rates.hidden_basis",
    "nonparametric_rates.learned_basis",
    "vector_arithmetic",
)
