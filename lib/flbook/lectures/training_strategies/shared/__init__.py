"""Data models and the step by hand that several lectures on training strategies use."""
