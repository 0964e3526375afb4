"""The signal-noise data model."""
