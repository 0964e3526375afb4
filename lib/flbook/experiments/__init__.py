"""Experiments: one file each, one folder a chapter; the lecture of the same name runs it and tells its story."""
