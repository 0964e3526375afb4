"""Runs: a setting, the sweep over its axes, the chunks that a sweep is cut into, and what is stored of it."""
