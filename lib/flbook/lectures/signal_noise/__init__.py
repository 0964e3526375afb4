"""The signal-noise data model."""

# Where its experiments are: a folder or file of this chapter, or a file in a lecture's folder.
EXPERIMENTS = (
    "decomposition",
    "signal_noise_model",
    "signal_noise_model.averaging_classifier",
    "signal_noise_model.noise_geometry",
)
