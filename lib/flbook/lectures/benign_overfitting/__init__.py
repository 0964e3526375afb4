"""Benign overfitting with feature learning."""

# Where its experiments are: a folder or file of this chapter, or a file in a lecture's folder.
EXPERIMENTS = (
    "token_selection",
    "vision_transformer",
    "xor",
    "xor.xor_crossover",
    "xor.xor_one_patch",
)
